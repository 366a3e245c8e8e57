package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"testing"

	"github.com/tandem-tune/tandem/problem"
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
	asked := func(method, path string) answer {
		return s.do(ask{method: method, path: path, header: map[string]string{"Cookie": text, "Accept-Encoding": "gzip"}})
	}
	packed := asked("GET", path)
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
	if short := asked("GET", "/api/v1/workers"); short.status != 200 || short.header.Get("Content-Encoding") != "" || !json.Valid(short.body) {
		t.Errorf("%d, %v: %s", short.status, short.header, short.body)
	}
	asked("GET", "/api/v1/studies/none").problem(t, 404, problem.NotFound)
	// A program is answered as it is.
	program := s.do(ask{method: "GET", path: path, token: s.secrets[auth.Viewer], header: map[string]string{"Accept-Encoding": "gzip"}})
	if program.header.Get("Content-Encoding") != "" || !json.Valid(program.body) {
		t.Errorf("%v: %d bytes", program.header, len(program.body))
	}
}
