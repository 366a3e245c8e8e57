package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/bench/wholemachine"
)

// line is an epoch that a peer's driver has written down.
type line struct {
	At       float64        `json:"at"` // seconds of Unix time
	Trial    int            `json:"trial"`
	Epoch    int            `json:"epoch"`
	Accuracy float64        `json:"accuracy"`
	Seconds  float64        `json:"seconds"`
	Threads  int            `json:"threads"`
	Params   map[string]any `json:"params"`
}

// peer lets Optuna or Ray Tune search, in a process of its own.
func (o options) peer(ctx context.Context, w workload, a arm, seed int) (result run, err error) {
	folder, err := os.MkdirTemp("", "tandem-pipetune-")
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(folder)
	space, err := json.Marshal(w.space)
	if err != nil {
		return result, err
	}
	epochs := filepath.Join(folder, "epochs.jsonl")
	arguments := []string{
		filepath.Join(o.scripts, string(a.tool)+"_study.py"), "--workload", w.name, "--space", string(space), "--seed", strconv.Itoa(seed),
		"--budget", strconv.Itoa(o.passes), "--epochs", strconv.Itoa(maxEpochs), "--eta", strconv.Itoa(eta), "--out", epochs,
	}
	if a.processes == "cores" {
		arguments = append(arguments, "--processes", strconv.Itoa(cores()))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.patience*float64(time.Second)))
	defer cancel()
	command := exec.CommandContext(ctx, o.interpreter(a.tool), arguments...)
	command.Env = o.environment(o.threadsVariable(a))
	meter := wholemachine.Start()
	began := time.Now()
	if output, err := command.CombinedOutput(); err != nil {
		return result, fmt.Errorf("%s: %w\n%s", a.name, err, output)
	}
	seconds, energy, busy := meter.Stop()
	lines, err := load[line](epochs)
	if err != nil {
		return result, err
	}
	result = run{Seconds: seconds, Joules: energy.Joules, Method: energy.Method, Busy: busy}
	return result, result.take(lines, began)
}

func (o options) threadsVariable(a arm) string {
	if a.threads == "cores" {
		return strconv.Itoa(cores())
	}
	return a.threads
}

// take counts a peer's epochs and finds what it recommends: the best of the
// trials that were trained the furthest, as Tandem's and Optuna's answers are.
func (r *run) take(lines []line, began time.Time) error {
	if len(lines) == 0 {
		return fmt.Errorf("it trained nothing")
	}
	seconds, last := map[int]float64{}, map[int]line{}
	furthest := 0
	for _, one := range lines {
		seconds[one.Trial] += one.Seconds
		if one.Epoch >= last[one.Trial].Epoch {
			last[one.Trial] = one
		}
		furthest = max(furthest, one.Epoch)
		r.Curve = append(r.Curve, point{
			At: one.At - float64(began.UnixNano())/1e9, Trial: one.Trial, Epoch: one.Epoch, Accuracy: one.Accuracy, Seconds: one.Seconds, Threads: one.Threads,
		})
	}
	r.Trials, r.Epochs = len(last), len(lines)
	best := line{Accuracy: -1}
	for _, one := range last {
		if one.Epoch == furthest && (one.Accuracy > best.Accuracy || one.Accuracy == best.Accuracy && one.Trial < best.Trial) {
			best = one
		}
	}
	r.Winner = winner{Params: best.Params, Threads: best.Threads, Accuracy: best.Accuracy, Epochs: best.Epoch, Trained: seconds[best.Trial]}
	return nil
}
