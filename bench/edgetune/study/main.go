// Command study measures what it is worth to know inference while tuning: the
// same network, space, seeds and budget with and without emulation, with
// objectives of runtime and of energy, and with the three policies of budgets
// (thesis, section 7.5: figures 7.11 to 7.13, 7.15 and 7.16).
//
//	bench/pipetune/data.sh
//	go run ./bench/edgetune/study -data FOLDER -repetitions 5
//
// Each arm is a new server with one worker on this machine; the device that
// inference is for is a Raspberry Pi 4, by estimate. What an arm's winner takes
// there is found in the same way for all. It prints Markdown; results that are in
// -out are not measured again. The machine should do nothing else.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/wholemachine"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/trial"
)

// target is where inference is to run.
const target = "raspberry-pi-4"

// options are the flags.
type options struct {
	python, data, client, scripts, out, binary string
	arms                                       string
	first, repetitions, images, passes         int
}

// arm is one way to tune.
type arm struct {
	name     string
	emulates bool
	goal     map[string]any
	budget   map[string]any
	floor    float64 // the least accuracy a trial must reach, 0 for none
}

// floor is the accuracy that the arms with one ask for: what a network that is
// hardly tuned reaches, so that trading accuracy for speed ends there.
const floor = 0.75

func arms() []arm {
	accuracy := map[string]any{"metric": "accuracy", "direction": "maximize"}
	runtime := map[string]any{"expression": "train_seconds * inference_seconds / accuracy", "name": "runtime_ratio", "direction": "minimize"}
	energy := map[string]any{"expression": "train_joules * inference_joules / accuracy", "name": "energy_ratio", "direction": "minimize"}
	epochs := map[string]any{"policy": "epochs", "epochs": map[string]int{"min": 1, "max": 9}, "eta": 3}
	dataset := map[string]any{"policy": "dataset", "epochs": 3, "data_fraction": map[string]float64{"min": 0.11, "max": 1}, "eta": 3}
	multi := map[string]any{"policy": "multi", "epochs": map[string]int{"min": 1, "max": 9}, "data_fraction": map[string]float64{"min": 0.11, "max": 1}, "eta": 3}
	return []arm{
		{"accuracy, not emulated", false, accuracy, multi, 0},
		{"accuracy, emulated", true, accuracy, multi, 0},
		{"runtime ratio", true, runtime, multi, 0},
		{"energy ratio", true, energy, multi, 0},
		{"runtime ratio, floor", true, runtime, multi, floor},
		{"energy ratio, floor", true, energy, multi, floor},
		{"runtime ratio, epochs", true, runtime, epochs, 0},
		{"runtime ratio, dataset", true, runtime, dataset, 0},
	}
}

// result is one study.
type result struct {
	Arm           string  `json:"arm"`
	Repetition    int     `json:"repetition"`
	Seconds       float64 `json:"seconds"` // from creating the study to its end
	Joules        float64 `json:"joules"`
	Trials        int     `json:"trials"`
	Architectures int     `json:"architectures"`
	Accuracy      float64 `json:"accuracy"`
	LatencyMS     float64 `json:"latency_ms"`
	Throughput    float64 `json:"throughput"`
	SampleJoules  float64 `json:"sample_joules"`
	TrainSeconds  float64 `json:"train_seconds"`
}

func main() {
	o := options{}
	flag.StringVar(&o.python, "python", "/usr/bin/python3", "an interpreter with PyTorch")
	flag.StringVar(&o.data, "data", "", "folder that bench/pipetune/data.sh has filled")
	flag.StringVar(&o.client, "client", "clients/python", "folder of the Python client")
	flag.StringVar(&o.scripts, "scripts", "bench/edgetune/study", "folder of the training script")
	flag.StringVar(&o.out, "out", "edgetune-results", "folder of the results")
	flag.StringVar(&o.arms, "arms", "", "only these arms, by their names with semicolons between; all if empty")
	flag.IntVar(&o.first, "first", 1, "number of the first repetition, which is its seed")
	flag.IntVar(&o.repetitions, "repetitions", 5, "how often each arm tunes, each time with another seed")
	flag.IntVar(&o.images, "images", 2000, "images that a whole epoch trains on")
	flag.IntVar(&o.passes, "passes", 30, "budget of a study, in passes over the data")
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edgetune/study:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) (err error) {
	for _, path := range []*string{&o.data, &o.client, &o.scripts, &o.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if o.binary, err = launch.Build(ctx, o.out); err != nil {
		return err
	}
	all, err := o.known()
	if err != nil {
		return err
	}
	for repetition := o.first; repetition < o.first+o.repetitions; repetition++ {
		order, err := chosen(o.arms)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(uint64(repetition), 7))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, one := range order {
			if slices.ContainsFunc(all, func(r result) bool { return r.Arm == one.name && r.Repetition == repetition }) {
				continue
			}
			found, err := o.tune(ctx, one, repetition)
			if err != nil {
				return fmt.Errorf("%s, repetition %d: %w", one.name, repetition, err)
			}
			all = append(all, found)
			if err := o.keep(found); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%-24s %d: %.1f s, %.0f J, accuracy %.4f, %.3f ms, %d architectures in %d trials\n",
				one.name, repetition, found.Seconds, found.Joules, found.Accuracy, found.LatencyMS, found.Architectures, found.Trials)
		}
	}
	printReport(all)
	return nil
}

// chosen are the arms of these names, all of them for no name.
func chosen(names string) ([]arm, error) {
	all := arms()
	if names == "" {
		return all, nil
	}
	var some []arm
	for name := range strings.SplitSeq(names, ";") {
		at := slices.IndexFunc(all, func(a arm) bool { return a.name == strings.TrimSpace(name) })
		if at < 0 {
			return nil, fmt.Errorf("-arms: there is no arm %q", name)
		}
		some = append(some, all[at])
	}
	return some, nil
}

func (o options) path() string { return filepath.Join(o.out, "studies.jsonl") }

func (o options) known() ([]result, error) {
	var all []result
	for _, line := range launch.Lines(o.path()) {
		var one result
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (o options) keep(one result) error {
	file, err := os.OpenFile(o.path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(one), file.Close())
}

// document is an arm's study file.
func (o options) document(a arm, seed int) ([]byte, error) {
	emulate := "no"
	study := map[string]any{
		"name": "edge", "command": []string{o.python, "images.py"}, "objective": a.goal, "budget": a.budget,
		"search": map[string]any{"method": "bohb", "seed": seed}, "stop": map[string]any{"data_passes": o.passes, "trials": 200},
		"system": map[string]any{"cpu_threads": 1},
		"space": map[string]any{
			"channels":      map[string]any{"kind": "model", "type": "ordinal", "values": []int{8, 16, 32}},
			"blocks":        map[string]any{"kind": "model", "type": "ordinal", "values": []int{1, 2, 3}},
			"dropout":       map[string]any{"kind": "training", "type": "float", "low": 0, "high": 0.5},
			"learning_rate": map[string]any{"kind": "training", "type": "float", "low": 1e-4, "high": 3e-2, "log": true},
			"batch_size":    map[string]any{"kind": "training", "type": "ordinal", "values": []int{32, 64, 128, 256, 512}},
		},
	}
	if a.emulates {
		emulate = "yes"
		study["inference"] = map[string]any{"devices": []string{target}, "batch_size": map[string]int{"low": 1, "high": deployment.MaxBatch}, "objective": "energy"}
	}
	if a.floor > 0 {
		study["constraints"] = []map[string]any{{"metric": "accuracy", "min": a.floor}}
	}
	study["environment"] = map[string]string{
		"PIPETUNE_DATA": o.data, "PYTHONPATH": o.client, "PYTHONUNBUFFERED": "1", "EMULATE": emulate, "IMAGES": fmt.Sprint(o.images),
	}
	return json.Marshal(study)
}

// tune runs one study on a server of its own.
func (o options) tune(ctx context.Context, a arm, repetition int) (found result, err error) {
	found = result{Arm: a.name, Repetition: repetition}
	folder, err := os.MkdirTemp("", "tandem-edge-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	server, err := launch.Serve(o.binary, filepath.Join(folder, "data"))
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return found, err
	}
	worker, err := launch.Start(o.binary, []string{"TANDEM_SERVER=" + server.URL, "TANDEM_TOKEN=" + server.Token},
		"worker", "--probe", "never", "--slots", "2", "--directory", o.scripts, "--scratch", filepath.Join(folder, "scratch"),
		"--sandbox", "off") // scripts and data lie wherever the flags say
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	if err := registered(ctx, client); err != nil {
		return found, fmt.Errorf("%w:\n%s", err, worker.Output())
	}
	file, err := o.document(a, repetition)
	if err != nil {
		return found, err
	}
	meter := wholemachine.Start()
	if _, err := client.CreateStudy(ctx, file, "application/json"); err != nil {
		return found, err
	}
	for {
		view, err := client.Study(ctx, "edge")
		if err != nil {
			return found, err
		}
		if failed := view.Progress.Trials[trial.Failed]; failed > 0 {
			return found, fmt.Errorf("%d trials failed:\n%s", failed, worker.Output())
		}
		if view.Finished != nil {
			found.Trials = view.Progress.Created
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	seconds, energy, _ := meter.Stop()
	found.Seconds, found.Joules = seconds, energy.Joules
	return o.judge(ctx, client, folder, found)
}

// registered waits for the worker.
func registered(ctx context.Context, client *rest.Client) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		workers, err := client.Workers(ctx)
		if err != nil || len(workers) > 0 {
			return err
		}
	}
	return errors.New("the worker did not register")
}

// judge reads what came out, and what the winner takes at the edge.
func (o options) judge(ctx context.Context, client *rest.Client, folder string, found result) (result, error) {
	answer, err := client.Recommendation(ctx, "edge")
	if err != nil {
		return found, err
	}
	if answer.Best == nil {
		return found, fmt.Errorf("nothing was measured: %v", answer.Notes)
	}
	found.Accuracy, found.TrainSeconds = float64(answer.Metrics["accuracy"]), float64(answer.Seconds)
	if found.Architectures, err = architectures(ctx, client); err != nil {
		return found, err
	}
	params, err := json.Marshal(answer.Best.Params)
	if err != nil {
		return found, err
	}
	model := filepath.Join(folder, "winner.onnx")
	export := exec.CommandContext(ctx, o.python, filepath.Join(o.scripts, "images.py"), "--export", string(params), model)
	export.Env = append(os.Environ(), "PYTHONPATH="+o.client)
	if text, err := export.CombinedOutput(); err != nil {
		return found, fmt.Errorf("%w: %s", err, text)
	}
	content, err := os.ReadFile(filepath.Clean(model))
	if err != nil {
		return found, err
	}
	g, err := onnx.Read(content, onnx.Options{})
	if err != nil {
		return found, err
	}
	devices, err := device.Catalogue()
	if err != nil {
		return found, err
	}
	on, err := device.Find(devices, target)
	if err != nil {
		return found, err
	}
	a := emu.Architecture{Key: g.Key(), Graph: emu.Anonymous(g), ActivationBytes: g.PeakActivations(1), StoredBytes: g.StoredBytes()}
	best, err := deployment.Find(a, deployment.Target{Device: on, Machine: target}, nil,
		deployment.Settings{BatchLow: 1, BatchHigh: deployment.MaxBatch, Objective: tuning.Energy})
	found.LatencyMS, found.Throughput, found.SampleJoules = 1e3*best.LatencySeconds.Value, best.SamplesPerSecond, best.JoulesPerSample.Value
	return found, err
}

// architectures counts those that were looked at.
func architectures(ctx context.Context, client *rest.Client) (int, error) {
	page, err := client.Export(ctx, "edge", "json")
	if err != nil {
		return 0, err
	}
	defer page.Close()
	var document struct {
		Trials []trial.Trial `json:"trials"`
	}
	if err := json.NewDecoder(page).Decode(&document); err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	for _, one := range document.Trials {
		if one.Inference != nil {
			seen[one.Inference.Architecture] = true
		}
	}
	return len(seen), nil
}
