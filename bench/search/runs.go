package main

import (
	"bufio"
	"encoding/json"
	"errors"
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
}

func saveRuns(path string, runs []finished) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	for _, one := range runs {
		line := stored{Method: one.method, Problem: one.problem, Seed: one.seed, Workers: one.workers, Budget: one.budget, Seconds: one.seconds, Marks: [][3]float64{}}
		for _, m := range one.marks {
			line.Marks = append(line.Marks, [3]float64{m.cost, m.seconds, m.regret})
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
		for _, m := range line.Marks {
			one.marks = append(one.marks, mark{cost: m[0], seconds: m[1], regret: m[2]})
		}
		runs = append(runs, one)
	}
}
