package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
)

// exchange is one request that reached the server, and when.
type exchange struct {
	method, target, body string
	header               http.Header
	at                   time.Time
}

// server answers requests without a network, so that time can be simulated.
type server struct {
	t      testing.TB
	answer func(attempt int, r *http.Request) (*http.Response, error)

	mutex sync.Mutex
	seen  []exchange
}

// RoundTrip reads the request as a server would and has it answered.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	one := exchange{method: r.Method, target: r.URL.RequestURI(), header: r.Header.Clone(), at: time.Now()}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if closed := r.Body.Close(); err != nil || closed != nil {
			return nil, errors.Join(err, closed)
		}
		one.body = string(body)
	}
	s.mutex.Lock()
	s.seen = append(s.seen, one)
	attempt := len(s.seen)
	s.mutex.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return s.answer(attempt, r)
}

func (s *server) requests() []exchange {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]exchange(nil), s.seen...)
}

// client is a client of the server; adapt changes how it is made.
func (s *server) client(adapt ...func(*rest.Options)) *rest.Client {
	s.t.Helper()
	options := rest.Options{URL: "http://127.0.0.1:7171", Token: "secret", HTTPClient: &http.Client{Transport: s}, UserAgent: "test/1"}
	for _, change := range adapt {
		change(&options)
	}
	client, err := rest.New(options)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func impatient(o *rest.Options) { o.Patience = -1 }

// respond makes an answer; headers come in pairs.
func respond(status int, body string, headers ...string) *http.Response {
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Header: header,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func always(status int, body string, headers ...string) func(int, *http.Request) (*http.Response, error) {
	return func(int, *http.Request) (*http.Response, error) { return respond(status, body, headers...), nil }
}

// failing answers with the failures one after the other, and then well.
func failing(body string, failures ...func() (*http.Response, error)) func(int, *http.Request) (*http.Response, error) {
	return func(attempt int, _ *http.Request) (*http.Response, error) {
		if attempt <= len(failures) {
			return failures[attempt-1]()
		}
		return respond(200, body), nil
	}
}

func status(code int, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return respond(code, "", headers...), nil }
}

func refused() (*http.Response, error) { return nil, errors.New("connection refused") }

// cut answers with a body that breaks off.
func cut() (*http.Response, error) {
	answer := respond(200, "")
	answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"studies":[`), breaking{}))
	return answer, nil
}

type breaking struct{}

func (breaking) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// hanging is a body that says what it has and then nothing until its request
// is given up.
func hanging(ctx context.Context, said string) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		if _, err := io.WriteString(writer, said); err != nil {
			return
		}
		<-ctx.Done()
		writer.CloseWithError(ctx.Err())
	}()
	return reader
}

func opener(data []byte, opened *int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		*opened++
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

func encode(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
