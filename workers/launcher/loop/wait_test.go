package loop_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/loop"
)

// wants are how many trials two studies want.
type wants struct{ first, second int }

// server is one whose studies want others from a time on.
type server struct {
	loop.Server
	now, then wants
	from      time.Time
	user      string
}

func (s *server) PoolWanted(context.Context) (crew.PoolWanted, error) {
	w := s.now
	if !time.Now().Before(s.from) {
		w = s.then
	}
	return crew.PoolWanted{User: s.user, Studies: []crew.WantedStudy{{StudyID: "first", Trials: w.first}, {StudyID: "second", Trials: w.second}}}, nil
}

// idle is an engine that has nothing.
type idle struct{ launcher.Engine }

func (idle) List(context.Context) ([]launcher.Job, error) { return nil, nil }

// TestItLooksWhenMoreIsWanted: within seconds once a study wants more than at the last
// look, and else not before its time.
func TestItLooksWhenMoreIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		then wants
		soon bool
	}{
		"the first wants more":                       {wants{first: 4, second: 3}, true},
		"the second wants more, the first less":      {wants{first: 0, second: 4}, true},
		"nothing changes":                            {wants{first: 3, second: 3}, false},
		"workers have taken some, and one has ended": {wants{first: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := &loop.Loop{Server: &server{now: wants{3, 3}, then: test.then, from: began.Add(10 * time.Minute)}, Engine: idle{}, Planner: &launcher.Planner{}, Every: time.Hour, DryRun: true, Out: io.Discard}
				if err := l.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.Wait(t.Context())
				if took := time.Since(began); test.soon != (took < 11*time.Minute) || took < 10*time.Minute || took > time.Hour {
					t.Errorf("it looks again after %v", took)
				}
			})
		})
	}
}

// TestItSaysWhoseTrialsItsWorkersRun: once, and nothing if they run those of all.
func TestItSaysWhoseTrialsItsWorkersRun(t *testing.T) {
	for user, want := range map[string]int{"ann": 1, "": 0} {
		var out bytes.Buffer
		l := &loop.Loop{Server: &server{user: user}, Engine: idle{}, Planner: &launcher.Planner{}, DryRun: true, Out: &out}
		for range 2 {
			if err := l.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(out.String(), "its workers run the trials of user ann alone"); got != want {
			t.Errorf("with a token of %q it says %d times, want %d:\n%s", user, got, want, out.String())
		}
	}
}
