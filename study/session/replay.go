package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// Decision is one step of a study's search, as its log keeps it.
type Decision struct {
	Event   search.Event    `json:"event"`
	Actions []search.Action `json:"actions,omitempty"`
}

// eventPage is how many events are read at once while a search is replayed.
const eventPage = 5000

// replay rebuilds the search from its last snapshot and the log behind it, and
// checks that it decides today what it decided then; else the search is broken. Without
// a snapshot it begins with the limits of the study as it was created. The error is the
// store's.
func (r *Session) replay(ctx context.Context, created definition.Definition, going bool) error {
	snapshot, err := r.options.Store.Snapshot(ctx, r.Study.ID)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return err
	}
	if len(snapshot.State) > 0 {
		created = r.Study.Definition
	}
	if going {
		r.Method, r.Broken = restored(created, snapshot.State)
	}
	r.Sequence, r.sinceSnapshot = snapshot.Sequence, 0
	for {
		events, err := r.options.Store.Events(ctx, r.Study.ID, r.Sequence, eventPage)
		if err != nil {
			return err
		}
		for _, event := range events {
			r.Sequence = event.Sequence
			if event.Kind == journal.Searched && r.Method != nil {
				if err := replayDecision(r.Method, event); err != nil {
					r.Method, r.Broken = nil, err
				}
				r.sinceSnapshot++
			}
		}
		if len(events) < eventPage {
			return nil
		}
	}
}

// restored is a study's search in the state of a snapshot, if there is one.
func restored(def definition.Definition, state json.RawMessage) (*search.Method, error) {
	method, err := search.New(def.SearchSettings())
	if err == nil && len(state) > 0 {
		err = method.Restore(state)
	}
	if err != nil {
		return nil, problem.New(problem.Unavailable,
			"the search cannot be restored (%w): continue this study with the version of tandem that wrote it", err)
	}
	return method, nil
}

// Replay puts a study's logged decisions to a new search, from the first event
// on. It returns how many came out the same, and an error at the first one that
// does not. The limits of the study as it was created are in its first event: it may
// have been extended since.
func Replay(def definition.Definition, events []journal.Event) (decisions int, err error) {
	if len(events) > 0 && events[0].Kind == journal.StudyCreated && len(events[0].Data) > 0 {
		created, err := definition.Stored(events[0].Data)
		if err != nil {
			return 0, err
		}
		def.Stop = created.Stop
	}
	method, err := search.New(def.SearchSettings())
	if err != nil {
		return 0, err
	}
	for _, event := range events {
		if event.Kind != journal.Searched {
			continue
		}
		if err := replayDecision(method, event); err != nil {
			return decisions, err
		}
		decisions++
	}
	return decisions, nil
}

func replayDecision(method *search.Method, event journal.Event) error {
	var decision Decision
	if err := json.Unmarshal(event.Data, &decision); err != nil {
		return fmt.Errorf("event %d: %w", event.Sequence, err)
	}
	actions, err := method.Handle(decision.Event)
	if err != nil {
		return problem.New(problem.Unavailable, "event %d: the search does not take what it took when it was logged (%w); continue this study with the version of tandem that wrote it",
			event.Sequence, err)
	}
	then, err := json.Marshal(decision.Actions)
	if err != nil {
		return err
	}
	now, err := json.Marshal(actions)
	if err != nil {
		return err
	}
	if len(actions)+len(decision.Actions) > 0 && !bytes.Equal(then, now) {
		return problem.New(problem.Unavailable,
			"event %d: the search decided %s when it was logged and %s now; continue this study with the version of tandem that wrote it",
			event.Sequence, then, now)
	}
	return nil
}

// trialSeed derives a trial's seed from the study's, so that a repeated study
// trains with the same seeds. It fits in 31 bits, which every library takes.
func trialSeed(study uint64, number int) uint64 {
	z := study + 0x9e3779b97f4a7c15*uint64(number+1) // SplitMix64 (Steele et al. 2014)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return (z ^ (z >> 31)) & math.MaxInt32
}

func trialID(study string, number int) trial.ID {
	return trial.ID(study + "-" + strconv.Itoa(number))
}
