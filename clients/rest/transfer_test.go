package rest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
)

const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestUploadsAreOpenedAnewForEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, data := range map[string][]byte{"small": []byte("abc"), "large": bytes.Repeat([]byte("x"), 1<<20)} {
			opened := 0
			s := &server{t: t, answer: failing("", status(503), refused)}
			if name == "large" {
				s.answer = failing("", status(404), status(503), refused) // it has no bucket
			}
			if err := s.client().PutArtifact(t.Context(), hash, int64(len(data)), opener(data, &opened)); err != nil {
				t.Fatal(err)
			}
			seen := s.requests()
			if name == "large" {
				if ask := seen[0]; ask.method != "POST" || ask.target != "/api/v1/artifacts/"+hash+"/link" {
					t.Errorf("at first it asked %s %s", ask.method, ask.target)
				}
				seen = seen[1:]
			}
			if opened != 3 || len(seen) != 3 {
				t.Fatalf("%s: opened %d times for %d attempts", name, opened, len(seen))
			}
			for _, one := range seen {
				asks := one.header.Get("Expect") == "100-continue"
				if one.method != "PUT" || one.target != "/api/v1/artifacts/"+hash || one.body != string(data) || asks != (name == "large") {
					t.Errorf("%s %s with %d bytes, asks %v", one.method, one.target, len(one.body), asks)
				}
			}
		}
		s := &server{t: t, answer: always(204, "")}
		if err := s.client().PutArtifact(t.Context(), hash, 0, nil); err != nil || s.requests()[0].body != "" {
			t.Errorf("an empty artifact: %v", err)
		}
	})
}

// broken is a file that cannot be read to its end.
type broken struct{ closed int }

func (b *broken) Read([]byte) (int, error) { return 0, os.ErrPermission }

func (b *broken) Close() error {
	b.closed++
	return nil
}

func TestWhatCannotBeReadIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { checkBroken(t) })
}

func checkBroken(t *testing.T) {
	t.Helper()
	s := &server{t: t, answer: always(204, "")}
	file, opened := &broken{}, 0
	err := s.client().PutArtifact(t.Context(), hash, 10, func() (io.ReadCloser, error) {
		opened++
		return file, nil
	})
	if !errors.Is(err, os.ErrPermission) || problem.Is(err, problem.Unavailable) || file.closed == 0 || opened != 1 {
		t.Errorf("%v, opened %d and closed %d times", err, opened, file.closed)
	}
	opened = 0
	err = s.client().PutArtifact(t.Context(), hash, 10, func() (io.ReadCloser, error) {
		opened++
		return nil, os.ErrNotExist
	})
	if !errors.Is(err, os.ErrNotExist) || opened != 1 {
		t.Errorf("%v, opened %d times", err, opened)
	}
}

// slow is a file of count pieces that come a while apart.
type slow struct {
	count int
	apart time.Duration
}

func (s *slow) Read(into []byte) (int, error) {
	if s.count == 0 {
		return 0, io.EOF
	}
	s.count--
	time.Sleep(s.apart)
	return copy(into, "x"), nil
}

func (s *slow) Close() error { return nil }

func TestTransfersMayLastButNotStandStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, answer: always(204, "")}
		if err := s.client(impatient).PutArtifact(t.Context(), hash, 20, func() (io.ReadCloser, error) { return &slow{20, 40 * time.Second}, nil }); err != nil {
			t.Errorf("a slow upload: %v", err)
		}
		s.answer = func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		began := time.Now()
		err := s.client(impatient).PutArtifact(t.Context(), hash, 2, func() (io.ReadCloser, error) { return &slow{2, 10 * time.Second}, nil })
		if took := time.Since(began); !problem.Is(err, problem.Unavailable) || took != 65*time.Second {
			t.Errorf("an upload nobody answers ended after %v: %v", took, err)
		}

		s.answer = func(_ int, r *http.Request) (*http.Response, error) {
			answer := respond(200, "")
			answer.Body = hanging(r.Context(), "half")
			return answer, nil
		}
		for name, open := range map[string]func(*rest.Client) (io.ReadCloser, error){
			"artifact": func(c *rest.Client) (io.ReadCloser, error) { return c.Artifact(t.Context(), hash) },
			"export":   func(c *rest.Client) (io.ReadCloser, error) { return c.Export(t.Context(), "x", "csv") },
		} {
			stream, err := open(s.client())
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 2)
			if _, err := io.ReadFull(stream, first); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // who reads may take all the time there is
			began = time.Now()
			data, err := io.ReadAll(stream)
			if took := time.Since(began); string(data) != "lf" || err == nil || errors.Is(err, context.Canceled) || took != 45*time.Second {
				t.Errorf("%s: %q and after %v: %v", name, data, took, err)
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDownloadsThatAreCutShortAreErrors(t *testing.T) {
	t.Parallel()
	s := &server{t: t, answer: func(int, *http.Request) (*http.Response, error) { return cut() }}
	stream, err := s.client(impatient).Export(t.Context(), "x", "json")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if data, err := io.ReadAll(stream); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(string(data), "{") {
		t.Errorf("%q: %v", data, err)
	}
	if got := s.requests()[0].target; got != "/api/v1/studies/x/export?format=json" {
		t.Errorf("asked for %s", got)
	}
}

// TestLinksAreFollowedWithoutTheToken has a server whose artifacts are in a bucket. One that
// cannot be reached from here is asked once.
func TestLinksAreFollowedWithoutTheToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		link   string
		bucket func() (*http.Response, error)
		asked  []string // hosts, of two downloads
	}{
		"a bucket": {"http://127.0.0.1:9000/b/x?X-Amz-Signature=1", func() (*http.Response, error) { return respond(200, "from the bucket"), nil },
			[]string{"127.0.0.1:7171", "127.0.0.1:9000", "127.0.0.1:7171", "127.0.0.1:9000"}},
		"one that is far away": {"http://bucket.test/x", func() (*http.Response, error) { return nil, errors.New("no route to host") }, []string{"127.0.0.1:7171", "bucket.test", "127.0.0.1:7171", "127.0.0.1:7171"}},
		"one that refuses":     {"http://bucket.test/x", func() (*http.Response, error) { return respond(403, "<Error>"), nil }, []string{"127.0.0.1:7171", "bucket.test", "127.0.0.1:7171", "127.0.0.1:7171"}},
		"no link":              {"", nil, []string{"127.0.0.1:7171", "127.0.0.1:7171", "127.0.0.1:7171"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				s := &server{t: t, answer: func(_ int, r *http.Request) (*http.Response, error) {
					asked = append(asked, r.URL.Host)
					switch {
					case r.URL.Host != "127.0.0.1:7171":
						if r.Header.Get("Authorization") != "" {
							t.Errorf("%s saw the token", r.URL.Host)
						}
						return c.bucket()
					case r.URL.RawQuery == "direct=true":
						return respond(307, "", "Location", c.link), nil
					default:
						return respond(200, "from the server"), nil
					}
				}}
				client, want := s.client(), "from the server"
				if name == "a bucket" {
					want = "from the bucket"
				}
				for range 2 {
					stream, err := client.Artifact(t.Context(), hash)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := io.ReadAll(stream); err != nil || stream.Close() != nil || string(got) != want {
						t.Errorf("%q, %v", got, err)
					}
				}
				if !slices.Equal(asked, c.asked) {
					t.Errorf("asked were %v, want %v", asked, c.asked)
				}
			})
		})
	}
}
