package ui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// firstLoadLimit is how many bytes a page may take the first time, as they are
// sent: it, and every file that it needs.
const firstLoadLimit = 150_000

var (
	linked    = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)
	preloaded = regexp.MustCompile(`<link rel="modulepreload" href="([^"]+)">`)
	imported  = regexp.MustCompile(`from\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"`)
)

// shells are the addresses of every page, whatever they show.
var shells = []string{"/login", "/studies", "/workers", "/pool", "/ground-truth", "/access", "/studies/lenet", "/studies/lenet/trials/12", "/studies/lenet/compare?trials=1,2",
	"/studies/lenet/charts", "/studies/lenet/edge", "/studies/new", "/compare", "/nowhere"}

// templates are the names of the pages there are.
func templates(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(`{{define "main"}}`)) { // the others are parts of pages
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".html"))
		}
	}
	return names
}

func TestShellsHaveEveryPage(t *testing.T) {
	for _, name := range templates(t) {
		if !slices.ContainsFunc(shells, func(shell string) bool { return strings.Contains(get(t, shell).Body.String(), `class="page-`+name+`"`) }) {
			t.Errorf("no address in shells is one of the page %s: add it, so that it is checked", name)
		}
	}
}

func TestAssetsAreSentOnce(t *testing.T) {
	page := get(t, "/studies/lenet").Body.String()
	base := regexp.MustCompile(`"(/assets/v-[0-9a-f]{16})/board\.js"`).FindStringSubmatch(page)
	if base == nil {
		t.Fatalf("the page names no version of its assets:\n%s", page)
	}
	for address, caching := range map[string]string{
		base[1] + "/board.js": "public, max-age=31536000, immutable", "/assets/board.js": "no-cache", "/assets/v-0123456789abcdef/board.js": "no-cache",
	} {
		first := get(t, address)
		if kind := first.Header().Get("Content-Type"); first.Code != http.StatusOK || kind != "text/javascript; charset=utf-8" || first.Header().Get("Cache-Control") != caching {
			t.Errorf("%s: status %d, type %q, %q", address, first.Code, kind, first.Header().Get("Cache-Control"))
		}
		if again := get(t, address, "If-None-Match", first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s asked again: status %d with %d bytes, want 304 with none", address, again.Code, again.Body.Len())
		}
	}
	for _, wrong := range []string{base[1], base[1] + "/", base[1] + "/none.js", base[1] + base[1] + "/board.js", "/assets/v-01/board.js"} {
		if answer := get(t, wrong); answer.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", wrong, answer.Code)
		}
	}
}

func TestAssetsAreCompressed(t *testing.T) {
	plain := get(t, "/assets/board.js")
	for accepted, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "GZIP": true, "": false, "br": false, "gzip;q=0": false, "identity": false} {
		answer := get(t, "/assets/board.js", "Accept-Encoding", accepted)
		if got := answer.Header().Get("Content-Encoding") == "gzip"; got != packed || answer.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %v", accepted, answer.Header())
		}
		if !packed {
			continue
		}
		if answer.Header().Get("ETag") == plain.Header().Get("ETag") {
			t.Errorf("%q: two forms have one tag", accepted)
		}
		reader, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil || !bytes.Equal(content, plain.Body.Bytes()) {
			t.Errorf("%q: %d bytes of %d, %v", accepted, len(content), plain.Body.Len(), err)
		}
	}
}

// TestTheFirstLoadIsSmall adds up what a browser fetches before a page is there.
func TestTheFirstLoadIsSmall(t *testing.T) {
	for _, shell := range shells {
		page := get(t, shell, "Accept-Encoding", "gzip")
		size, files := page.Body.Len(), []string{}
		for _, match := range linked.FindAllStringSubmatch(page.Body.String(), -1) {
			if !slices.Contains(files, match[1]) {
				files = append(files, match[1])
			}
		}
		for _, file := range files {
			answer := get(t, file, "Accept-Encoding", "gzip")
			if answer.Code != http.StatusOK {
				t.Errorf("%s needs %s: status %d", shell, file, answer.Code)
			}
			size += answer.Body.Len()
		}
		if len(files) < 10 || size > firstLoadLimit {
			t.Errorf("%s takes %d bytes in %d files, at most %d", shell, size, len(files)+1, firstLoadLimit)
		}
		t.Logf("%s: %d bytes in %d files", shell, size, len(files)+1)
	}
}

// Modules that a page does not name in its head would be found one after the
// other, each after a round to the server.
func TestPagesNameEveryModuleTheyNeed(t *testing.T) {
	for _, shell := range shells {
		var named []string
		for _, match := range preloaded.FindAllStringSubmatch(get(t, shell).Body.String(), -1) {
			named = append(named, match[1])
		}
		for _, module := range named {
			for _, match := range importsOf(get(t, module)) {
				if needed := path.Join(path.Dir(module), match); !slices.Contains(named, needed) {
					t.Errorf("%s does not name %s, which %s imports", shell, needed, module)
				}
			}
		}
		if len(named) < 3 {
			t.Errorf("%s names %d modules", shell, len(named))
		}
	}
}

func importsOf(module *httptest.ResponseRecorder) []string {
	var list []string
	for line := range strings.Lines(module.Body.String()) {
		if match := imported.FindStringSubmatch(line); match != nil {
			list = append(list, match[1]+match[2])
		}
	}
	return list
}
