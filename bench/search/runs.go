package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// stored is a finished run as a file has it, one a line. Runs of other tools
// take long and do not depend on ours: they can be measured once and compared
// with again.
type stored struct {
	Method  string       `json:"method"`
	Problem string       `json:"problem"`
	Seed    uint64       `json:"seed"`
	Workers int          `json:"workers"`
	Budget  float64      `json:"budget"`
	Seconds float64      `json:"seconds"`
	Marks   [][3]float64 `json:"marks"` // cost, seconds, regret
	Full    [][2]float64 `json:"full"`  // cost, missing
}

func saveRuns(path string, runs []finished) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	for _, one := range runs {
		line := stored{Method: one.method, Problem: one.problem, Seed: one.seed, Workers: one.workers, Budget: one.budget, Seconds: one.seconds, Marks: [][3]float64{}, Full: [][2]float64{}}
		for _, m := range one.marks {
			line.Marks = append(line.Marks, [3]float64{m.cost, m.seconds, m.regret})
		}
		for _, m := range one.full {
			line.Full = append(line.Full, [2]float64{m.cost, m.missing})
		}
		if err := json.NewEncoder(buffer).Encode(line); err != nil {
			return err
		}
	}
	return buffer.Flush()
}

func loadRuns(path string) ([]finished, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var runs []finished
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; {
		var line stored
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return runs, nil
		}
		if err != nil {
			return nil, err
		}
		one := finished{method: line.Method, problem: line.Problem, seed: line.Seed, workers: line.Workers, budget: line.Budget, seconds: line.Seconds}
		if line.Full == nil {
			return nil, fmt.Errorf("%s: a run has no \"full\", as an earlier program wrote it: measure it again", path)
		}
		for _, m := range line.Marks {
			one.marks = append(one.marks, mark{cost: m[0], seconds: m[1], regret: m[2]})
		}
		for _, m := range line.Full {
			one.full = append(one.full, milestone{cost: m[0], missing: m[1]})
		}
		runs = append(runs, one)
	}
}
