// Command pool measures the decisions of the worker pool on recorded traces:
//
//	go run ./bench/pool forecast   GPU demand with uncertainty (CUFF)
//	go run ./bench/pool place      how long a decision about 1,000 trials and 1,000 workers takes
//	go run ./bench/pool utilization   what a training keeps busy and holds, before it ran (Yeung et al.)
//	go run ./bench/pool utilization -collect FILE   records what small networks use here, alone and in pairs
//	go run ./bench/pool learning   the same as a server learns it, training by training
//	go run ./bench/pool interference  what two trainings do to each other
//	go run ./bench/pool colocate   packing against slots and against watching first
//	go run ./bench/pool scale      how long a replay of 100,000 jobs on 4,000 machines takes
//	go run ./bench/pool dias       priorities with approximation and sprints (DiAS)
//	go run ./bench/pool live       the same on real servers with real workers: -help has its flags
//	go run ./bench/pool heats      placement by energy and speed (HEATS), replayed
//	go run ./bench/pool launch     what a launcher's workers take, against who knows the future
//	go run ./bench/pool real       the same by real workers under limits, as root
//	go run ./bench/pool replay     plays a trace of yours under the policies: -help has its flags
//
// The traces are read from ../shared/data, or from where TANDEM_DATA says.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tandem-tune/tandem/bench/pool/heats"
	"github.com/tandem-tune/tandem/bench/pool/launching"
	"github.com/tandem-tune/tandem/bench/pool/live"
	"github.com/tandem-tune/tandem/bench/pool/replayed"
	"github.com/tandem-tune/tandem/bench/pool/sharing"
	"github.com/tandem-tune/tandem/bench/pool/workers"
	"github.com/tandem-tune/tandem/e2e/unlike"
)

func main() {
	what := run
	if unlike.IsScript() {
		what = unlike.Train // this program is the trials' command, too
	} else if live.IsScript() {
		what = live.Train
	}
	if err := what(); err != nil {
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
		return fmt.Errorf("say what to measure: forecast, place, dias, live, heats, utilization, learning, interference, colocate, scale, launch, real or replay")
	}
	switch os.Args[1] {
	case "replay":
		return replayed.Run(os.Args[2:], os.Stdout)
	case "live":
		return live.Measure(os.Args[2:], os.Stdout)
	}
	flags := flag.NewFlagSet("bench/pool "+os.Args[1], flag.ExitOnError)
	flags.StringVar(&data, "data", data, "folder with the recorded traces")
	runs := flags.Int("runs", 5, "how often to repeat, with other seeds")
	jobs := flags.Int("jobs", 20_000, "dias: jobs of a run")
	forecasting := forecastOptions{}
	flags.IntVar(&forecasting.samples, "samples", 0, "forecast: windows a training learns from (default the package's)")
	flags.BoolVar(&forecasting.tuning, "tune", false, "forecast: compare settings of the networks, on a part that is neither trained nor tested on")
	flags.BoolVar(&forecasting.brief, "brief", false, "forecast: only what the knob serves and saves by each way, against who knows the future")
	flags.StringVar(&forecasting.trace, "trace", "", "forecast, dias, colocate: only the traces whose name contains it, such as Philly, trace1 or V100")
	shared := sharing.Options{}
	flags.StringVar(&shared.Profiles, "profiles", "bench/pool/sharing/testdata/profiles.json", "utilization, learning, interference: what was recorded")
	flags.StringVar(&shared.Collect, "collect", "", "utilization: record into this file instead, with nothing else running")
	flags.StringVar(&shared.Python, "python", "/usr/bin/python3", "utilization -collect: an interpreter with PyTorch")
	flags.Float64Var(&shared.Minutes, "minutes", 13, "utilization -collect: how long it may take")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	switch os.Args[1] {
	case "forecast":
		forecasting.data, forecasting.runs = data, *runs
		return forecasts(forecasting)
	case "scale":
		return heats.Scale(*runs)
	case "heats":
		return heats.Measure(data, *runs)
	case "launch":
		return launching.Measure(data, *runs)
	case "real":
		return workers.Measure(*runs)
	case "dias":
		return priorities(data, *runs, *jobs, forecasting.trace)
	case "utilization", "learning", "interference", "colocate":
		shared.Data, shared.Runs, shared.Trace = data, *runs, forecasting.trace
		return sharing.Measure(os.Args[1], shared)
	case "place":
		return places(*runs)
	}
	return fmt.Errorf("%q cannot be measured: forecast, place, dias, live, heats, utilization, learning, interference, colocate, scale, real or replay", os.Args[1])
}
