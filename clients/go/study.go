package tandem

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	page    = 1000
	askWait = 20 * time.Second
)

// Study is a study of a server. Its methods may be called from several goroutines.
type Study struct {
	ID, Name string

	client *Client

	mu      sync.Mutex // never held over a call
	asking  int
	session *session
	spare   []*Trial // leased while Record looked for another one
}

type studyView struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	Reason     string          `json:"reason"`
	Definition StudyDefinition `json:"definition"`
	Rungs      []any           `json:"rungs"`
	Progress   struct {
		Enqueued int `json:"enqueued"`
	} `json:"progress"`
}

// StudyDefinition is what the server has of a study's definition, as far as this
// client needs it.
type StudyDefinition struct {
	Objectives []Objective `json:"objective"`
	Space      struct {
		Parameters []struct {
			Name string `json:"name"`
		} `json:"parameters"`
	} `json:"space"`
	Search struct {
		Promotion string `json:"promotion"`
	} `json:"search"`
}

// Status is how a study is.
type Status struct {
	// State is running, paused, completed, stopped or failed.
	State string
	// Reason says why it is over or paused.
	Reason string
	// Definition is what it was created with.
	Definition StudyDefinition
	// Rungs is how many budgets its trials climb.
	Rungs int
	// Enqueued is how many configurations wait to be tried first.
	Enqueued int
}

// Over reports whether nothing more happens in the study.
func (s Status) Over() bool {
	return s.State == "completed" || s.State == "stopped" || s.State == "failed"
}

// TrialRecord is a trial as the server has it.
type TrialRecord struct {
	Number int
	// State is queued, leased, running, paused, completed, pruned, failed, lost or
	// cancelled.
	State  string
	Reason string
	Params map[string]any
	// Values are the objectives at the highest budget that it was measured at; none
	// before.
	Values []float64
	// Epochs is how many epochs were trained.
	Epochs int
}

// Best is the trial that a study recommends.
type Best struct {
	Number int
	// Value is the (first) objective's.
	Value  float64
	Params map[string]any
}

// URL is the study's page.
func (s *Study) URL() string { return s.client.to.base + "/studies/" + s.ID }

func (s *Study) path(parts string) string { return "/studies/" + url.PathEscape(s.ID) + parts }

// Status asks the server how the study is.
func (s *Study) Status(ctx context.Context) (Status, error) {
	var view studyView
	err := s.client.to.send(ctx, call{doing: "look at the study", path: s.path("")}, &view)
	return Status{State: view.Status, Reason: view.Reason, Definition: view.Definition, Rungs: len(view.Rungs), Enqueued: view.Progress.Enqueued}, err
}

// Trials are all trials of the study, by their number.
func (s *Study) Trials(ctx context.Context) ([]TrialRecord, error) { return s.TrialsFrom(ctx, 0) }

// TrialsFrom are the trials whose number is at least the first, by their number.
func (s *Study) TrialsFrom(ctx context.Context, first int) ([]TrialRecord, error) {
	var found []TrialRecord
	for {
		var answer struct {
			Trials []struct {
				Number  int            `json:"number"`
				State   string         `json:"state"`
				Reason  string         `json:"reason"`
				Params  map[string]any `json:"params"`
				Epochs  int            `json:"epochs"`
				Results []struct {
					Values []number `json:"values"`
				} `json:"results"`
			} `json:"trials"`
			Total int `json:"total"`
		}
		path := s.path("/trials?sort=number&limit=" + strconv.Itoa(page) + "&offset=" + strconv.Itoa(first+len(found)))
		if err := s.client.to.send(ctx, call{doing: "list the trials", path: path}, &answer); err != nil {
			return nil, err
		}
		for _, one := range answer.Trials {
			record := TrialRecord{Number: one.Number, State: one.State, Reason: one.Reason, Params: plainAll(one.Params), Epochs: one.Epochs}
			if last := len(one.Results) - 1; last >= 0 {
				for _, value := range one.Results[last].Values {
					record.Values = append(record.Values, float64(value))
				}
			}
			found = append(found, record)
		}
		if len(answer.Trials) == 0 || first+len(found) >= answer.Total {
			return found, nil
		}
	}
}

// Best is the trial to use; nil before any was measured.
func (s *Study) Best(ctx context.Context) (*Best, error) {
	var answer struct {
		Best *struct {
			Number int            `json:"number"`
			Value  number         `json:"value"`
			Params map[string]any `json:"params"`
		} `json:"best"`
	}
	err := s.client.to.send(ctx, call{doing: "ask for the best trial", path: s.path("/recommendation")}, &answer)
	if err != nil || answer.Best == nil {
		return nil, err
	}
	return &Best{answer.Best.Number, float64(answer.Best.Value), plainAll(answer.Best.Params)}, nil
}

// Enqueue has the study try configurations before anything that its search proposes.
// Parameters that one lacks are drawn.
func (s *Study) Enqueue(ctx context.Context, configurations ...map[string]any) error {
	document := map[string]any{"configurations": configurations}
	return s.client.to.send(ctx, call{doing: "enqueue configurations", method: http.MethodPost, path: s.path("/enqueue"), document: document}, nil)
}

// Stop ends the study: it gives no trial any more.
func (s *Study) Stop(ctx context.Context) error {
	return s.client.to.send(ctx, call{doing: "stop the study", method: http.MethodPost, path: s.path("/stop")}, nil)
}

// Delete removes the study and everything of it.
func (s *Study) Delete(ctx context.Context) error {
	return s.client.to.send(ctx, call{doing: "delete the study", method: http.MethodDelete, path: s.path("")}, nil)
}

// Ask waits for a trial to run here; end it by Tell, Fail or Interrupt. The context
// stays the trial's. ErrStudyOver says that there will be none.
func (s *Study) Ask(ctx context.Context) (*Trial, error) {
	if kept := s.takeSpare(); kept != nil {
		return kept, nil
	}
	return s.ask(ctx)
}

func (s *Study) takeSpare() *Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) == 0 {
		return nil
	}
	kept := s.spare[0]
	s.spare = s.spare[1:]
	return kept
}

func (s *Study) ask(ctx context.Context) (*Trial, error) {
	s.mu.Lock()
	s.asking++
	asking := s.asking
	session := s.session
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.asking--
		s.mu.Unlock()
	}()
	if session == nil {
		opened, err := s.client.open(ctx, s.ID, asking)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		if s.session == nil {
			s.session = opened
		}
		session = s.session
		s.mu.Unlock()
		if session != opened { // another goroutine was faster
			opened.close()
		}
	}
	if err := session.reserve(ctx, len(session.all())+asking); err != nil {
		return nil, err
	}
	return session.next(ctx)
}

// next asks until there is a trial.
func (s *session) next(ctx context.Context) (*Trial, error) {
	for {
		trial, err := s.lease(ctx, askWait)
		if isDamaged(err) {
			continue // it goes on from the checkpoint before
		}
		if trial != nil || err != nil {
			return trial, err
		}
	}
}

// Tell ends a trial of Ask: the value is reported as the last epoch of the budget,
// unless that was reported, or the trial was stopped. It returns the trial's state.
func (s *Study) Tell(ctx context.Context, trial *Trial, value float64) (string, error) {
	held, err := heldBy(trial)
	if err != nil {
		return "", err
	}
	if err := trial.complete(value); err != nil {
		return "", err
	}
	return held.finish(ctx, trial.outcome(), trial.wanted.Reason, "")
}

// Fail ends a trial of Ask that did not work.
func (s *Study) Fail(ctx context.Context, trial *Trial, reason string) (string, error) {
	held, err := heldBy(trial)
	if err != nil {
		return "", err
	}
	return held.finish(ctx, "failed", reason, "")
}

// Interrupt gives a trial of Ask back, to go on here or elsewhere.
func (s *Study) Interrupt(ctx context.Context, trial *Trial, reason string) (string, error) {
	held, err := heldBy(trial)
	if err != nil {
		return "", err
	}
	return held.finish(ctx, "interrupted", reason, "")
}

func heldBy(trial *Trial) (*leased, error) {
	held, is := trial.link.(*leased)
	if !is {
		return nil, fmt.Errorf("tandem: trial %s was not asked for by Ask: it ends with its process", trial.ID)
	}
	return held, nil
}

// Close gives trials of Ask that were not told back, and leaves the study: with the
// last process that works on it, it pauses.
func (s *Study) Close() {
	s.mu.Lock()
	session := s.session
	s.session, s.spare = nil, nil
	s.mu.Unlock()
	if session != nil {
		session.close()
	}
}
