// Command faults kills (SIGKILL) and stops (SIGSTOP) the server and the workers
// of a study at random, and says what was lost.
//
//	go run ./bench/faults                              # 200 blows during 500 trials, one run
//	go run ./bench/faults -runs 3 -seed 7
//	go run ./bench/faults -- --database postgres://... # more flags for "tandem serve"
//	go run ./bench/faults -disturb 'pg_ctl restart -m immediate -D /tmp/pg' -- --database ...
//	go run ./bench/faults -postgres -lease-seconds 15    # two servers on one database, which crashes too
//
// A trial's script reports epochs that take -epoch and checkpoints each of them.
// It notes what it was told is saved. At the end the server is killed once more,
// and its books are compared with those notes (see e2e/history), and with a run
// of the same study that nothing happened to, with the same order of events (see
// storm.Undisturbed). The exit code is 1 if anything is lost, counts twice or
// came out differently.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/storm"
)

type options struct {
	runs, trials, blows, agents, slots int
	seed                               uint64
	lease                              float64
	epoch, longest                     time.Duration
	disturb                            string
	postgres, verbose                  bool
}

func main() {
	if storm.IsScript() {
		exit(storm.Train(context.Background()))
	}
	var o options
	flag.IntVar(&o.runs, "runs", 1, "how often to repeat, each time with the next seed")
	flag.IntVar(&o.trials, "trials", 500, "trials of the study")
	flag.IntVar(&o.blows, "blows", 200, "how often something is killed or stopped")
	flag.IntVar(&o.agents, "agents", 3, "worker processes")
	flag.IntVar(&o.slots, "slots", 2, "trials that each of them runs at once")
	flag.Uint64Var(&o.seed, "seed", 1, "what the blows and the search are drawn from")
	flag.Float64Var(&o.lease, "lease-seconds", 3, "how long a silent worker keeps its trials")
	flag.DurationVar(&o.epoch, "epoch", 20*time.Millisecond, "how long an epoch takes")
	flag.DurationVar(&o.longest, "longest", 30*time.Minute, "how long a run may take")
	flag.StringVar(&o.disturb, "disturb", "", "a command, run by sh, that is one more blow")
	flag.BoolVar(&o.postgres, "postgres", false, "two servers on a PostgreSQL database of this machine, which crashes too")
	flag.BoolVar(&o.verbose, "v", false, "say every blow")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/faults:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, o options) error {
	folder, err := os.MkdirTemp("", "tandem-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	var failures []error
	for i := range o.runs {
		result, err := once(ctx, o, binary, filepath.Join(folder, fmt.Sprintf("run-%d", i)), o.seed+uint64(i))
		if err != nil {
			return err
		}
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		summarize(result)
		if len(result.Violations)+len(result.Differences) > 0 {
			failures = append(failures, fmt.Errorf("seed %d: %d violations, %d differences", o.seed+uint64(i), len(result.Violations), len(result.Differences)))
		}
	}
	return errors.Join(failures...)
}

func once(ctx context.Context, o options, binary, folder string, seed uint64) (storm.Result, error) {
	script, err := os.Executable()
	if err != nil {
		return storm.Result{}, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return storm.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.longest)
	defer cancel()
	made := storm.Options{
		Binary: binary, Script: script, Folder: folder, Trials: o.trials, Agents: o.agents, Slots: o.slots,
		Blows: o.blows, Seed: seed, EpochTime: o.epoch, LeaseSeconds: o.lease,
	}
	if more := flag.Args(); len(more) > 0 {
		made.Serve = func(listen string) (*launch.Server, error) {
			return launch.Serve(binary, filepath.Join(folder, "data"), append(storm.Flags(listen, o.lease), more...)...)
		}
	}
	if o.disturb != "" {
		made.Disturb = func(ctx context.Context) (string, error) {
			output, err := exec.CommandContext(ctx, "sh", "-c", o.disturb).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s", o.disturb, err, output)
			}
			return "disturbed", err
		}
	}
	if o.verbose {
		made.Tell = func(what string) { fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), what) }
	}
	if o.postgres {
		return onShared(ctx, made)
	}
	return storm.Run(ctx, made)
}

// onShared makes the storm over two servers on one database.
func onShared(ctx context.Context, made storm.Options) (result storm.Result, err error) {
	shared, err := storm.NewShared(ctx, made)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	made.Serve, made.Disturb = shared.Serve, shared.Disturb
	return storm.Run(ctx, made)
}

func summarize(r storm.Result) {
	blows := 0
	for _, times := range r.Blows {
		blows += times
	}
	starts := slices.Sorted(slices.Values(r.Starts))
	fmt.Printf(`
blows                    %d: %v
trials, epochs           %d, %d (%d leases ran out)
acknowledged             %d reports and checkpoints
acknowledged and lost    %d
counted twice            %d
other violations         %d
differs from undisturbed %d
seconds                  %.0f; a server answered %.2f s after its start (%.2f to %.2f)
`, blows, r.Blows, r.Trials, r.Epochs, r.Losses, r.Acknowledged, r.Lost, r.Twice, len(r.Violations)-r.Lost-r.Twice, len(r.Differences),
		r.Seconds, starts[len(starts)/2], starts[0], starts[len(starts)-1])
	for _, violation := range r.Violations {
		fmt.Println(violation)
	}
	for _, difference := range r.Differences {
		fmt.Println(difference)
	}
}
