// Command edgetune measures how exact EdgeTune's estimates are.
//
//	go run ./bench/edgetune accuracy             # tables for docs/benchmarks/edgetune.md
//	go run ./bench/edgetune accuracy -table tx2  # of one source
//	go run ./bench/edgetune baselines            # beside simpler ways, with 0, 5, 10 and 20 points
//	go run ./bench/edgetune families             # of networks that calibrated nothing
//	go run ./bench/edgetune emulation            # whether times here say more of devices elsewhere
//	go run ./bench/edgetune learn > inference_emu/estimate/knowledge.json
//	go run ./bench/edgetune networks FOLDER      # ten networks as ONNX files
//
// accuracy holds latencies and joules that inference_emu/estimate predicts against what
// others have measured on real devices, with 0, 10 and 20 calibration
// measurements. What a device is predicted with was never learned from that
// device. learn makes the knowledge that the program brings along: from these
// tables, and for ONNX Runtime from onnxruntime.json, where bench/edgetune/here
// kept runs of the networks that "networks" writes.
//
// The tables are read from TANDEM_DATA (../shared/data if unset); devices and
// models that are added to them are found without a change here.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "edgetune:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) == 0 {
		return errors.New("say what to do: accuracy, baselines, emulation, families, learn or networks")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	table := flags.String("table", "", "only this source: mlperf, nb201, tx2, unicorn or onnxruntime")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if arguments[0] == "networks" {
		return networks(flags.Arg(0))
	}
	all, err := load(os.Stderr)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "no measurements of devices found: nothing to do")
		return nil
	}
	switch arguments[0] {
	case "accuracy":
		return report(out, all, *table)
	case "families":
		return families(out, all)
	case "emulation":
		return emulation(out, all)
	case "baselines":
		return baselines(out, all, *table)
	case "learn":
		knowledge, err := extend(learning.Learn(others(all, func(*series) bool { return true })), func(string) bool { return true })
		if err != nil {
			return err
		}
		for _, priors := range [][]estimate.Prior{knowledge.Time, knowledge.Energy} {
			for _, p := range priors {
				brief(p.Mean)
				for _, line := range p.Covariance {
					brief(line)
				}
			}
		}
		return json.NewEncoder(out).Encode(knowledge)
	}
	return fmt.Errorf("%q: accuracy, baselines, emulation, families, learn or networks", arguments[0])
}

// brief keeps six digits.
func brief(values []float64) {
	for i, x := range values {
		if short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64); err == nil && !math.IsNaN(x) {
			values[i] = short
		}
	}
}

// load reads all tables that are there, and says which are not.
func load(notes io.Writer) ([]*series, error) {
	folder := os.Getenv("TANDEM_DATA")
	if folder == "" {
		folder = "../shared/data"
	}
	var all []*series
	for _, read := range []func(string) ([]*series, error){inference, architectures, grids, boards} {
		some, err := read(folder)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(notes, "skipped:", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// taught is how many measurements of a series knowledge is learned from.
const taught = 40

// others are the series to learn from. Those of the board whose options the
// estimate does not know teach nothing.
func others(all []*series, wanted func(*series) bool) []learning.Series {
	var out []learning.Series
	for _, one := range all {
		if one.table != "unicorn" && wanted(one) {
			s := one.Series
			s.Measurements = spaced(s.Measurements, taught)
			out = append(out, s)
		}
	}
	return out
}

// spaced takes at most so many, evenly from all.
func spaced(all []estimate.Measurement, most int) []estimate.Measurement {
	if len(all) <= most {
		return all
	}
	out := make([]estimate.Measurement, most)
	for i := range out {
		out[i] = all[i*len(all)/most]
	}
	return out
}
