// Command pool measures the decisions of the worker pool on recorded traces:
//
//	go run ./bench/pool forecast   GPU demand with uncertainty (CUFF)
//	go run ./bench/pool place      how long a decision about 1,000 trials and 1,000 workers takes
//	go run ./bench/pool scale      how long a replay of 100,000 jobs on 4,000 machines takes
//	go run ./bench/pool dias       priorities with approximation and sprints (DiAS)
//	go run ./bench/pool heats      placement by energy and speed (HEATS), replayed
//
// The traces are read from ../shared/data, or from where TANDEM_DATA says.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tandem-tune/tandem/bench/pool/heats"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/pool:", err)
		os.Exit(1)
	}
}

func run() error {
	data := os.Getenv("TANDEM_DATA")
	if data == "" {
		data = "../shared/data"
	}
	if len(os.Args) < 2 {
		return fmt.Errorf("say what to measure: forecast, place, dias, heats or scale")
	}
	flags := flag.NewFlagSet("bench/pool "+os.Args[1], flag.ExitOnError)
	flags.StringVar(&data, "data", data, "folder with the recorded traces")
	runs := flags.Int("runs", 5, "how often to repeat, with other seeds")
	jobs := flags.Int("jobs", 20_000, "dias: jobs of a run")
	samples := flags.Int("samples", 0, "forecast: windows a training learns from (default the package's)")
	tuning := flags.Bool("tune", false, "forecast: compare settings of the networks, on a part that is neither trained nor tested on")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	switch os.Args[1] {
	case "forecast":
		return forecasts(data, *runs, *samples, *tuning)
	case "scale":
		return heats.Scale(*runs)
	case "heats":
		return heats.Measure(data, *runs)
	case "dias":
		return priorities(data, *runs, *jobs)
	case "place":
		return places(*runs)
	}
	return fmt.Errorf("%q cannot be measured: forecast, place, dias, heats or scale", os.Args[1])
}
