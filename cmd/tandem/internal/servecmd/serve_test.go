package servecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

func TestTrustedProxiesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"proxy.example.org", "10.0.0.300", "10.0.0.0/33", "0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", "127.0.0.1,"} {
		command := root()
		command.SetArgs([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trusted-proxy", value})
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.ExecuteContext(t.Context())
		var usage term.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "--trusted-proxy") || !strings.Contains(err.Error(), strings.TrimSuffix(value, ",")) && value != "127.0.0.1," {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestAnAddressWithoutAHostIsAWrongFlag: it says what to write instead.
func TestAnAddressWithoutAHostIsAWrongFlag(t *testing.T) {
	t.Parallel()
	for listen, instead := range map[string]string{
		"17173": "127.0.0.1:17173", "": "127.0.0.1:7171", "localhost": "localhost:7171", "::1": "[::1]:7171", "[::1]": "[::1]:7171",
		"127.0.0.1:70000": "127.0.0.1:7171", "127.0.0.1:-1": "127.0.0.1:7171", "170000": "127.0.0.1:7171",
	} {
		code, _, said := command(t, "serve", "--data", t.TempDir(), "--listen", listen)
		if code != term.ExitUsage || !strings.HasSuffix(strings.TrimSpace(said), "write --listen "+instead) {
			t.Errorf("--listen %q ends with %d: %s", listen, code, said)
		}
	}
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if code, _, said := command(t, "serve", "--data", t.TempDir(), "--listen", held.Addr().String()); code != term.ExitFailed || !strings.Contains(said, "with a free port") {
		t.Errorf("a port that is taken ends with %d: %s", code, said)
	}
	for _, elsewhere := range []bool{true, false} { // "tandem run", where no address was given
		p := &Process{options: Options{Listen: held.Addr().String(), Elsewhere: elsewhere}}
		if err := p.listen(); (err == nil) != elsewhere {
			t.Errorf("elsewhere %v: %v", elsewhere, err)
		} else if err == nil {
			p.listener.Close()
		}
	}
}

// TestATrustedProxySaysWhoAsks: two clients behind a proxy, of which one guesses.
func TestATrustedProxySaysWhoAsks(t *testing.T) {
	t.Parallel()
	for flag, others := range map[string]int{"127.0.0.1": http.StatusUnauthorized, "10.0.0.0/8,fd00::1": http.StatusTooManyRequests} {
		ctx, stop := context.WithCancel(t.Context())
		read, write := io.Pipe()
		command := root()
		command.SetArgs([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trusted-proxy", flag})
		command.SetOut(write)
		command.SetErr(io.Discard)
		ended := make(chan error, 1)
		go func() {
			ended <- command.ExecuteContext(ctx)
			write.Close()
		}()
		greeting, err := bufio.NewReader(read).ReadString('\n')
		if err != nil {
			t.Fatalf("%v, %v", err, <-ended)
		}
		go io.Copy(io.Discard, read)
		address := regexp.MustCompile(`http://[0-9.:]+`).FindString(greeting)
		guess := func(client string) int {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/session", strings.NewReader(`{"token":"tandem_admin_guess"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Forwarded-For", "6.6.6.6, "+client)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			return response.StatusCode
		}
		for range 10 {
			guess("192.0.2.66")
		}
		if one, other := guess("192.0.2.66"), guess("192.0.2.7"); one != http.StatusTooManyRequests || other != others {
			t.Errorf("--trusted-proxy %s: the one that guesses is told %d, the other %d, want %d", flag, one, other, others)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A server on all addresses names one under which it answers.
func TestTheGreetingHasAnAddressToUse(t *testing.T) {
	for name, flags := range map[string][]string{"localhost": nil, "tuning.example.org": {"--allow-host", "tuning.example.org"}} {
		greeting, end := serving(t, t.TempDir(), append(flags, "--listen", "0.0.0.0:0", "--plain-http")...)
		if !regexp.MustCompile(`answers at http://`+name+`:\d+,`).MatchString(greeting) || strings.Contains(greeting, "[::]") {
			t.Errorf("%s: %s", name, greeting)
		}
		end()
	}
}

// TestIdleConnectionsKeepNoDeepStack: the server's own count of its stacks is compared
// before and after 400 connections have each made a request and stay open.
func TestIdleConnectionsKeepNoDeepStack(t *testing.T) {
	t.Setenv("GOGC", "off") // the collector makes stacks smaller, some time
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	greeting, _ := serving(t, t.TempDir())
	token := regexp.MustCompile(`tandem_admin_\w+`).FindString(greeting)
	ask := func(connection net.Conn, method, path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, address.FindString(greeting)+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		if err := r.Write(connection); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(connection), r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, text, err)
		}
		return string(text)
	}
	dial := func() net.Conn {
		connection, err := net.Dial("tcp", strings.TrimPrefix(address.FindString(greeting), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	stacks := func() float64 {
		found := regexp.MustCompile(`(?m)^go_memstats_stack_inuse_bytes (.*)$`).FindStringSubmatch(ask(dial(), http.MethodGet, "/metrics", ""))
		if found == nil {
			t.Fatal("no count of stacks")
		}
		bytes, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	const connections = 400
	before := stacks()
	for i := range connections {
		ask(dial(), http.MethodPost, "/api/v1/workers", fmt.Sprintf(`{"id":"worker-%d","name":"idle","slots":1,"machine":{"cores":1,"host":"here"}}`, i))
	}
	if each := (stacks() - before) / connections; each > 12<<10 {
		t.Errorf("an idle connection keeps a stack of %.0f bytes", each)
	}
}

// TestAnAbortedAnswerIsNotTakenForWhole: a handler on another goroutine aborts as well.
func TestAnAbortedAnswerIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(inTurns(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("part"))
		w.(http.Flusher).Flush()
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	})))
	defer server.Close()
	for path, want := range map[string]error{"/": nil, "/abort": io.ErrUnexpectedEOF} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(response.Body); string(text) != "part" || !errors.Is(err, want) {
			t.Errorf("%s: %q, %v, want %v", path, text, err, want)
		}
		response.Body.Close()
	}
}

// TestALargeServerMayTakeMoreMemory: the bound follows what is in use, both ways. The
// large object is never written, so it takes no memory.
func TestALargeServerMayTakeMoreMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	serving(t, t.TempDir())
	settles := func(what string, holds func(limit int64) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(debug.SetMemoryLimit(-1)); {
			if time.Now().After(end) {
				t.Fatalf("%s, the limit is %d MiB", what, debug.SetMemoryLimit(-1)>>20)
			}
			runtime.GC()
		}
	}
	settles("with a small heap", func(limit int64) bool { return limit == roomy })
	large := make([]byte, 700<<20)
	settles("with 700 MiB in use", func(limit int64) bool { return limit >= 1400<<20 })
	runtime.KeepAlive(large)
	settles("with a small heap again", func(limit int64) bool { return limit == roomy })
}
