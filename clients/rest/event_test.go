package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
)

func event(sequence int64) string {
	return fmt.Sprintf("id: %d\nevent: report\ndata: {\"study_id\":\"s\",\"sequence\":%d,\"kind\":\"report\"}\n\n", sequence, sequence)
}

// collect follows until the last event or an error.
func collect(ctx context.Context, client *rest.Client, after, last int64) ([]int64, error) {
	var sequences []int64
	for event, err := range client.Events(ctx, "small", after) {
		if err != nil {
			return sequences, err
		}
		sequences = append(sequences, event.Sequence)
		if event.Sequence == last {
			return sequences, nil
		}
	}
	return sequences, errors.New("the events ended without an error")
}

func TestEventsGoOnBehindTheLastOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		streams := []func(r *http.Request) (*http.Response, error){
			func(*http.Request) (*http.Response, error) {
				return respond(200, "retry: 1000\n\n"+event(4)+": alive\n\n"+event(5)+"id: 6\nevent: report\ndata: {\"stu"), nil
			},
			func(*http.Request) (*http.Response, error) { return refused() },
			func(*http.Request) (*http.Response, error) { return respond(503, ""), nil },
			func(*http.Request) (*http.Response, error) {
				// A server that sends again what was seen, in the other spellings the format allows.
				return respond(200, strings.ReplaceAll(event(5)+event(6), "\n", "\r\n")+"data:{\"sequence\":7,\ndata:\"kind\":\"report\"}\n\n"), nil
			},
			func(r *http.Request) (*http.Response, error) { // one that falls silent
				answer := respond(200, "")
				answer.Body = hanging(r.Context(), event(8))
				return answer, nil
			},
			func(*http.Request) (*http.Response, error) { return respond(200, event(9)), nil },
		}
		s := &server{t: t, answer: func(attempt int, r *http.Request) (*http.Response, error) { return streams[attempt-1](r) }}
		began := time.Now()
		got, err := collect(t.Context(), s.client(), 3, 9)
		if err != nil || fmt.Sprint(got) != "[4 5 6 7 8 9]" {
			t.Fatalf("%v: %v", got, err)
		}
		if took := time.Since(began); took < 45*time.Second || took > 55*time.Second {
			t.Errorf("it took %v, of which 45 s of silence", took)
		}
		var behind []string
		for _, one := range s.requests() {
			behind = append(behind, one.header.Get("Last-Event-ID"))
			if !strings.HasSuffix(one.target, "/studies/small/events?after="+one.header.Get("Last-Event-ID")) {
				t.Errorf("asked for %s behind %s", one.target, one.header.Get("Last-Event-ID"))
			}
		}
		if fmt.Sprint(behind) != "[3 5 5 5 7 8]" {
			t.Errorf("asked behind %v", behind)
		}
	})
}

func TestSignsOfLifeKeepAStreamOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, answer: func(_ int, r *http.Request) (*http.Response, error) {
			answer := respond(200, "")
			answer.Body = &slowly{ctx: r.Context(), pieces: append(repeated(": alive\n\n", 20), event(1))}
			return answer, nil
		}}
		if got, err := collect(t.Context(), s.client(), 0, 1); err != nil || len(got) != 1 || len(s.requests()) != 1 {
			t.Fatalf("%v after %d connections: %v", got, len(s.requests()), err)
		}
	})
}

func repeated(text string, count int) []string {
	return strings.SplitAfter(strings.Repeat(text, count), "\n\n")[:count]
}

// slowly says a piece every 15 seconds.
type slowly struct {
	ctx    context.Context
	pieces []string
}

func (s *slowly) Read(into []byte) (int, error) {
	select {
	case <-time.After(15 * time.Second):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	count := copy(into, s.pieces[0])
	s.pieces = s.pieces[1:]
	return count, nil
}

func (s *slowly) Close() error { return nil }

func TestEventsEndForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			answer func(int, *http.Request) (*http.Response, error)
			code   problem.Code
		}{
			"deleted":        {always(404, `{"code":"not_found","detail":"gone"}`), problem.NotFound},
			"no longer mine": {always(401, ""), problem.Unauthorized},
			"nobody there":   {func(int, *http.Request) (*http.Response, error) { return refused() }, problem.Unavailable},
			"nonsense":       {always(200, "data: {]\n\n"), problem.Internal},
			"a flood":        {always(200, "data: "+strings.Repeat("x", 17<<20)+"\n\n"), problem.Exhausted},
		} {
			s := &server{t: t, answer: c.answer}
			if got, err := collect(t.Context(), s.client(), 0, 1); !problem.Is(err, c.code) || len(got) != 0 {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		quiet := &server{t: t, answer: func(_ int, r *http.Request) (*http.Response, error) {
			answer := respond(200, "")
			answer.Body = hanging(r.Context(), ": alive\n\n")
			return answer, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		if _, err := collect(ctx, quiet.client(), 0, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ended: %v", err)
		}
	})
}

// FuzzEvents feeds a stream of bytes to the reader of events: what it yields
// must come in order, and it must not fail in another way than it says.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{event(1) + event(2), event(2) + event(1), ": x\n\n", "data: 1\n\n", "data: {}\n\n", "data\ndata:\n\n", "\r\r\n\n", "data: {\"sequence\":9223372036854775807}\n\n", "data: null\n\n" + event(3)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		synctest.Test(t, func(t *testing.T) { checkOrder(t, stream) })
	})
}

func checkOrder(t *testing.T, stream string) {
	t.Helper()
	s := &server{t: t, answer: func(attempt int, _ *http.Request) (*http.Response, error) {
		if attempt > 1 {
			return respond(404, ""), nil
		}
		return respond(200, stream), nil
	}}
	var last int64
	for event, err := range s.client(impatient).Events(t.Context(), "x", 0) {
		if err != nil {
			if !problem.Is(err, problem.Internal) && !problem.Is(err, problem.NotFound) && !problem.Is(err, problem.Exhausted) {
				t.Fatalf("%v", err)
			}
			return
		}
		if event.Sequence <= last {
			t.Fatalf("event %d behind %d", event.Sequence, last)
		}
		last = event.Sequence
	}
}

// FuzzProblem feeds answers to the reader of problem documents.
func FuzzProblem(f *testing.F) {
	for _, seed := range []string{`{"code":"invalid","detail":"x","errors":[{"path":"a","message":"b","value":{"c":[1]},"line":2}]}`, `{"code":""}`, `{"errors":{}}`, `[`, "", "\xff"} {
		f.Add(422, seed)
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		if code < 300 || code > 599 {
			t.Skip()
		}
		s := &server{t: t, answer: always(code, body)}
		_, err := s.client(impatient).Studies(t.Context())
		var told *problem.Error
		if !errors.As(err, &told) || told.Code == "" {
			t.Fatalf("%d %q is answered with %#v", code, body, err)
		}
	})
}
