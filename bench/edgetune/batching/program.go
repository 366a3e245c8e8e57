package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
)

// programs measures the programs that "tandem edge deploy" prints for this machine: the
// 99th percentile under the load that each was chosen for, beside the predicted one.
type programs struct {
	plan
	tandem, python, model, folder string
	span, bound                   float64 // seconds
}

func (p programs) command(name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(context.Background(), name, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

// measured runs the model here, and returns what "tandem edge deploy" takes of it and the curve.
func (p programs) measured() (runs string, curve batching.Curve, err error) {
	var sizes []string
	for _, size := range p.sizes {
		sizes = append(sizes, strconv.Itoa(size))
	}
	ran, err := p.command(p.tandem, "edge", "run", p.model, "--batch", strings.Join(sizes, ","), "--threads", "1,2", "--json")
	if err != nil {
		return "", curve, err
	}
	if curve, err = curveOf(ran); err != nil {
		return "", curve, err
	}
	runs = filepath.Join(p.folder, "runs.json")
	return runs, curve, os.WriteFile(runs, ran, 0o600)
}

var measuredTail = regexp.MustCompile(`^p99 ([0-9.e+-]+) ms`)

func (p programs) compare(out io.Writer) error {
	runs, curve, err := p.measured()
	if err != nil {
		return err
	}
	capacity := batching.Server{Curve: curve}.Capacity()
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RATE\tPOLICY\tRUN WITH\tPREDICTED P99\tMEASURED P99, MEDIAN (RANGE)")
	for _, share := range p.shares {
		args := []string{"edge", "deploy", p.model, "--device", "this-machine", "--measured", p.model + "=" + runs, "--batch-high", strconv.Itoa(curve.Largest()),
			"--rate", fmt.Sprintf("%.4g/s", share*capacity), "--p99", fmt.Sprintf("%gms", 1e3*p.bound)}
		said, err := p.command(p.tandem, append(args, "--json")...)
		var found []deployment.Deployment
		if err == nil {
			err = json.Unmarshal(said, &found)
		}
		if err != nil {
			return err
		}
		load, tails := found[0].Batching, []float64{}
		program := filepath.Join(p.folder, "infer.py")
		if err := os.WriteFile(program, []byte(found[0].Code), 0o600); err != nil {
			return err
		}
		for range p.repetitions {
			said, err := p.command(p.python, program, p.model, "--load", fmt.Sprint(p.span))
			if err != nil {
				return err
			}
			told := measuredTail.FindSubmatch(said)
			if told == nil {
				return fmt.Errorf("the program said %s", said)
			}
			tail, err := strconv.ParseFloat(string(told[1]), 64)
			if err != nil {
				return err
			}
			tails = append(tails, tail)
		}
		slices.Sort(tails)
		fmt.Fprintf(w, "%.4g/s (%.0f%%)\tat most %d, wait %.3g ms\t%d cores, %s\t%.3g ms\t%.3g ms (%.3g to %.3g)\n", load.RatePerSecond, 100*share, load.MaxBatch, 1e3*load.WaitSeconds,
			found[0].Configuration.Cores, strings.SplitN(found[0].Method, ":", 2)[0], 1e3*load.P99Seconds, tails[len(tails)/2], tails[0], tails[len(tails)-1])
	}
	return w.Flush()
}

// cell is what "tandem edge run --json" prints of a setting.
type cell struct {
	Batch, Threads int
	Latency        struct {
		Mean      float64 `json:"mean_seconds"`
		Deviation float64 `json:"deviation_seconds"`
	}
	Rate   float64 `json:"samples_per_second"`
	Joules float64 `json:"joules_per_sample"`
}

// curveOf is the curve of the number of threads that had the highest throughput.
func curveOf(ran []byte) (batching.Curve, error) {
	var measured struct{ Cells []cell }
	if err := json.Unmarshal(ran, &measured); err != nil {
		return batching.Curve{}, err
	}
	best := slices.MaxFunc(measured.Cells, func(a, b cell) int { return cmp.Compare(a.Rate, b.Rate) })
	var points []batching.Point
	for _, one := range measured.Cells {
		if one.Threads == best.Threads {
			points = append(points, batching.Point{Batch: one.Batch, Seconds: one.Latency.Mean, Joules: one.Joules * float64(one.Batch), Deviation: one.Latency.Deviation})
		}
	}
	return batching.NewCurve(points)
}
