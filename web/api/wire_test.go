package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// wire is a server on connections in memory, so that the time of a synctest
// bubble is the time of its deadlines.
type wire struct {
	*stage
	dialled chan net.Conn
	closed  chan struct{}
}

// onWire runs a test in a bubble. shutDown ends the server as the command does.
func onWire(t *testing.T, run func(w *wire, shutDown func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{stage: build(t), dialled: make(chan net.Conn), closed: make(chan struct{})}
		server := api.NewHTTPServer("", w.handler, slog.New(slog.DiscardHandler))
		base, end := context.WithCancel(t.Context())
		server.BaseContext = func(net.Listener) context.Context { return base }
		served := make(chan error, 1)
		go func() { served <- server.Serve(w) }()
		run(w, func() {
			end()
			if err := server.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		end()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case connection := <-w.dialled:
		return connection, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	close(w.closed)
	return nil
}

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7171} }

// say connects and sends the lines of a request's head, and what follows it.
func (w *wire) say(body string, head ...string) net.Conn {
	w.t.Helper()
	ours, theirs := net.Pipe()
	w.dialled <- theirs
	if _, err := io.WriteString(ours, strings.Join(head, "\r\n")+body); err != nil {
		w.t.Fatal(err)
	}
	return ours
}

// answered reads one answer and then the end of the connection.
func (w *wire) answered(connection net.Conn) answer {
	w.t.Helper()
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		w.t.Errorf("the connection is still open: %v", err)
	}
	return answer{response.StatusCode, response.Header, body}
}

const host = "Host: localhost"

func (w *wire) bearer(scope auth.Scope) string { return "Authorization: Bearer " + w.secrets[scope] }

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		began := time.Now()
		connection := w.say("", "GET /healthz HTTP/1.1", host, "X-Slow: ")
		if _, err := io.ReadAll(connection); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Fatalf("cut off after %v", took)
		}
	})
}

func TestSlowBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		for name, c := range map[string]struct {
			head   []string
			status int
			code   problem.Code
		}{
			"a call":         {[]string{"POST /api/v1/leases HTTP/1.1", w.bearer(auth.Worker)}, 408, problem.Unavailable},
			"without token":  {[]string{"POST /api/v1/leases HTTP/1.1"}, 401, problem.Unauthorized},
			"without route":  {[]string{"POST /api/v1/nothing HTTP/1.1", w.bearer(auth.Worker)}, 404, problem.NotFound},
			"a page":         {[]string{"POST /studies HTTP/1.1"}, 405, problem.Invalid},
			"a GET":          {[]string{"GET /api/v1/workers HTTP/1.1"}, 401, problem.Unauthorized},
			"in chunks":      {[]string{"POST /api/v1/leases HTTP/1.1", "Transfer-Encoding: chunked"}, 401, problem.Unauthorized},
			"a foreign host": {[]string{"POST /api/v1/leases HTTP/1.1", "Host: evil.test"}, 403, problem.Forbidden},
		} {
			head := c.head
			if !strings.Contains(strings.Join(head, " "), "Host:") {
				head = append(head, host)
			}
			if !strings.Contains(strings.Join(head, " "), "chunked") {
				head = append(head, "Content-Length: 100")
			}
			began := time.Now()
			got := w.answered(w.say("", append(head, "", "")...))
			got.problem(t, c.status, c.code)
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("%s: cut off after %v", name, took)
			}
		}
	})
}

func TestUploadsMayLastButNotStandStill(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		connection := w.say("", "PUT /api/v1/artifacts/"+strings.Repeat("0", 64)+" HTTP/1.1", host, w.bearer(auth.Worker), "Content-Length: 200000", "", "")
		began := time.Now()
		for range 10 { // far longer than a call may last
			time.Sleep(50 * time.Second)
			if _, err := io.WriteString(connection, strings.Repeat("x", 16<<10)); err != nil {
				t.Fatal(err)
			}
		}
		w.answered(connection).problem(t, 408, problem.Unavailable)
		if took := time.Since(began); took != 560*time.Second {
			t.Fatalf("cut off after %v", took)
		}
		// A byte now and then is no progress.
		connection = w.say("", "PUT /api/v1/artifacts/"+strings.Repeat("0", 64)+" HTTP/1.1", host, w.bearer(auth.Worker), "Content-Length: 200000", "", "")
		began = time.Now()
		for range 5 {
			time.Sleep(10 * time.Second)
			if _, err := io.WriteString(connection, "x"); err != nil {
				t.Fatal(err)
			}
		}
		w.answered(connection).problem(t, 408, problem.Unavailable)
		if took := time.Since(began); took != 60*time.Second {
			t.Fatalf("an upload that crawls is cut off after %v", took)
		}
	})
}

// TestUploadOfWhatIsThereAlreadyIsReadByUs sends an artifact again as a client
// does that reads no answer before it has sent everything.
func TestUploadOfWhatIsThereAlreadyIsReadByUs(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		data := strings.Repeat("weights!", 1<<17)
		for range 2 {
			connection := w.say(data, "PUT /api/v1/artifacts/"+hashOf([]byte(data))+" HTTP/1.1", host, w.bearer(auth.Worker),
				fmt.Sprintf("Content-Length: %d", len(data)), "Connection: close", "", "")
			if got := w.answered(connection); got.status != 204 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
	})
}

// stream opens an event stream and returns what comes behind its head.
func (w *wire) stream(study string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	connection := w.say("", "GET /api/v1/studies/"+study+"/events HTTP/1.1", host, w.bearer(auth.Viewer), "", "")
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	return connection, bufio.NewReader(response.Body)
}

func (w *wire) expect(reader *bufio.Reader, prefixes ...string) {
	w.t.Helper()
	for _, prefix := range prefixes {
		line, err := reader.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, prefix) {
			w.t.Fatalf("%q (%v), want %q", line, err, prefix)
		}
	}
}

func TestQuietEventStreamsSayThatTheyAreAlive(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		view := w.stored()
		connection, reader := w.stream(view)
		defer connection.Close()
		w.expect(reader, "retry: ", "\n", "id: 1\n", "event: study_created\n", "data: {", "\n")
		for range 20 { // five minutes: longer than any call may last
			began := time.Now()
			w.expect(reader, ": alive\n", "\n")
			if took := time.Since(began); took != 15*time.Second {
				t.Fatalf("a sign of life after %v", took)
			}
		}
		if _, err := w.studies.Pause(t.Context(), view); err != nil {
			t.Fatal(err)
		}
		w.expect(reader, "id: 2\n", "event: study_status\n", "data: {", "\n")
	})
}

func TestEventStreamsEndCleanlyWhenTheServerDoes(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, shutDown func()) {
		_, reader := w.stream(w.stored())
		w.expect(reader, "retry: ", "\n", "id: 1\n", "event: ", "data: ", "\n")
		began := time.Now()
		down := make(chan struct{})
		go func() {
			shutDown()
			close(down)
		}()
		if rest, err := io.ReadAll(reader); err != nil || len(rest) != 0 {
			t.Fatalf("%q: %v", rest, err) // an end that is not announced is an error here
		}
		<-down
		if took := time.Since(began); took > time.Second {
			t.Fatalf("it took %v", took)
		}
	})
}

func TestLongPollsEndWhenTheServerDoes(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, shutDown func()) {
		w.introduce()
		body := fmt.Sprintf(`{"worker":%q,"wait_seconds":60}`, workerID)
		connection := w.say(body, "POST /api/v1/leases HTTP/1.1", host, w.bearer(auth.Worker), fmt.Sprintf("Content-Length: %d", len(body)), "", "")
		synctest.Wait()
		down := make(chan struct{})
		go func() {
			shutDown()
			close(down)
		}()
		got := w.answered(connection)
		got.problem(t, 503, problem.Unavailable)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		<-down
	})
}

func TestLongPollsOutlastTheTimeOfABody(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		w.introduce()
		body := fmt.Sprintf(`{"worker":%q,"wait_seconds":60}`, workerID)
		began := time.Now()
		connection := w.say(body, "POST /api/v1/leases HTTP/1.1", host, w.bearer(auth.Worker), "Connection: close", fmt.Sprintf("Content-Length: %d", len(body)), "", "")
		got := w.answered(connection)
		if took := time.Since(began); got.status != 200 || strings.TrimSpace(string(got.body)) != "{}" || took != time.Minute {
			t.Fatalf("after %v: %d %s", took, got.status, got.body)
		}
	})
}

func TestEventStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		_, reader := w.stream(w.stored())
		w.expect(reader, "retry: ", "\n", "id: 1\n", "event: ", "data: ", "\n")
		tokens, err := w.store.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			if token.Scope == auth.Viewer {
				if err := w.store.DeleteToken(t.Context(), token.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.pass(time.Minute) // the clock of the tokens is the stage's own
		if rest, err := io.ReadAll(reader); err != nil || string(rest) != "" {
			t.Fatalf("%q: %v", rest, err)
		}
	})
}
