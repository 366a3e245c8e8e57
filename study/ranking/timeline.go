package ranking

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// usualEvents is how far back a timeline looks unless more is asked for.
	usualEvents = 20000
	maxEvents   = 1000000
	eventBatch  = 1000
)

// Timeline says which trial ran where and when, as the study's newest events
// tell it; events is how many of them are looked at (0: 20,000, at most
// 1,000,000).
func (q *Queries) Timeline(ctx context.Context, ref string, events int) (protocol.Timeline, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.Timeline{}, err
	}
	end := q.options.Now()
	if now.Study.Finished != nil {
		end = *now.Study.Finished
	}
	events = min(cmp.Or(max(events, 0), usualEvents), maxEvents)
	after := max(0, now.Sequence-int64(events))
	f := newFolding(now.Study, after > 0)
	for after < now.Sequence {
		page, err := q.store.Events(ctx, now.Study.ID, after, eventBatch)
		if err != nil {
			return protocol.Timeline{}, err
		}
		if len(page) == 0 {
			break
		}
		for _, event := range page {
			if after = event.Sequence; after <= now.Sequence {
				f.add(event)
			}
		}
	}
	answer := f.timeline(end)
	answer.Sequence = now.Sequence
	return answer, nil
}

// folding turns a study's events into spans, one for each lease.
type folding struct {
	study journal.Study
	// cut is the moment the events begin at, when earlier ones are not looked at.
	cut   time.Time
	cutAt bool
	spans []span
	open  map[trial.ID]int // the span that a trial is in
}

// span is a worker's time with a trial.
type span struct {
	number, rung, failures int
	worker, host, reason   string
	begin, end             time.Time
	outcome                protocol.SpanOutcome
}

func newFolding(study journal.Study, cut bool) *folding {
	return &folding{study: study, cutAt: cut, open: make(map[trial.ID]int)}
}

// leased is what a timeline needs of a trial in an event.
type leased struct {
	Rung     int    `json:"rung"`
	Host     string `json:"host"`
	Failures int    `json:"failures"`
	// FailedStarts are failures that may be the worker's.
	FailedStarts []trial.FailedStart `json:"failed_starts"`
}

// add takes the next event in.
func (f *folding) add(event journal.Event) {
	if f.cutAt && f.cut.IsZero() {
		f.cut = event.At
	}
	number, known := event.Trial.Number()
	if !known || event.Kind != journal.TrialState && event.Kind != journal.Reported {
		return
	}
	at, running := f.open[event.Trial]
	switch state := trial.State(event.State); {
	case event.Kind == journal.TrialState && state == trial.Leased && !running,
		state.Held() && !running && f.cutAt: // it began before the events do
		f.begin(event, number, state == trial.Leased && event.Kind == journal.TrialState)
	case event.Kind == journal.TrialState && running && !state.Held():
		f.spans[at].finish(event, state)
		delete(f.open, event.Trial)
	}
}

// begin opens a span: at the event, or where the events begin.
func (f *folding) begin(event journal.Event, number int, here bool) {
	// A trial that cannot be read leaves the rung at 0: the log is checked elsewhere.
	var of leased
	_ = json.Unmarshal(event.Data, &of)
	one := span{number: number, rung: of.Rung, failures: of.Failures, worker: event.Worker, host: of.Host, begin: event.At, outcome: protocol.SpanRunning}
	if !here {
		one.begin = f.cut
	}
	f.open[event.Trial] = len(f.spans)
	f.spans = append(f.spans, one)
}

// finish ends the span with the event that took the trial out of its worker's
// hands.
func (s *span) finish(event journal.Event, state trial.State) {
	s.end, s.reason = event.At, event.Reason
	switch state {
	case trial.Paused:
		s.outcome, s.reason = protocol.SpanPaused, ""
	case trial.Completed:
		s.outcome, s.reason = protocol.SpanCompleted, ""
	case trial.Pruned:
		s.outcome = protocol.SpanPruned
	case trial.Failed:
		s.outcome = protocol.SpanFailed
	case trial.Lost:
		s.outcome = protocol.SpanLost
	case trial.Cancelled:
		s.outcome = protocol.SpanCancelled
	default: // queued: it is tried again, or goes on elsewhere
		s.outcome = protocol.SpanReturned
		var of leased
		if err := json.Unmarshal(event.Data, &of); err == nil && (of.Failures > s.failures || slices.ContainsFunc(of.FailedStarts, func(one trial.FailedStart) bool { return !one.Counted && one.At.Equal(event.At) })) {
			s.outcome = protocol.SpanFailed
		}
	}
}

// timeline is what was folded, up to the moment.
func (f *folding) timeline(end time.Time) protocol.Timeline {
	start := f.study.Created
	since := func(at time.Time) float64 { return max(0, at.Sub(start).Seconds()) }
	answer := protocol.Timeline{
		Study: f.study.Definition.Name, Start: start, Seconds: since(end), Workers: []protocol.TimelineWorker{},
		Numbers: []int{}, Workplaces: []int{}, Rungs: []int{}, Begins: []float64{}, Ends: []float64{},
		Outcomes: []protocol.SpanOutcome{}, Reasons: []string{},
	}
	if f.cutAt {
		answer.Cut = since(f.cut)
	}
	places := make(map[string]int)
	for _, one := range f.spans {
		place, known := places[one.worker]
		if !known {
			place = len(answer.Workers)
			places[one.worker] = place
			answer.Workers = append(answer.Workers, protocol.TimelineWorker{ID: one.worker, Host: one.host})
		}
		if one.outcome == protocol.SpanRunning {
			one.end = end
		}
		answer.Numbers, answer.Workplaces, answer.Rungs = append(answer.Numbers, one.number), append(answer.Workplaces, place), append(answer.Rungs, one.rung)
		answer.Begins, answer.Ends = append(answer.Begins, since(one.begin)), append(answer.Ends, since(one.end))
		answer.Outcomes, answer.Reasons = append(answer.Outcomes, one.outcome), append(answer.Reasons, one.reason)
	}
	return answer
}
