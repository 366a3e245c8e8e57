package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/launched"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// run is one process of a workload.
type run struct {
	Workload string `json:"workload"`
	// Variant is what is special: "same", "larger batch" or "neighbour".
	Variant string  `json:"variant"`
	Number  int     `json:"number"`
	Epochs  []epoch `json:"epochs"`
}

// epoch is one profile; the first epoch of a run warms up and is not kept.
type epoch struct {
	Configuration system.Configuration `json:"configuration"`
	Profile       trial.Profile        `json:"profile"`
}

// The variants of runs.
const (
	same      = "same"
	larger    = "larger batch"
	neighbour = "neighbour"
)

type campaign struct {
	python  string
	seconds float64
	only    string
	runs    int
}

func workloads() []string {
	return []string{"lenet", "perceptron", "autoencoder", "text-convolution", "text-recurrent", "text-attention", "jacobi", "kmeans", "search", "decomposition", "forest"}
}

// configurations are written THREADSxCORES.
func configurations() []string { return []string{"1x1", "2x1", "1x2", "2x2"} }

func record(file string, c campaign) error {
	var runs []run
	for number := range c.runs {
		for _, workload := range workloads() {
			if c.only != "" && c.only != workload {
				continue
			}
			one := run{Workload: workload, Number: number, Variant: same}
			switch number {
			case 3:
				one.Variant = larger
			case 4:
				one.Variant = neighbour
			}
			if err := c.perform(&one); err != nil {
				return fmt.Errorf("%s, run %d: %w", workload, number, err)
			}
			fmt.Printf("%s, %s, run %d: %d epochs\n", one.Workload, one.Variant, one.Number, len(one.Epochs))
			runs = append(runs, one)
		}
	}
	return save(file, runs)
}

// perform runs the workload; in each run the configurations begin at another
// one, so that what comes first is not always the same.
func (c campaign) perform(one *run) error {
	list := configurations()
	list = slices.Concat(list[one.Number%4:], list[:one.Number%4])
	if one.Variant == same {
		list = slices.Concat(list, list)
	}
	scale := 1
	if one.Variant == larger {
		scale = 2
	}
	if one.Variant == neighbour {
		busy := exec.Command(c.python, "-c", "while True: pass")
		if err := busy.Start(); err != nil {
			return err
		}
		defer func() {
			busy.Process.Kill() //nolint:errcheck // it has not ended by itself
			busy.Wait()         //nolint:errcheck // it was killed
		}()
	}
	command := exec.Command(c.python, "bench/similarity/workloads/workload.py", one.Workload,
		"--schedule", strings.Join(list, ","), "--seconds", fmt.Sprint(c.seconds),
		"--scale", strconv.Itoa(scale), "--seed", strconv.Itoa(one.Number))
	return one.follow(command)
}

// follow profiles the command and takes a lap at each epoch's line.
func (r *run) follow(command *exec.Cmd) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	command.Stdout, command.Stderr = in, os.Stderr
	running, err := launched.Command(command, perf.Events(), profiler.DefaultInterval)
	in.Close() //nolint:errcheck // the command has its own
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var said struct {
			Epoch   int
			Threads int64
			Cores   int64
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		lap := running.Recorder.Lap()
		if said.Epoch > 1 {
			configuration := system.Configuration{system.CPUThreads: space.Int(said.Threads), system.Cores: space.Int(said.Cores)}
			r.Epochs = append(r.Epochs, epoch{configuration, compact(lap)})
		}
	}
	return running.Wait()
}

// compact is what a report has of a profile, without the machine's metrics and
// to six digits.
func compact(p profiler.Profile) trial.Profile {
	c := trial.Profile{Level: string(p.Level), Events: map[string]trial.Float{}, Host: map[string]trial.Float{}}
	for _, event := range p.Events {
		c.Events[event.Name] = rounded(event.PerSecond)
	}
	for _, metric := range p.Host {
		if strings.HasPrefix(metric.Name, "tree.") {
			c.Host[metric.Name] = rounded(metric.Value)
		}
	}
	return c
}

func rounded(value float64) trial.Float {
	short, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 6, 64), 64)
	if err != nil {
		return trial.Float(value)
	}
	return trial.Float(short)
}
