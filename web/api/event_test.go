package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// events follows what happens in a study behind the sequence, as a page does: a broken
// connection is made again. What is refused is the last error.
func (s *stage) events(ctx context.Context, who auth.Scope, study string, after int64) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for {
			r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/v1/studies/%s/events?after=%d", s.server.URL, study, after), nil)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+s.secrets[who])
			response, err := http.DefaultClient.Do(r)
			switch {
			case ctx.Err() != nil:
				yield(protocol.Event{}, ctx.Err())
				return
			case err != nil:
				continue
			case response.StatusCode != http.StatusOK:
				var told problem.Error
				err := json.NewDecoder(response.Body).Decode(&told)
				response.Body.Close()
				yield(protocol.Event{}, errors.Join(&told, err))
				return
			}
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				data, is := strings.CutPrefix(lines.Text(), "data: ")
				if !is {
					continue
				}
				var event protocol.Event
				err := json.Unmarshal([]byte(data), &event)
				if after = event.Sequence; !yield(event, err) {
					response.Body.Close()
					return
				}
			}
			response.Body.Close()
		}
	}
}

func TestEventsAreReplayedAndFollowed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	live := make(chan protocol.Event, 100)
	ended := make(chan error, 1)
	go func() {
		for event, err := range s.events(ctx, auth.Viewer, "small", 0) {
			if err != nil {
				ended <- err
				return
			}
			live <- event
		}
	}()
	first := <-live
	if first.Sequence != 1 || first.Kind != "study_created" || first.Data == nil {
		t.Fatalf("the replay begins with %+v", first)
	}
	lease := s.lease(worker)
	s.train(worker, lease, 0.5)
	want := int64(2)
	kinds := map[string]bool{}
	for !kinds["report"] || !kinds["trial_state"] || !kinds["search"] {
		event := <-live
		if event.Sequence != want {
			t.Fatalf("event %d came instead of %d", event.Sequence, want)
		}
		kinds[event.Kind] = true
		want++
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v", err)
	}
	for event, err := range s.events(t.Context(), auth.Viewer, "small", 2) {
		if err != nil || event.Sequence != 3 {
			t.Fatalf("behind 2 comes %+v: %v", event, err)
		}
		break
	}
}

// TestEventStreamOnTheWire reads what a browser would.
func TestEventStreamOnTheWire(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	s.worker()
	s.lease(s.client(auth.Worker))
	for name, c := range map[string]struct{ query, last, id string }{
		"from the start": {"", "", "1"}, "by query": {"?after=1", "", "2"}, "by header": {"", "2", "3"}, "header wins": {"?after=1", "2", "3"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.server.URL+"/api/v1/studies/small/events"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.secrets[auth.Viewer])
		if c.last != "" {
			r.Header.Set("Last-Event-ID", c.last)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("%s: type %q", name, got)
		}
		lines := bufio.NewScanner(response.Body)
		var block []string
		for lines.Scan() && (lines.Text() != "" || len(block) < 3) {
			if lines.Text() == "" || strings.HasPrefix(lines.Text(), "retry:") {
				continue
			}
			block = append(block, lines.Text())
		}
		response.Body.Close()
		if len(block) != 3 || block[0] != "id: "+c.id || !strings.HasPrefix(block[1], "event: ") || !strings.HasPrefix(block[2], `data: {"study_id":`) {
			t.Errorf("%s: %q", name, block)
		}
	}
}

func TestEventsGoOnWhenTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	var last int64
	trained := 0
	for event, err := range s.events(t.Context(), auth.Viewer, "small", 0) {
		if err != nil || event.Sequence != last+1 {
			t.Fatalf("event %d behind %d: %v", event.Sequence, last, err)
		}
		last = event.Sequence
		if trained < 3 && event.Kind != "search" {
			s.server.CloseClientConnections()
			s.train(worker, s.lease(worker), 1)
			trained++
		}
		if trained == 3 && event.Kind == "report" {
			return
		}
	}
	t.Fatal("the events ended")
}

func TestEventsEndWithTheStudyOrTheToken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	var last error
	for _, err := range s.events(t.Context(), auth.Viewer, "small", 0) {
		if err != nil {
			last = err
			break
		}
		if err := s.client(auth.Admin).DeleteStudy(t.Context(), "small"); err != nil && !problem.Is(err, problem.NotFound) {
			t.Fatal(err)
		}
	}
	if !problem.Is(last, problem.NotFound) {
		t.Fatalf("a deleted study's events ended with %v", last)
	}
	for _, err := range s.events(t.Context(), auth.Viewer, "none", 0) {
		if !problem.Is(err, problem.NotFound) {
			t.Fatalf("no study: %v", err)
		}
	}
	for _, err := range s.events(t.Context(), auth.Worker, "small", 0) {
		if !problem.Is(err, problem.Forbidden) {
			t.Fatalf("a worker's token: %v", err)
		}
	}
}
