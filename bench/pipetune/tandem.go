package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/bench/wholemachine"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// tune lets Tandem search, on a new server with the arm's ground truth.
func (o options) tune(ctx context.Context, w workload, a arm, seed int) (result run, err error) {
	truths, err := o.truths(w, a.truth)
	if err != nil {
		return result, err
	}
	s, err := openSite(ctx, o, a.slots, truths)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	result, err = o.search(ctx, s, w, a, seed)
	if err == nil && a.tuned {
		err = o.keepDetail(ctx, s, w, a, seed)
	}
	return result, err
}

// search has one study run and reads what came out.
func (o options) search(ctx context.Context, s *site, w workload, a arm, seed int) (result run, err error) {
	name := studyName(w, a, seed)
	file, err := o.document(w, a, name, seed)
	if err != nil {
		return result, err
	}
	meter := wholemachine.Start()
	if _, err := s.client.CreateStudy(ctx, file, "application/json"); err != nil {
		return result, err
	}
	view, err := s.finished(ctx, name, time.Duration(o.patience*float64(time.Second)))
	if err != nil {
		return result, err
	}
	seconds, energy, busy := meter.Stop()
	result = run{Seconds: seconds, Joules: energy.Joules, Method: energy.Method, Busy: busy, Trials: view.Progress.Created, Epochs: view.Progress.Epochs}
	if result.Curve, result.Setup, err = curve(ctx, s.client, name, view.Created); err != nil {
		return result, err
	}
	result.Winner, err = recommended(ctx, s.client, name, a)
	return result, err
}

// curve reads every epoch of a study, in the order they were trained, and the
// seconds that the starts of processes took.
func curve(ctx context.Context, client *rest.Client, study string, began time.Time) (points []point, setup float64, err error) {
	page, err := client.Trials(ctx, study, protocol.TrialQuery{Sort: "number", Limit: 10_000})
	if err != nil {
		return nil, 0, err
	}
	for _, one := range page.Trials {
		detail, err := client.Trial(ctx, study, one.Number)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range detail.Reports {
			setup += float64(r.SetupSeconds)
			points = append(points, point{
				At: r.At.Sub(began).Seconds(), Trial: one.Number, Epoch: r.Epoch, Accuracy: finite(r.Metrics["accuracy"]),
				Seconds: float64(r.Seconds), Threads: threadsOf(r), Phase: string(r.SystemPhase),
			})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return points, setup, nil
}

// threadsOf is the number of threads a report says were in force; 0 for none said.
func threadsOf(r trial.Report) int {
	n, ok := r.System["cpu_threads"].Number()
	if !ok {
		return 0
	}
	return int(n)
}

// finite is a metric as a number that JSON has: what is none is as bad as can be.
func finite(value trial.Float) float64 {
	if f := float64(value); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return f
	}
	return 0
}

// recommended is the study's answer, and with how many threads to train it.
func recommended(ctx context.Context, client *rest.Client, study string, a arm) (winner, error) {
	answer, err := client.Recommendation(ctx, study)
	if err != nil {
		return winner{}, err
	}
	if answer.Best == nil {
		return winner{}, fmt.Errorf("study %s recommends nothing: %v", study, answer.Notes)
	}
	detail, err := client.Trial(ctx, study, answer.Best.Number)
	if err != nil {
		return winner{}, err
	}
	w := winner{Params: map[string]any{}, Accuracy: finite(answer.Metrics["accuracy"]), Epochs: detail.Trial.LastEpoch, Trained: float64(answer.Seconds)}
	text, err := json.Marshal(detail.Trial.Configuration)
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(text, &w.Params); err != nil {
		return w, err
	}
	switch {
	case a.asParameters:
		threads, _ := w.Params["threads"].(float64)
		w.Threads = int(threads)
		delete(w.Params, "threads")
	case a.slots == "cores":
		w.Threads = 1
	default: // V1 and what was tuned; the last report of a tuned trial says it
		w.Threads = cores()
		if n, ok := answer.System["cpu_threads"].Number(); ok {
			w.Threads = int(n)
		}
	}
	return w, nil
}

// keepDetail keeps the whole study of a tuned arm: which configuration ran in
// which epoch, and why.
func (o options) keepDetail(ctx context.Context, s *site, w workload, a arm, seed int) error {
	stream, err := s.client.Export(ctx, studyName(w, a, seed), "json")
	if err != nil {
		return err
	}
	defer stream.Close()
	return copyTo(stream, o.inFolder("studies", studyName(w, a, seed)+".json"), os.O_TRUNC)
}
