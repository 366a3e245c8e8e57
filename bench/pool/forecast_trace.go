package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	}
}

// read fills in the demand.
func (t *trace) read(data string) (err error) {
	file, err := os.Open(filepath.Join(data, t.file))
	if err != nil {
		return fmt.Errorf("the trace is not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
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
