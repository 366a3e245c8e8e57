// Command batching compares policies of putting requests together in a real
// server loop: requests come in real time, wait in bench/edgetune/gather and are inferred
// by a real runner; and, without one, in simulation.
//
//	go run ./bench/edgetune/batching                                # matrices in Go, at most 8 minutes
//	go run ./bench/edgetune/batching -onnx -python PYTHON           # ONNX Runtime, in that interpreter
//	go run ./bench/edgetune/batching -onnx -python PYTHON -model M  # a model whose first dimension is the batch
//	go run ./bench/edgetune/batching -tandem BINARY -python PYTHON -model M -rates 0.2,0.5,0.8   # the program of "tandem edge deploy"
//	go run ./bench/edgetune/batching -simulate                      # the tables of docs/benchmarks/edgetune.md, seconds
//
// First the latency curve is measured. Then, for each rate (a share of what the
// curve says any policy sustains), inference_emu/batching chooses a policy, and single
// samples, greedy batches, fixed batches of each measured size and the choice
// meet the same arrivals, several times, in an order that changes. Response
// times count from when a request was to come, so a late generator is no
// excuse. Policies that do not sustain a rate are not run at it. Beside each
// measured mean is the one simulated on the curve with the same arrivals.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// plan is what is compared, and how much of it.
type plan struct {
	sizes       []int     // batch sizes of the curve
	shares      []float64 // rates as shares of the capacity
	repetitions int
	length      time.Duration // of each trial
	seed        uint64
}

func main() {
	var p plan
	onnx := flag.Bool("onnx", false, "infer with ONNX Runtime instead of matrices in Go")
	python := flag.String("python", "python3", "interpreter with onnxruntime and numpy, for -onnx")
	model := flag.String("model", "", "ONNX file, for -onnx; without one, a network with random weights")
	width := flag.Int("width", 2048, "width of the hidden layers")
	tandem := flag.String("tandem", "", "the tandem command: measure the programs that it prints for -model on this machine")
	bound := flag.Duration("p99", time.Second, "for -tandem, what the 99th percentile may be")
	threads := flag.Int("threads", 1, "threads of an inference, for -onnx")
	sizes := flag.String("sizes", "1,2,4,8,16,32", "batch sizes to measure")
	shares := flag.String("rates", "0.1,0.3,0.5,0.7,0.9,0.95", "rates, as shares of the capacity")
	simulate := flag.Bool("simulate", false, "print the simulated tables and measure nothing")
	flag.IntVar(&p.repetitions, "repetitions", 5, "trials of each policy at each rate")
	flag.DurationVar(&p.length, "length", 2*time.Second, "length of a trial")
	flag.Uint64Var(&p.seed, "seed", 1, "seed of the arrivals")
	flag.Parse()
	err := p.read(*sizes, *shares)
	switch {
	case err != nil:
	case *simulate:
		err = simulated(os.Stdout, 200_000, p.seed)
	case *tandem != "":
		folder, fault := os.MkdirTemp("", "batching")
		if err = fault; err == nil {
			defer os.RemoveAll(folder)
			err = programs{p, *tandem, *python, *model, folder, p.length.Seconds(), bound.Seconds()}.compare(os.Stdout)
		}
	case *onnx:
		err = withONNX(p, []string{*python, *model, strconv.Itoa(*width), strconv.Itoa(*threads)})
	default:
		err = compare(os.Stdout, newMatrices(*width, p.seed), p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/edgetune/batching:", err)
		os.Exit(1)
	}
}

func (p *plan) read(sizes, shares string) error {
	for _, text := range strings.Split(sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		p.sizes = append(p.sizes, size)
	}
	for _, text := range strings.Split(shares, ",") {
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || !(share > 0) || share >= 1 {
			return fmt.Errorf("-rates: %q is not a share of the capacity, above 0 and below 1", text)
		}
		p.shares = append(p.shares, share)
	}
	if p.repetitions < 2 {
		return fmt.Errorf("-repetitions %d: there is no interval of fewer than 2", p.repetitions)
	}
	return nil
}
