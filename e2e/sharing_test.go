package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// sharing is a server with two workers of one slot each and two users.
type sharing struct {
	*site
	ada, bob []string // their environments
}

func newSharing(t *testing.T) sharing {
	t.Helper()
	at := newSite(t, "--lease-seconds", "20", "--heartbeat-seconds", "1")
	s := sharing{site: at}
	s.ada = at.as(at.must("token", "create", "--scope", "user", "--name", "ada"))
	s.bob = at.as(at.must("token", "create", "--scope", "user", "--name", "bob"))
	for _, name := range []string{"rack-1", "rack-2"} {
		at.worker("--name", name)
	}
	until(t, "two workers", func() bool { return len(s.workers()) == 2 })
	return s
}

func (s sharing) by(who []string, args ...string) string {
	s.t.Helper()
	got := cli(s.t, who, args...)
	if got.code != 0 {
		s.t.Fatalf("tandem %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// workers are the names of the workers, by id.
func (s sharing) workers() map[string]string {
	s.t.Helper()
	names := map[string]string{}
	for _, one := range read[[]protocol.Worker](s.t, s.must("workers", "--json")) {
		names[one.ID] = one.Name
	}
	return names
}

// ran are the names of the workers that had trials of the study, or have them
// now.
func (s sharing) ran(study string, now bool) []string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL+"/api/v1/studies/"+study+"/timeline", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(s.token))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var timeline protocol.Timeline
	if err := json.NewDecoder(response.Body).Decode(&timeline); err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("the timeline of %s: %s, %v", study, response.Status, err)
	}
	names, workers := s.workers(), []string{}
	for i, at := range timeline.Workplaces {
		if !now || timeline.Outcomes[i] == protocol.SpanRunning {
			workers = append(workers, names[timeline.Workers[at].ID])
		}
	}
	slices.Sort(workers)
	if now {
		return workers
	}
	return slices.Compact(workers)
}

// waits reports whether the study says that it waits for that.
func (s sharing) waits(who []string, study string, cause protocol.WaitCause) bool {
	s.t.Helper()
	view := read[protocol.StudyView](s.t, s.by(who, "study", "show", study, "--json"))
	return slices.ContainsFunc(view.Waits, func(one protocol.Wait) bool { return one.Cause == cause })
}

// shows checks what a command says to people.
func (s sharing) shows(who []string, study, wanted string) {
	s.t.Helper()
	if text := s.by(who, "study", "show", study); !strings.Contains(text, wanted) {
		s.t.Errorf("show does not say %q:\n%s", wanted, text)
	}
}

// newLongStudy is a study whose trials train for so many epochs of a tenth of a
// second, with more lines in its file.
func newLongStudy(t *testing.T, name, more string, epochs, trials int) study {
	t.Helper()
	s := newStudy(t, name, fmt.Sprintf("epochs, epochs: {min: %d, max: %d}", epochs, epochs), "0.1", trials)
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.Replace(string(content), "seconds: 120", "seconds: 3600", 1) + more)
	if err := os.WriteFile(s.file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUsersShareRealWorkers keeps a worker for ada, bounds bob's trials, lets one
// of them make way for a study of ada's, and drains a worker: bob's scripts lose
// no epoch by any of it, and train none twice.
func TestUsersShareRealWorkers(t *testing.T) {
	t.Parallel()
	bobs := newLongStudy(t, "bobs", "", 5000, 10) // its trials end only if they make way
	adas := newLongStudy(t, "adas", "", 3, 1)
	urgent := newLongStudy(t, "urgent", "priority: 5\npreempt: true\n", 3, 1)
	at := newSharing(t)

	// A reservation: rack-2 stays empty while bob has more to train, until ada comes.
	made := read[protocol.Reservation](t, at.must("reservation", "make", "--user", "ada", "--worker", "rack-2", "--for", "1h", "--json"))
	at.by(at.bob, "study", "create", bobs.file)
	until(t, "bob's study trains", func() bool { return len(bobs.entries("acknowledged")) >= 2 })
	until(t, "bob is told of the reservation", func() bool { return at.waits(at.bob, "bobs", protocol.WaitReserved) })
	at.shows(at.bob, "bobs", "Waits:")
	at.by(at.ada, "study", "create", adas.file)
	if view := read[result](t, at.by(at.ada, "study", "watch", "adas", "--json")).Study; view.Status != protocol.StudyCompleted {
		t.Errorf("ada's study is %s", view.Status)
	}
	if a, b := at.ran("ada:adas", false), at.ran("bob:bobs", false); !slices.Equal(a, []string{"rack-2"}) || !slices.Equal(b, []string{"rack-1"}) {
		t.Errorf("ada trained on %v and bob on %v: rack-2 was kept for ada", a, b)
	}

	// A quota takes the reservation's place, and is raised.
	at.must("quota", "set", "bob", "--trials", "1")
	at.must("reservation", "remove", made.ID)
	until(t, "bob is told of his quota", func() bool { return at.waits(at.bob, "bobs", protocol.WaitQuota) })
	if workers := at.ran("bob:bobs", false); !slices.Equal(workers, []string{"rack-1"}) {
		t.Errorf("bob, who may have one trial, has trained on %v", workers)
	}
	at.must("quota", "set", "bob", "--trials", "2")
	until(t, "bob has both workers", func() bool { return slices.Equal(at.ran("bob:bobs", true), []string{"rack-1", "rack-2"}) })

	// Preemption, as soon as ada may.
	at.by(at.ada, "study", "create", urgent.file)
	until(t, "ada is told that all workers are busy", func() bool { return at.waits(at.ada, "urgent", protocol.WaitBusy) })
	if n := at.preemptions(); n != 0 {
		t.Errorf("%d trials made way for somebody who may not ask for that", n)
	}
	at.must("quota", "set", "ada", "--preempt")
	if view := read[result](t, at.by(at.ada, "study", "watch", "urgent", "--json")).Study; view.Status != protocol.StudyCompleted {
		t.Errorf("the urgent study is %s", view.Status)
	}
	if n := at.preemptions(); n != 1 {
		t.Errorf("%d trials made way, want one", n)
	}

	// A drain, at once: what ran there goes on elsewhere.
	until(t, "bob has both workers again", func() bool { return slices.Equal(at.ran("bob:bobs", true), []string{"rack-1", "rack-2"}) })
	at.must("worker", "drain", "rack-1", "--now", "--reason", "new disk")
	until(t, "bob has rack-2 alone", func() bool { return slices.Equal(at.ran("bob:bobs", true), []string{"rack-2"}) })
	until(t, "bob is told of the drain", func() bool { return at.waits(at.bob, "bobs", protocol.WaitDrained) })
	at.shows(at.bob, "bobs", "new disk")
	at.must("worker", "undrain", "rack-1")
	until(t, "bob has both workers once more", func() bool { return slices.Equal(at.ran("bob:bobs", true), []string{"rack-1", "rack-2"}) })

	at.by(at.bob, "study", "pause", "bobs")
	until(t, "bob has no worker", func() bool { return len(at.ran("bob:bobs", true)) == 0 })
	books := at.books("bob:bobs")
	checkBooks(t, bobs, books)
	checkTrainedOnce(t, bobs)
	for _, one := range books.Trials {
		if one.Losses != 0 || one.Failures != 0 {
			t.Errorf("trial %d has %d losses and %d failures: %s", one.Number, one.Losses, one.Failures, one.Reason)
		}
	}
}

// preemptions counts how often bob's trials made way.
func (s sharing) preemptions() int {
	s.t.Helper()
	count := 0
	for _, one := range s.books("bob:bobs").Trials {
		count += one.Preemptions
	}
	return count
}
