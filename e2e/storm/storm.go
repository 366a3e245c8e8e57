// Package storm harms real processes while a study runs on them: it kills
// (SIGKILL) and stops (SIGSTOP) servers and workers at random, and then
// compares what the training scripts know with the server's books, and the
// books with an undisturbed run.
//
// The trials' command is the calling program itself: it must call [Train] first
// of all when [IsScript] says so. The package knows the command line and REST,
// and no other part of what it harms.
package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// Options are a storm. Those without "optional" are required.
type Options struct {
	// Binary is tandem's, Script the program that trains.
	Binary, Script string
	// Folder gets the server's data, the workers' folders and the ledger.
	Folder string
	// Trials is how many configurations the study tries, Agents how many workers
	// it has, with Slots trials each.
	Trials, Agents, Slots int
	// Blows is how many there are, spread over the study, Seed what they are
	// drawn from, and the study's search too.
	Blows int
	Seed  uint64
	// EpochTime is how long a script takes for an epoch.
	EpochTime time.Duration
	// LeaseSeconds is how long a silent worker keeps its trials.
	LeaseSeconds float64
	// Serve starts the server on the address; optional: "tandem serve" with
	// its data in the folder.
	Serve func(listen string) (*launch.Server, error)
	// Disturb is one more thing to do to what the server stands on, such as
	// restarting its database; optional. It returns what it did.
	Disturb func(ctx context.Context) (string, error)
	// Environment is added to that of the server and the workers; optional.
	Environment []string
	// Tell is told what happens; optional.
	Tell func(what string)
}

// Result is what came of a storm.
type Result struct {
	// Blows counts what was done, by name.
	Blows map[string]int `json:"blows"`
	// Acknowledged is how many reports and checkpoints the scripts were told are
	// saved.
	Acknowledged int `json:"acknowledged"`
	// Lost are acknowledged operations that are missing, Twice reports that
	// count twice or under a lease that was over.
	Lost  int `json:"lost"`
	Twice int `json:"twice"`
	// Violations are those and all others, Differences what an undisturbed run
	// with the same order of events has otherwise.
	Violations  []history.Violation `json:"violations,omitempty"`
	Differences []string            `json:"differences,omitempty"`
	Trials      int                 `json:"trials"`
	Epochs      int                 `json:"epochs"`
	Losses      int                 `json:"losses"` // leases that ran out
	// Deaths are processes that ended by themselves, with what they said last;
	// others were started in their place.
	Deaths  []string `json:"deaths,omitempty"`
	Seconds float64  `json:"seconds"`
	// Starts are the seconds that each new server took until it answered.
	Starts []float64 `json:"starts"`
}

// Run makes the storm and returns what came of it. The error says that there is
// no result: something could not be started, or the study did not end.
func Run(ctx context.Context, options Options) (result Result, err error) {
	s, err := newSite(options)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.start(); err != nil {
		return Result{}, err
	}
	began := time.Now()
	if err := s.create(ctx); err != nil {
		return Result{}, err
	}
	for at := range options.Agents {
		if err := s.startAgent(at); err != nil {
			return Result{}, err
		}
	}
	if err := s.blow(ctx); err != nil {
		return Result{}, err
	}
	if err := s.end(ctx); err != nil {
		return Result{}, err
	}
	s.result.Seconds = time.Since(began).Seconds()
	err = s.judge(ctx)
	return s.result, err
}

// create makes the study whose trials are the script.
func (s *site) create(ctx context.Context) error {
	o := s.options
	file, err := json.Marshal(map[string]any{
		"name": "storm", "command": []string{o.Script},
		"environment": map[string]string{variableLedger: s.ledger(), variableEpoch: o.EpochTime.String()},
		"objective":   map[string]any{"metric": "loss", "direction": "minimize"},
		"space": map[string]any{
			"x": map[string]any{"type": "float", "low": -5, "high": 5},
			"y": map[string]any{"type": "float", "low": 1e-5, "high": 1, "log": true},
		},
		"budget": map[string]any{"policy": "epochs", "epochs": map[string]any{"min": 1, "max": maxEpochs}, "eta": 3},
		"search": map[string]any{"method": "bohb", "seed": o.Seed + 1},
		"stop":   map[string]any{"trials": o.Trials},
		"retry":  map[string]any{"failures": 0},
		"system": "off",
	})
	if err != nil {
		return err
	}
	created, err := s.client.CreateStudy(ctx, file, "application/json")
	s.study = created.ID
	return err
}

// maxEpochs is the full budget.
const maxEpochs = 9

// expected is about how many epochs the study trains: a third of the trials go
// up at each of the two lower rungs.
func (o Options) expected() int { return o.Trials + o.Trials/3*2 + o.Trials/9*6 }

// blow strikes whenever a share of the study is done.
func (s *site) blow(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.options.Seed, 5))
	every := max(1, s.options.expected()/(s.options.Blows+1))
	for struck := range s.options.Blows {
		over, err := s.await(ctx, (struck+1)*every)
		if err != nil || over {
			return err
		}
		what, err := s.strike(ctx, random)
		if err != nil {
			return fmt.Errorf("blow %d: %w", struck+1, err)
		}
		s.result.Blows[what]++
		s.tell("%s", what)
	}
	return nil
}

// await waits until so many epochs were acknowledged, or the study is over.
func (s *site) await(ctx context.Context, epochs int) (over bool, err error) {
	for ctx.Err() == nil {
		operations, err := readLedger(s.ledger())
		if err != nil {
			return false, err
		}
		if acknowledged(operations, history.Report) >= epochs {
			return false, nil
		}
		if view, err := s.impatient.Study(ctx, s.study); err == nil && view.Status.Over() {
			return true, nil
		}
		if err := s.tend(); err != nil {
			return false, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false, s.stuck(ctx, fmt.Sprintf("%d epochs are acknowledged", epochs))
}

// end waits for the end of the study.
func (s *site) end(ctx context.Context) error {
	for ctx.Err() == nil {
		if view, err := s.impatient.Study(ctx, s.study); err == nil && view.Status.Over() {
			return nil
		}
		if err := s.tend(); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return s.stuck(ctx, "the study is over")
}

// stuck is the error of a wait that has ended in vain.
func (s *site) stuck(ctx context.Context, awaited string) error {
	return fmt.Errorf("%w before %s\nserver:\n%s", context.Cause(ctx), awaited, s.server.Output())
}

func acknowledged(operations []history.Operation, kind history.Kind) int {
	count := 0
	for _, one := range operations {
		if one.Acknowledged && one.Kind == kind {
			count++
		}
	}
	return count
}

// judge compares the scripts' ledger with the books of a server that was killed
// once more, and the books with an undisturbed run.
func (s *site) judge(ctx context.Context) error {
	s.server.Kill()
	if err := s.start(); err != nil {
		return err
	}
	books, err := s.books(ctx)
	if err != nil {
		return err
	}
	operations, err := readLedger(s.ledger())
	if err != nil {
		return err
	}
	s.result.Violations = history.Check(operations, books)
	for _, violation := range s.result.Violations {
		switch violation.Invariant {
		case history.Kept:
			s.result.Lost++
		case history.Current:
			s.result.Twice++
		}
	}
	s.result.Acknowledged = acknowledged(operations, history.Report) + acknowledged(operations, history.Checkpoint)
	s.result.Trials, s.result.Epochs = len(books.Trials), books.Study.Progress.Epochs
	for _, t := range books.Trials {
		s.result.Losses += t.Losses
	}
	if books.Study.Status != protocol.StudyCompleted {
		s.result.Violations = append(s.result.Violations, history.Violation{Invariant: history.OneEnd, What: "the study is " + string(books.Study.Status) + ": " + books.Study.Reason})
	}
	s.result.Differences, err = Undisturbed(ctx, books)
	return err
}

// books exports the study, and fetches what its checkpoints name.
func (s *site) books(ctx context.Context) (history.Books, error) {
	export, err := s.client.Export(ctx, s.study, "json")
	if err != nil {
		return history.Books{}, err
	}
	books, err := history.Read(export)
	if err := errors.Join(err, export.Close()); err != nil {
		return books, err
	}
	books.Artifacts = make(map[string]string)
	for _, t := range books.Trials {
		if t.Checkpoint == nil || books.Artifacts[t.Checkpoint.Artifact] != "" {
			continue
		}
		if books.Artifacts[t.Checkpoint.Artifact], err = fetch(ctx, s.client, t.Checkpoint.Artifact); err != nil {
			return books, err
		}
	}
	return books, nil
}

func (s *site) tell(format string, args ...any) {
	if s.options.Tell != nil {
		s.options.Tell(fmt.Sprintf(format, args...))
	}
}

// ledger is in a folder that scripts may write to, and has nothing else in it.
func (s *site) ledger() string { return filepath.Join(s.options.Folder, "ledgers", "ledger") }

// newClient is a client that waits for a server that is away, or does not.
func newClient(url, token string, patience time.Duration) (*rest.Client, error) {
	return rest.New(rest.Options{URL: url, Token: token, Patience: patience})
}
