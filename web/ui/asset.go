package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// asset is one embedded file, ready to be sent.
type asset struct {
	content []byte
	kind    string // its Content-Type
	tag     string // its ETag: embedded files have no modification time
}

// assets maps the path under /assets/ to the file.
type assets map[string]asset

// newAssets reads every embedded file once. A type that is missing from kinds
// is a programming error and panics.
func newAssets() assets {
	list := assets{}
	err := fs.WalkDir(assetFiles, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		list[strings.TrimPrefix(name, "assets/")] = asset{
			content: content, kind: kindOf(name), tag: `"` + hex.EncodeToString(sum[:16]) + `"`,
		}
		return nil
	})
	if err != nil {
		panic("ui: the embedded assets cannot be read: " + err.Error())
	}
	return list
}

// kindOf is the Content-Type by the file's ending. The machine's own table of
// types is not asked: modules with a wrong type are refused by browsers.
func kindOf(name string) string {
	kinds := map[string]string{
		".js":  "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml",
		".txt": "text/plain; charset=utf-8",
	}
	kind, known := kinds[path.Ext(name)]
	if !known {
		panic("ui: the asset " + name + " has an ending without a content type")
	}
	return kind
}

// ServeHTTP sends an asset. Names stay the same from version to version, so a
// browser has to ask each time, and is told with 304 that nothing changed.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, found := a[r.PathValue("path")]
	if !found {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Content-Type", file.kind)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", file.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}
