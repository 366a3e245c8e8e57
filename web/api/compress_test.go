package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestPagesGetLongAnswersCompressed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cookie := s.sessionOf(s.secrets[auth.Viewer])
	text := cookie.Name + "=" + cookie.Value
	const path = "/api/v1/openapi.json"
	plain := s.do(withCookie("GET", path, text))
	if plain.status != 200 || plain.header.Get("Content-Encoding") != "" || len(plain.body) < 2<<10 {
		t.Fatalf("%d, %v: %d bytes", plain.status, plain.header, len(plain.body))
	}
	asked := func(path, takes, secret string) answer {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost"
		r.Header.Set("Accept-Encoding", takes)
		if r.Header.Set("Cookie", text); secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		recorder := httptest.NewRecorder()
		s.handler.ServeHTTP(recorder, r)
		return answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	}
	for _, takes := range []string{"gzip", "br, gzip;q=0.5", "GZIP", "deflate, gzip ; q=1.0, *;q=0", "zstd, gzip"} {
		packed := asked(path, takes, "")
		if packed.status != 200 || packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body) || !slices.Contains(packed.header.Values("Vary"), "Accept-Encoding") {
			t.Fatalf("%q: %d, %v: %d bytes", takes, packed.status, packed.header, len(packed.body))
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed.body))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil || !json.Valid(content) || len(content) < 2<<10 {
			t.Errorf("%q: %d bytes of %d, %v", takes, len(content), len(plain.body), err)
		}
	}
	for _, takes := range []string{"", "br", "gzip;q=0", "gzip; q=0.0", "identity", "xgzip"} {
		if got := asked(path, takes, ""); got.status != 200 || got.header.Get("Content-Encoding") != "" || !json.Valid(got.body) {
			t.Errorf("%q: %d, %v", takes, got.status, got.header)
		}
	}
	if short := asked("/api/v1/workers", "gzip", ""); short.status != 200 || short.header.Get("Content-Encoding") != "" || !json.Valid(short.body) {
		t.Errorf("%d, %v: %s", short.status, short.header, short.body)
	}
	asked("/api/v1/studies/none", "gzip", "").problem(t, 404, problem.NotFound)
	// A program is answered as it is.
	program := asked(path, "gzip", s.secrets[auth.Viewer])
	if program.header.Get("Content-Encoding") != "" || !json.Valid(program.body) {
		t.Errorf("%v: %d bytes", program.header, len(program.body))
	}
}
