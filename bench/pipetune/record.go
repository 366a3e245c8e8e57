package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// point is an epoch that a study trained.
type point struct {
	// At is seconds since the study began, Seconds what the epoch itself took.
	At       float64 `json:"at"`
	Trial    int     `json:"trial"`
	Epoch    int     `json:"epoch"`
	Accuracy float64 `json:"accuracy"`
	Seconds  float64 `json:"seconds"`
	Threads  int     `json:"threads,omitempty"`
	Phase    string  `json:"phase,omitempty"`
}

// winner is the configuration that a study recommends.
type winner struct {
	Params map[string]any `json:"params"`
	// Threads to train it with, 0 for as many as the process takes by itself.
	Threads int `json:"threads"`
	// Accuracy on the validation part, after Epochs.
	Accuracy float64 `json:"accuracy"`
	Epochs   int     `json:"epochs"`
	// Trained is what its epochs took in the study, possibly beside another.
	Trained float64 `json:"trained_seconds"`
	// The rest is measured when it is trained again for the full budget, alone.
	Retrained    bool    `json:"retrained"`
	Seconds      float64 `json:"seconds,omitempty"`
	TestAccuracy float64 `json:"test_accuracy,omitempty"`
	Joules       float64 `json:"joules,omitempty"`
}

// run is one study of one arm.
type run struct {
	Workload   string  `json:"workload"`
	Arm        string  `json:"arm"`
	Repetition int     `json:"repetition"`
	Passes     int     `json:"passes"`
	Scale      float64 `json:"scale"`
	Started    string  `json:"started"`
	Commit     string  `json:"commit"`
	Machine    machine `json:"machine"`
	// Load is the machine's load average when it began.
	Load float64 `json:"load"`
	// Seconds is from the order to tune until the answer.
	Seconds float64 `json:"seconds"`
	// Setup is the part of all trials' seconds before their training began.
	Setup  float64 `json:"setup_seconds,omitempty"`
	Trials int     `json:"trials"`
	Epochs int     `json:"epochs"`
	// Joules are of the whole machine, Busy the CPU seconds of it.
	Joules float64 `json:"joules"`
	Method string  `json:"joules_method"`
	Busy   float64 `json:"busy_seconds"`
	Winner winner  `json:"winner"`
	Curve  []point `json:"curve"`
	Error  string  `json:"error,omitempty"`
}

// resultsFile is where runs of the comparison are kept, one a line.
func (o options) resultsFile() string { return filepath.Join(o.out, "runs.jsonl") }

// load reads what was measured before; a file that is not there has nothing.
func load[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var list []T
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var one T
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(list)+1, err)
		}
		list = append(list, one)
	}
	return list, scanner.Err()
}

// add appends one line.
func add(path string, one any) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
