package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// asset is one embedded file, ready to be sent.
type asset struct {
	content []byte
	packed  func() []byte   // the same, compressed with gzip when it is first asked for; nil where that makes it no smaller
	kind    string          // its Content-Type
	tag     string          // its ETag: embedded files have no modification time
	imports func() []string // the modules that it imports, by their path under /assets/
}

// assets are all embedded files.
type assets struct {
	files map[string]asset // by their path under /assets/
	// base is the folder that pages name them under. It has the hash of them all:
	// what is below it never changes, so that a browser asks once.
	base string
}

// embedded reads every file, when the first is needed.
var embedded = sync.OnceValue(newAssets)

// newAssets panics for a type that is missing from kindOf: a programming error.
func newAssets() *assets {
	list := &assets{files: make(map[string]asset)}
	all := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		all.Write([]byte(name))
		all.Write(sum[:])
		name = strings.TrimPrefix(name, "assets/")
		list.files[name] = asset{
			content: content, kind: kindOf(name), tag: hex.EncodeToString(sum[:16]),
			packed: sync.OnceValue(func() []byte { return pack(content) }), imports: sync.OnceValue(func() []string { return importsOf(name, content) }),
		}
		return nil
	})
	if err != nil {
		panic("ui: the embedded assets cannot be read: " + err.Error())
	}
	list.base = "/assets/v-" + hex.EncodeToString(all.Sum(nil)[:8])
	return list
}

// pack compresses a file as far as gzip goes.
func pack(content []byte) []byte {
	var packed bytes.Buffer
	// The level is a valid one, and a buffer takes every write.
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, _ = writer.Write(content)
	_ = writer.Close()
	if packed.Len() >= len(content) {
		return nil
	}
	return packed.Bytes()
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

var (
	// anyVersion is the part of a path that names a version of the assets.
	anyVersion = regexp.MustCompile(`^v-[0-9a-f]{16}/`)
	// importOf finds what a module imports, over several lines too.
	importOf = regexp.MustCompile(`(?m)^(?:import|export)\s(?:[^;"]*?\sfrom\s+)?"(\.[^"]+)"`)
)

// ServeHTTP sends an asset. Under the present version's name it may be kept for
// good; under any other the browser has to ask each time, and is told with 304
// that nothing changed. A page of another version, which is still open or came
// from a server beside this one, gets what there is now.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wanted, caching := r.PathValue("path"), "no-cache"
	name := strings.TrimPrefix(wanted, anyVersion.FindString(wanted))
	if "/assets/"+wanted == a.base+"/"+name {
		caching = "public, max-age=31536000, immutable"
	}
	file, found := a.files[name]
	if !found {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	header, content, tag := w.Header(), file.content, file.tag
	header.Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		if packed := file.packed(); packed != nil {
			header.Set("Content-Encoding", "gzip")
			header.Set("Content-Length", strconv.Itoa(len(packed)))
			content, tag = packed, file.tag+"-gzip"
		}
	}
	header.Set("Content-Type", file.kind)
	header.Set("Cache-Control", caching)
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// takesGzip reports whether the client takes an answer compressed with gzip.
func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// modules are the files that a module needs, itself first: what a page names in
// its head, so that a browser fetches them at once instead of finding them one
// import after the other.
func (a *assets) modules(name string) []string {
	var list []string
	for next := []string{name}; len(next) > 0; {
		one := next[0]
		next = next[1:]
		file, found := a.files[one]
		if !found || slices.Contains(list, one) {
			continue
		}
		list = append(list, one)
		next = append(next, file.imports()...)
	}
	return list
}

func importsOf(name string, content []byte) (imports []string) {
	for _, match := range importOf.FindAllSubmatch(content, -1) {
		imports = append(imports, path.Join(path.Dir(name), string(match[1])))
	}
	return imports
}
