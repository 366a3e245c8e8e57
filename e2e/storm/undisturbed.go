package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// Undisturbed runs a harmed study once more: the same definition and seed, on a
// new service that nothing happens to. One worker leases, trains and finishes
// in the order in which the harmed study's search was asked and told. Which
// worker trained what, how often, and when, is not compared; what is must be
// equal to the last bit: every decision of the search, every trial's
// configuration, seed, state, rung and results, the best one, and the status.
// A trial that was given up after too many losses is one that fails here.
//
// It returns the differences. Studies with early stopping or failures of their
// own cannot be run so.
func Undisturbed(ctx context.Context, books history.Books) ([]string, error) {
	a, err := newAgain(ctx, books)
	if err != nil {
		return nil, err
	}
	for _, event := range books.Events {
		if event.Kind != journal.Searched {
			continue
		}
		var decision session.Decision
		if err := json.Unmarshal(event.Data, &decision); err != nil {
			return nil, fmt.Errorf("event %d: %w", event.Sequence, err)
		}
		if err := a.follow(ctx, decision); err != nil {
			return []string{fmt.Sprintf("at event %d: %v", event.Sequence, err)}, nil
		}
	}
	return a.compare(ctx)
}

// again is the second, quiet run.
type again struct {
	books   history.Books
	store   *memory.Store
	service *study.Service
	study   string
	reports map[int]map[int]trial.Report // accepted in the harmed run, by trial and epoch
	leases  map[int]*protocol.Lease
}

const quietWorker = "undisturbed-worker"

func newAgain(ctx context.Context, books history.Books) (*again, error) {
	a := &again{books: books, store: memory.New(), reports: make(map[int]map[int]trial.Report), leases: make(map[int]*protocol.Lease)}
	numbers := make(map[trial.ID]int)
	for _, t := range books.Trials {
		numbers[t.ID] = t.Number
		a.reports[t.Number] = make(map[int]trial.Report)
	}
	for _, event := range books.Events {
		if event.Kind != journal.Reported {
			continue
		}
		var report trial.Report
		if err := json.Unmarshal(event.Data, &report); err != nil {
			return nil, fmt.Errorf("event %d: %w", event.Sequence, err)
		}
		a.reports[numbers[event.Trial]][report.Epoch] = report
	}
	a.service = study.New(a.store, a.store, study.Options{Now: time.Now, Random: func() uint64 { return 1 }})
	created, err := a.service.CreateWarm(ctx, books.Definition, nil)
	if err != nil {
		return nil, err
	}
	a.study = created.ID
	_, err = a.service.RegisterWorker(ctx, protocol.WorkerRegistration{ID: quietWorker, Name: quietWorker, Slots: 1024})
	return a, err
}

// follow lets the quiet run come to the same decision.
func (a *again) follow(ctx context.Context, decision session.Decision) error {
	switch event := decision.Event; event.Kind {
	case search.Request:
		return a.lease(ctx, decision.Actions[0])
	case search.Measured:
		return a.train(ctx, event.Trial, protocol.BudgetReached)
	case search.Failed:
		return a.train(ctx, event.Trial, protocol.CommandFailed)
	default:
		return fmt.Errorf("a search that is told %q cannot be run again like this", event.Kind)
	}
}

func (a *again) lease(ctx context.Context, want search.Action) error {
	reply, err := a.service.Lease(ctx, protocol.LeaseRequest{Worker: quietWorker, Study: a.study})
	switch {
	case err != nil:
		return err
	case want.Kind == search.Finish && reply.StudyFinished:
		return nil
	case reply.Lease == nil || reply.Lease.Number != want.Trial || reply.Lease.Rung != want.Rung:
		return fmt.Errorf("the harmed run's search said %+v, and undisturbed there is %+v", want, reply.Lease)
	}
	a.leases[want.Trial] = reply.Lease
	return nil
}

// train reports what was reported then.
func (a *again) train(ctx context.Context, number int, outcome protocol.Outcome) error {
	lease := a.leases[number]
	if lease == nil {
		return fmt.Errorf("trial %d was measured and is not out", number)
	}
	delete(a.leases, number)
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs && outcome == protocol.BudgetReached; epoch++ {
		report, reported := a.reports[number][epoch]
		if !reported {
			return fmt.Errorf("trial %d has no report of epoch %d", number, epoch)
		}
		_, err := a.service.Report(ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: report.Metrics, Seconds: report.Seconds})
		if err == nil {
			err = a.service.CommitCheckpoint(ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Artifact: fmt.Sprintf("%064d", epoch)})
		}
		if err != nil {
			return err
		}
	}
	_, err := a.service.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome})
	return err
}

// outcome is what is compared of a trial.
type outcome struct {
	Configuration any            `json:"params"`
	Seed          uint64         `json:"seed"`
	State         trial.State    `json:"state"`
	Rung          int            `json:"rung"`
	Results       []trial.Result `json:"results"`
	LastEpoch     int            `json:"last_epoch"`
	Promotions    int            `json:"promotions"`
}

func outcomeOf(t trial.Trial) outcome {
	o := outcome{t.Configuration, t.Seed, t.State, t.Rung, slices.Clone(t.Results), t.LastEpoch, t.Promotions}
	for i := range o.Results {
		o.Results[i].At = nil // when it was measured is a matter of time
	}
	if o.State == trial.Lost {
		o.State = trial.Failed
	}
	if len(o.Results) < o.Rung+1 {
		o.LastEpoch = 0 // how far it had come when the study ended, or it was given up, is a matter of time
	}
	return o
}

func (a *again) compare(ctx context.Context) ([]string, error) {
	quiet, err := a.store.Trials(ctx, a.study)
	if err != nil {
		return nil, err
	}
	view, err := a.service.Study(ctx, a.study)
	if err != nil {
		return nil, err
	}
	events, err := a.store.Events(ctx, a.study, 0, 1<<30)
	if err != nil {
		return nil, err
	}
	var differences []string
	differ := func(what string, harmed, undisturbed any) {
		one, _ := json.Marshal(harmed) // both were read from JSON, or are plain
		two, _ := json.Marshal(undisturbed)
		if !bytes.Equal(one, two) {
			differences = append(differences, fmt.Sprintf("%s: %s in the harmed run, and %s undisturbed", what, one, two))
		}
	}
	differ("number of trials", len(a.books.Trials), len(quiet))
	for i := range min(len(quiet), len(a.books.Trials)) {
		differ(fmt.Sprintf("trial %d", i), outcomeOf(a.books.Trials[i]), outcomeOf(quiet[i]))
	}
	differ("decisions", decisions(a.books.Events), decisions(events))
	differ("status", a.books.Study.Status, view.Status)
	if harmed, undisturbed := a.books.Study.Progress.Best, view.Progress.Best; harmed != nil && undisturbed != nil {
		differ("the best", []any{harmed.Number, harmed.Rung, harmed.Value}, []any{undisturbed.Number, undisturbed.Rung, undisturbed.Value})
	} else {
		differ("the best", harmed, undisturbed)
	}
	return differences, nil
}

// decisions are the search's steps, in order.
func decisions(events []journal.Event) []session.Decision {
	var list []session.Decision
	for _, event := range events {
		var decision session.Decision
		if event.Kind == journal.Searched && json.Unmarshal(event.Data, &decision) == nil {
			list = append(list, decision)
		}
	}
	return list
}
