package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// trace is the demand of a cluster at each minute.
type trace struct {
	name string
	file string
	// columns of the file are added up.
	columns []string
	unit    string
	total   int
	demand  []float64
}

func traces() []trace {
	const earth, philly = "helios_earth/earth_vc6YE.csv.gz", "helios_earth/philly_node_sequence.csv.gz"
	return []trace{
		{name: "Helios, Earth, vc6YE: GPUs that jobs hold or wait for", file: earth, columns: []string{"running_gpu_num", "pending_gpu_num"}, unit: "GPUs", total: 208},
		{name: "Helios, Earth, vc6YE: GPUs that jobs hold", file: earth, columns: []string{"running_gpu_num"}, unit: "GPUs", total: 208},
		{name: "Philly: nodes in use", file: philly, columns: []string{"active"}, unit: "nodes", total: 420},
		{name: "Alibaba, openb: GPUs that pods hold or wait for, its last 60 days", file: "alibaba_gpu/openb_pod_list_default.csv", unit: "GPUs", total: 66},
	}
}

// read fills in the demand.
func (t *trace) read(data string) (err error) {
	file, err := os.Open(filepath.Join(data, t.file))
	if err != nil {
		return fmt.Errorf("the trace is not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	if t.columns == nil {
		return t.readPods(csv.NewReader(file))
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	reader := csv.NewReader(unpacked)
	header, err := reader.Read()
	if err != nil {
		return err
	}
	var places []int
	for _, name := range t.columns {
		at := slices.Index(header, name)
		if at < 0 {
			return fmt.Errorf("%s has no column %s", t.file, name)
		}
		places = append(places, at)
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		sum := 0.0
		for _, at := range places {
			value, err := strconv.ParseFloat(row[at], 64)
			if err != nil {
				return fmt.Errorf("%s, minute %d: %w", t.file, len(t.demand), err)
			}
			sum += value
		}
		t.demand = append(t.demand, sum)
	}
}

// podDays are how many of the last days of the pods are looked at: before, few run.
const podDays = 60

// readPods fills in the demand of pods from when they were created until they were
// deleted, whole GPUs and parts of one. The total is the most that was ever wanted, as
// the cluster, of 6,212 GPUs, runs much that is not among them.
func (t *trace) readPods(reader *csv.Reader) error {
	rows, err := reader.ReadAll()
	if err != nil {
		return err
	}
	changes, last := map[int]float64{}, 0
	for _, row := range rows[1:] {
		var values [4]float64
		for i, column := range []string{"num_gpu", "gpu_milli", "creation_time", "deletion_time"} {
			if values[i], err = strconv.ParseFloat(row[slices.Index(rows[0], column)], 64); err != nil {
				return fmt.Errorf("%s, %s, %s: %w", t.file, row[0], column, err)
			}
		}
		begin, end := int(values[2]/60), int(values[3]/60)
		changes[begin] += values[0] * values[1] / 1000
		changes[end] -= values[0] * values[1] / 1000
		last = max(last, end)
	}
	demand := 0.0
	for minute := range last {
		demand += changes[minute]
		if minute >= last-podDays*forecast.Day {
			t.demand = append(t.demand, max(0, math.Round(1000*demand)/1000))
		}
	}
	return nil
}
