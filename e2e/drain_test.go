package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestSIGTERMDrains stops a server that has a worker with a trial, a long poll
// and an event stream: both are ended with an answer, and the next start goes on
// where it was.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "drained", nineEpochs, "0.1", 2)
	at := newSite(t)
	at.worker()
	created := read[protocol.StudyView](t, at.must("study", "create", s.file, "--json"))
	until(t, "an acknowledged epoch", func() bool { return len(s.entries("acknowledged")) > 0 })

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ask := func(method, path, body string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, method, at.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		request.Header.Set("Authorization", "Bearer "+at.token)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return nil
		}
		return response
	}
	stream := ask("GET", "/api/v1/studies/"+created.ID+"/events", "")
	if stream == nil {
		return
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if registered := ask("POST", "/api/v1/workers", `{"id":"poll-worker","name":"poll","slots":1,"machine":{"host":"x","cores":1}}`); registered == nil || registered.StatusCode != 200 {
		t.Fatal("the second worker is not registered")
	}
	asked, polled := make(chan struct{}), make(chan *http.Response, 1)
	go func() {
		close(asked)
		// The study's two trials: the worker has one, this takes the other or waits.
		for {
			response := ask("POST", "/api/v1/leases", `{"worker":"poll-worker","wait_seconds":60}`)
			var reply protocol.LeaseReply
			if response == nil || response.StatusCode != 200 || json.NewDecoder(response.Body).Decode(&reply) != nil || reply.Lease == nil {
				polled <- response
				return
			}
		}
	}()
	<-asked
	until(t, "the other trial to be taken, so that the next poll waits", func() bool {
		return read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Progress.Trials["leased"] > 0
	})

	if err := at.server.Stop(); err != nil {
		t.Fatalf("SIGTERM: %v\n%s", err, at.server.Output())
	}
	if strings.Contains(at.server.Output(), "cut off") {
		t.Errorf("something was cut off:\n%s", at.server.Output())
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the event stream did not end cleanly: %v", err)
	}
	if response := <-polled; response != nil {
		response.Body.Close()
		if response.StatusCode != 503 && response.StatusCode != 200 {
			t.Errorf("the long poll ended with %d", response.StatusCode)
		}
	}
	at.start()
	until(t, "the worker to go on", func() bool { return len(s.entries("acknowledged")) >= 5 })
	at.must("study", "stop", s.name)
}
