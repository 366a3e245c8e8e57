// Command similarity measures how well profiles tell workloads apart.
//
//	go run ./bench/similarity -record runs.json    # about 7 minutes on 2 cores; needs PyTorch
//	go run ./bench/similarity -evaluate runs.json  # seconds; the tables of docs/benchmarks/similarity.md
//
// Eleven workloads train (workloads/workload.py), each in several processes:
// three runs that differ in nothing but chance, one with another batch size (or
// size of the problem) and one beside a busy neighbour. Within a run the system
// configuration changes from epoch to epoch, as PipeTune's probing does it.
// Epochs are profiled like a worker does it, and become records like a server's.
//
// Then, with the package similarity as it is: does a run match the others of
// its workload if it is left out (match rate), and is it told to be new when
// its whole workload is left out (rejection)?
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	into := flag.String("record", "", "record the workloads into this file")
	from := flag.String("evaluate", "", "evaluate the runs of this file")
	fixed := flag.String("fixture", "", "with -evaluate: write the features into this file, for similarity/testdata")
	python := flag.String("python", "python3", "an interpreter with PyTorch, for -record")
	seconds := flag.Float64("seconds", 1, "length of an epoch, for -record")
	count := flag.Int("runs", 5, "runs of each workload, for -record: three that are the same, one with a larger batch, one beside a neighbour")
	only := flag.String("workload", "", "record this workload only")
	flag.Parse()
	err := fmt.Errorf("what to do? -record FILE or -evaluate FILE")
	switch {
	case *into != "":
		err = record(*into, campaign{python: *python, seconds: *seconds, only: *only, runs: *count})
	case *from != "":
		err = evaluate(*from, *fixed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/similarity:", err)
		os.Exit(1)
	}
}

func save(file string, what any) error {
	content, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}

func load(file string) ([]run, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var runs []run
	return runs, json.Unmarshal(content, &runs)
}
