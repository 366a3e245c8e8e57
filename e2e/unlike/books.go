package unlike

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Study is a study of the script.
type Study struct {
	Name string
	// Energy is its H: 0 as fast as possible, 1 with the least energy.
	Energy float64
	// Trials is how many it has, each of so many Epochs.
	Trials, Epochs int
	// Parallel is how many of them run at once at most; 0: as many as there is
	// room for.
	Parallel int
	// Rounds of clustering are an epoch's work, and Pause comes after them.
	Rounds int
	Pause  time.Duration
}

// Create creates it and returns its id.
func (s *Site) Create(ctx context.Context, study Study) (id string, err error) {
	definition := map[string]any{
		"name": study.Name, "command": []string{s.options.Script},
		"environment": map[string]string{variableRounds: fmt.Sprint(study.Rounds), variablePause: study.Pause.String()},
		"objective":   map[string]any{"metric": "loss", "direction": "minimize"},
		"space":       map[string]any{"rate": map[string]any{"type": "float", "low": 0, "high": 1}},
		"budget":      map[string]any{"policy": "epochs", "epochs": map[string]any{"min": study.Epochs, "max": study.Epochs}, "data_fraction": map[string]any{"min": 1, "max": 1}},
		"search":      map[string]any{"method": "random", "seed": 7},
		"stop":        map[string]any{"trials": study.Trials},
		"retry":       map[string]any{"failures": 0},
		"system":      "off",
	}
	if study.Energy > 0 {
		definition["placement"] = map[string]any{"energy": study.Energy}
	}
	if study.Parallel > 0 {
		definition["parallel"] = study.Parallel
	}
	file, err := json.Marshal(definition)
	if err != nil {
		return "", err
	}
	view, err := s.Client.CreateStudy(ctx, file, "application/json")
	return view.ID, err
}

// Await waits until the study is over or holds says so.
func (s *Site) Await(ctx context.Context, study string, holds func(Books) bool) (Books, error) {
	for {
		books, err := s.Books(ctx, study)
		if err != nil || books.View.Status.Over() || holds(books) {
			return books, err
		}
		if pause(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return books, fmt.Errorf("study %s is %s with %d epochs: %w", study, books.View.Status, books.View.Progress.Epochs, ctx.Err())
		}
	}
}

// Account is what a worker did for a study.
type Account struct {
	Epochs          int
	Seconds, Joules float64
	Methods         map[string]bool
}

// Books are what the server says of a study.
type Books struct {
	View   protocol.StudyView
	Trials []trial.Trial
	// Reports are the accepted ones, in their order.
	Reports []trial.Report
	// ByWorker has the accounts of the workers by name.
	ByWorker map[string]Account
}

// Books reads them.
func (s *Site) Books(ctx context.Context, study string) (books Books, err error) {
	if books.View, err = s.Client.Study(ctx, study); err != nil {
		return books, err
	}
	stream, err := s.Client.Export(ctx, study, "json")
	if err != nil {
		return books, err
	}
	var document struct {
		Trials []trial.Trial `json:"trials"`
		Events []struct {
			Kind string          `json:"kind"`
			Data json.RawMessage `json:"data"`
		} `json:"events"`
	}
	if err := errors.Join(json.NewDecoder(stream).Decode(&document), stream.Close()); err != nil {
		return books, fmt.Errorf("the export of %s: %w", study, err)
	}
	books.Trials, books.ByWorker = document.Trials, map[string]Account{}
	for _, event := range document.Events {
		if event.Kind != "report" {
			continue
		}
		var report trial.Report
		if err := json.Unmarshal(event.Data, &report); err != nil {
			return books, fmt.Errorf("a report of %s: %w", study, err)
		}
		books.Reports = append(books.Reports, report)
		name := s.names[report.Worker]
		account := books.ByWorker[name]
		if account.Methods == nil {
			account.Methods = map[string]bool{}
		}
		account.Epochs++
		account.Seconds += float64(report.Seconds)
		account.Joules += float64(report.Energy.Joules)
		account.Methods[report.Energy.Method] = true
		books.ByWorker[name] = account
	}
	return books, nil
}

// Moves is how often a trial went on with another worker than had its epoch
// before.
func (b Books) Moves() int {
	moves, last := 0, map[trial.ID]string{}
	for _, report := range b.Reports {
		if before, known := last[report.Trial]; known && before != report.Worker {
			moves++
		}
		last[report.Trial] = report.Worker
	}
	return moves
}

// tolerance is for sums of floats in another order.
const tolerance = 1e-6

// Faults is what does not add up: the workers' accounts against the study's
// totals, epochs against trials, and joules against the power that a place can
func (s *Site) Faults(books Books, cores map[string]int) (faults []string) {
	seconds, joules := 0.0, 0.0
	for name, account := range books.ByWorker {
		seconds, joules = seconds+account.Seconds, joules+account.Joules
		if name == "" {
			faults = append(faults, fmt.Sprintf("%d epochs are of a worker that nobody started", account.Epochs))
		}
		faults = append(faults, s.implausible(name, account, cores)...)
	}
	progress := books.View.Progress
	if !same(seconds, progress.TrialSeconds) {
		faults = append(faults, fmt.Sprintf("the workers' epochs took %g s, the study says %g s", seconds, progress.TrialSeconds))
	}
	if !same(joules, float64(progress.Energy.Joules)) {
		faults = append(faults, fmt.Sprintf("the workers' epochs took %g J, the study says %g J", joules, float64(progress.Energy.Joules)))
	}
	epochs := map[trial.ID]map[int]int{}
	for _, report := range books.Reports {
		if epochs[report.Trial] == nil {
			epochs[report.Trial] = map[int]int{}
		}
		epochs[report.Trial][report.Epoch]++
	}
	for _, one := range books.Trials {
		if len(epochs[one.ID]) != one.Epochs {
			faults = append(faults, fmt.Sprintf("trial %d counts %d epochs and has reports of %d", one.Number, one.Epochs, len(epochs[one.ID])))
		}
		for epoch, times := range epochs[one.ID] {
			if times != 1 {
				faults = append(faults, fmt.Sprintf("epoch %d of trial %d was reported %d times", epoch, one.Number, times))
			}
		}
	}
	return faults
}

func same(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(a)) }

// implausible is what the power of a place speaks against: epochs take no less than
// its cores draw at rest, nor more than they draw when all are busy. A busy kernel
// accounts CPU time up to a second later than it passes, so all epochs are looked at
// together.
func (s *Site) implausible(name string, account Account, cores map[string]int) []string {
	place := s.places[name]
	if place.BusyWatts <= 0 {
		return nil // it may have a meter
	}
	resting := place.IdleWatts * float64(cores[name]) * account.Seconds
	most := resting + place.BusyWatts*float64(cores[name])*(1.1*account.Seconds+1)
	if account.Joules < 0.9*resting || account.Joules > most {
		return []string{fmt.Sprintf("%d epochs on %s took %g J in %g s: it must be %g to %g J", account.Epochs, name, account.Joules, account.Seconds, resting, most)}
	}
	return nil
}
