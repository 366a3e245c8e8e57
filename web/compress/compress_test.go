package compress_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/web/compress"
)

func TestAccepts(t *testing.T) {
	for given, want := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "GZIP": true, "deflate, gzip ; q=1.0, *;q=0": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "identity": false, "xgzip": false,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Accept-Encoding", given)
		if got := compress.Accepts(request); got != want {
			t.Errorf("%q: %t", given, got)
		}
	}
}

func TestALongAnswerIsCompressed(t *testing.T) {
	for _, size := range []int{0, 1, 2048, 2049, 100_000} {
		recorder := httptest.NewRecorder()
		w := compress.NewWriter(recorder)
		w.Header().Set("Content-Length", "1")
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot) // comes too late
		want := strings.Repeat("x", size)
		for piece := range strings.SplitSeq(want, "") {
			if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		long := size > 2048
		if got := recorder.Header().Get("Content-Encoding") == "gzip"; recorder.Code != http.StatusAccepted || got != long || recorder.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%d bytes: status %d, %v", size, recorder.Code, recorder.Header())
		}
		body := io.Reader(recorder.Body)
		if long {
			if recorder.Header().Get("Content-Length") != "" {
				t.Errorf("%d bytes: %v", size, recorder.Header())
			}
			unpacked, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacked
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != want {
			t.Errorf("%d bytes came as %d, %v", size, len(got), err)
		}
	}
}

func TestNoAnswerStaysNone(t *testing.T) {
	recorder := httptest.NewRecorder()
	recorder.Code = 0
	if err := compress.NewWriter(recorder).Close(); err != nil || recorder.Code != 0 || recorder.Body.Len() > 0 {
		t.Errorf("%d, %v", recorder.Code, err)
	}
}
