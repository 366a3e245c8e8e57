package ui_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/ui"
)

// get asks the pages alone, without a server around them.
func get(t *testing.T, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	ui.Handler().ServeHTTP(answer, request)
	return answer
}

func TestEveryPageIsServedWithAStrictPolicy(t *testing.T) {
	for path, status := range map[string]int{
		"/login": 200, "/studies": 200, "/studies/new": 200, "/workers": 200, "/pool": 200, "/ground-truth": 200, "/access": 200, "/compare": 200, "/studies/lenet/edge": 200, "/studies/lenet": 200, "/studies/lenet/charts": 200, "/studies/lenet/compare": 200, "/studies/lenet/trials/12": 200,
		"/": 303, "/studies/lenet/trials/twelve": 404, "/studies/lenet/trials/-1": 404, "/nowhere": 404,
		"/assets/study.js": 200, "/assets/theme.css": 200, "/assets/icon.svg": 200, "/assets/vendor/uplot/uPlot.js": 200,
		"/assets/": 404, "/assets/none.js": 404, "/assets/vendor": 404, "/assets/..%2fui.go": 404,
	} {
		answer := get(t, path)
		if answer.Code != status {
			t.Errorf("%s: status %d, want %d", path, answer.Code, status)
		}
		policy := answer.Header().Get("Content-Security-Policy")
		for _, needed := range []string{"default-src 'self'", "script-src 'self'", "style-src 'self'", "object-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
			if !strings.Contains(policy, needed) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, needed)
			}
		}
		if strings.Contains(policy, "unsafe") || answer.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, answer.Header())
		}
	}
}

func TestNothingIsInline(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?:[^>]*)>[^<]`)
	for _, path := range []string{"/login", "/studies", "/studies/new", "/workers", "/pool", "/ground-truth", "/access", "/compare", "/studies/lenet/edge", "/studies/lenet", "/studies/lenet/charts", "/studies/lenet/trials/12", "/nowhere"} {
		if found := inline.FindString(get(t, path).Body.String()); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

func TestAStudysNameIsEscapedInThePage(t *testing.T) {
	for _, path := range []string{`/studies/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E`, `/studies/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E/trials/3`} {
		answer := get(t, path)
		if body := answer.Body.String(); answer.Code != 200 || strings.Contains(body, "<script>alert") || !strings.Contains(body, "&lt;script&gt;alert") {
			t.Errorf("%s: status %d: %s", path, answer.Code, body)
		}
	}
}

// Data may enter the pages as text only: what turns text into markup or code
// is not used at all.
func TestModulesMakeNoMarkupFromText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b|new Function|setAttribute\("on|https?://`)
	files, err := filepath.Glob("assets/*.js")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d modules: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The name of the namespace is no address: nothing is fetched from it.
		content = bytes.ReplaceAll(content, []byte("http://www.w3.org/2000/svg"), nil)
		if found := forbidden.Find(content); found != nil {
			t.Errorf("%s has %s", file, found)
		}
		if lines := strings.Count(string(content), "\n"); lines > 400 {
			t.Errorf("%s has %d lines, at most 400", file, lines)
		}
	}
}

func TestVendoredFilesAreWhatWasReviewed(t *testing.T) {
	folders, err := filepath.Glob("assets/vendor/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d folders: %v", len(folders), err)
	}
	for _, folder := range append(folders, "testdata/axe") {
		checkVendored(t, folder)
	}
}

func checkVendored(t *testing.T, folder string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS.txt"))
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]string{"SHA256SUMS.txt": "", "VERSION.txt": ""}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		recorded[name] = sum
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != len(recorded) {
		t.Fatalf("%d files, %d recorded: %v", len(entries), len(recorded), err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if want, known := recorded[entry.Name()]; !known || want != "" && hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s/%s is not the file whose checksum is recorded: see scripts/vendor-assets", folder, entry.Name())
		}
	}
}

func TestPagesNeedASession(t *testing.T) {
	s := newStage(t)
	for path, public := range map[string]bool{"/login": true, "/assets/login.js": true, "/studies": false, "/workers": false, "/pool": false, "/ground-truth": false, "/access": false, "/compare": false, "/studies/any/edge": false, "/studies/any": false, "/nowhere": false} {
		answer := s.fetch(path, "")
		if public != (answer.StatusCode == http.StatusOK) || !public && answer.Header.Get("Location") != "/login?next="+url.QueryEscape(path) {
			t.Errorf("%s without a session: %s, to %q", path, answer.Status, answer.Header.Get("Location"))
		}
	}
	answer := s.fetch("/studies", s.tokens[auth.Viewer])
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "No study yet") {
		t.Errorf("/studies with a session: %s, %v: %s", answer.Status, err, body)
	}
	for _, header := range []string{"Content-Security-Policy", "Referrer-Policy", "X-Frame-Options"} {
		if answer.Header.Get(header) == "" {
			t.Errorf("/studies has no %s", header)
		}
	}
}
