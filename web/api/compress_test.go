package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tandem-tune/tandem/web/auth"
)

func TestPagesGetAnswersCompressed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cookie := s.sessionOf(s.secrets[auth.Viewer])
	text := cookie.Name + "=" + cookie.Value
	const path = "/api/v1/openapi.json"
	plain := s.do(withCookie("GET", path, text))
	if plain.status != 200 || plain.header.Get("Content-Encoding") != "" || len(plain.body) < 2<<10 {
		t.Fatalf("%d, %v: %d bytes", plain.status, plain.header, len(plain.body))
	}
	asked := func(path, secret string) answer {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost"
		r.Header.Set("Accept-Encoding", "gzip")
		if r.Header.Set("Cookie", text); secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		recorder := httptest.NewRecorder()
		s.handler.ServeHTTP(recorder, r)
		return answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	}
	packed := asked(path, "")
	if packed.status != 200 || packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body) {
		t.Fatalf("%d, %v: %d bytes", packed.status, packed.header, len(packed.body))
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil || !json.Valid(content) || len(content) < 2<<10 {
		t.Errorf("%d bytes of %d, %v", len(content), len(plain.body), err)
	}
	if none := asked("/api/v1/studies/none", ""); none.status != 404 || none.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d, %v", none.status, none.header)
	}
	// A program is answered as it is.
	program := asked(path, s.secrets[auth.Viewer])
	if program.header.Get("Content-Encoding") != "" || !json.Valid(program.body) {
		t.Errorf("%v: %d bytes", program.header, len(program.body))
	}
}
