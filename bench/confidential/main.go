// Command confidential measures what encryption costs a training.
//
//	go run ./bench/confidential                  # 1 and 100 MB, 7 pairs, about 5 minutes
//	go run ./bench/confidential -megabytes 2000 -pairs 3 -epochs 3
//
// Each pair is the same study once plain and once with an encrypted data set and encrypted
// checkpoints, both of that size; which comes first alternates. Each run has a worker of its
// own, so each fetches the data set. The trial does nothing but write its checkpoints.
// Markdown goes to standard output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

const script = `
import os, time
from pathlib import Path

started = time.time()
import tandem

folder = tandem.dataset("data") if "TANDEM_DATA_DATA" in os.environ else Path("data")
assert sum(one.stat().st_size for one in folder.iterdir()) == int(os.environ["MEGABYTES"]) << 20
block, kept = os.urandom(1 << 20), 0.0

def write(path):
    with open(path, "wb") as out:
        for _ in range(int(os.environ["MEGABYTES"])):
            out.write(block)

trial = tandem.current_trial()
for epoch in trial.epochs():
    trial.report(accuracy=epoch, started=started, kept=kept)
    begun = time.perf_counter()
    trial.checkpoint(write)
    kept = time.perf_counter() - begun
`

const studyFile = `
name: %s
command: [python3, train.py]
environment: {MEGABYTES: "%d"}
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}}
system: off
budget: {policy: epochs, epochs: {min: %d, max: %d}}
stop: {trials: 1}
%s`

// run is one study.
type run struct {
	// Start is from the lease to the script's first line, Kept a checkpoint until the
	// server has it, in seconds; CPU is that of worker and script in all.
	start, kept, cpu float64
}

type bench struct {
	folder, binary, key, recipient string
	epochs, runs                   int
	server                         *launch.Server
	client                         *rest.Client
}

func main() {
	sizes := flag.String("megabytes", "1,100", "sizes of data set and checkpoint")
	pairs := flag.Int("pairs", 7, "runs plain and runs encrypted")
	epochs := flag.Int("epochs", 8, "checkpoints of a run, of which the last is not timed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{epochs: *epochs}
	err := b.open(ctx)
	if err == nil {
		err = b.measure(ctx, strings.Split(*sizes, ","), *pairs)
	}
	if err = errors.Join(err, b.close()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/confidential:", err)
		os.Exit(1)
	}
}

func (b *bench) open(ctx context.Context) (err error) {
	if b.folder, err = os.MkdirTemp("", "tandem-confidential-"); err != nil {
		return err
	}
	if b.binary, err = launch.Build(ctx, b.folder); err != nil {
		return err
	}
	if b.server, err = launch.Serve(b.binary, filepath.Join(b.folder, "server")); err != nil {
		return err
	}
	if b.client, err = rest.New(rest.Options{URL: b.server.URL, Token: b.server.Token}); err != nil {
		return err
	}
	b.key = filepath.Join(b.folder, "workers.key")
	b.recipient, err = b.tandem(ctx, "keys", "create", "--out", b.key)
	return errors.Join(err, os.WriteFile(filepath.Join(b.folder, "train.py"), []byte(script), 0o600))
}

func (b *bench) close() (err error) {
	if b.server != nil {
		err = b.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.folder))
}

// tandem runs a command to its end, and returns what it printed.
func (b *bench) tandem(ctx context.Context, words ...string) (string, error) {
	command := exec.CommandContext(ctx, b.binary, words...) //nolint:gosec // our own
	command.Env = append(os.Environ(), "TANDEM_SERVER="+b.server.URL, "TANDEM_TOKEN="+b.server.Token)
	said, err := command.Output()
	return strings.TrimSpace(string(said)), err
}

func (b *bench) measure(ctx context.Context, sizes []string, pairs int) error {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("%d pairs of %d checkpoints; load before the first run: %s.\n\n", pairs, b.epochs, strings.Fields(string(load))[0])
	fmt.Println("| MB | | plain | encrypted | more, in pairs |\n|---|---|---|---|---|")
	for _, size := range sizes {
		megabytes, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		section, err := b.prepare(ctx, megabytes)
		if err != nil {
			return err
		}
		var plain, encrypted []run
		for at := range pairs {
			for half := range 2 {
				if (half == 1) == (at%2 == 0) {
					got, err := b.run(ctx, megabytes, section, "--identity", b.key)
					if err != nil {
						return err
					}
					encrypted = append(encrypted, got)
					continue
				}
				got, err := b.run(ctx, megabytes, "")
				if err != nil {
					return err
				}
				plain = append(plain, got)
			}
		}
		for _, one := range []struct {
			what string
			of   func(run) float64
		}{
			{"start of the script, s", func(r run) float64 { return r.start }},
			{"a checkpoint, s", func(r run) float64 { return r.kept }},
			{"CPU of worker and script, s", func(r run) float64 { return r.cpu }},
		} {
			var before, after, more []float64
			for i := range plain {
				before, after = append(before, one.of(plain[i])), append(after, one.of(encrypted[i]))
				more = append(more, after[i]-before[i])
			}
			fmt.Printf("| %d | %s | %s | %s | %s |\n", megabytes, one.what, shown(before), shown(after), shown(more))
		}
	}
	return nil
}

// prepare makes data of the size, publishes them, and returns the section of the study file.
func (b *bench) prepare(ctx context.Context, megabytes int) (string, error) {
	data, file := filepath.Join(b.folder, "data"), filepath.Join(b.folder, fmt.Sprintf("data%d.tde", megabytes))
	if err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o700)); err != nil {
		return "", err
	}
	if err := exec.CommandContext(ctx, "dd", "if=/dev/urandom", "of="+filepath.Join(data, "all"), "bs=1M", fmt.Sprintf("count=%d", megabytes), "status=none").Run(); err != nil { //nolint:gosec // our own
		return "", err
	}
	if _, err := b.tandem(ctx, "dataset", "encrypt", data, "--name", "data", "--identity", b.key, "--output", file); err != nil {
		return "", err
	}
	if _, err := b.tandem(ctx, "dataset", "publish", file, "--name", "data"); err != nil {
		return "", err
	}
	list, err := b.client.Datasets(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("encryption: {recipients: [%s], datasets: {data: %s}}\n", b.recipient, list[0].Artifact), os.Remove(file)
}

// run is one study with a worker of its own.
func (b *bench) run(ctx context.Context, megabytes int, section string, flags ...string) (run, error) {
	b.runs++
	name := fmt.Sprintf("run-%d", b.runs)
	if _, err := b.client.CreateStudy(ctx, fmt.Appendf(nil, studyFile, name, megabytes, b.epochs, b.epochs, section), "application/yaml"); err != nil {
		return run{}, err
	}
	client, err := filepath.Abs("clients/python")
	if err != nil {
		return run{}, err
	}
	before := spent()
	line := append([]string{"worker", "--probe", "never", "--study", name, "--slots", "1", "--directory", b.folder, "--scratch", filepath.Join(b.folder, "scratch")}, flags...)
	worker, err := launch.Start(b.binary, []string{"TANDEM_SERVER=" + b.server.URL, "TANDEM_TOKEN=" + b.server.Token, "PYTHONPATH=" + client}, line...)
	if err != nil {
		return run{}, err
	}
	defer worker.Kill()
	if err := worker.Wait(20 * time.Minute); err != nil {
		return run{}, fmt.Errorf("the worker: %w\n%s", err, worker.Output())
	}
	detail, err := b.client.Trial(ctx, name, 0)
	if err != nil || len(detail.Reports) != b.epochs {
		return run{}, errors.Join(err, fmt.Errorf("%d epochs were reported:\n%s", len(detail.Reports), worker.Output()))
	}
	return of(detail, spent()-before), b.client.DeleteStudy(ctx, name)
}

func of(detail protocol.TrialDetail, cpu float64) run {
	got, kept := run{cpu: cpu}, []float64{}
	for _, one := range detail.Events {
		if one.State == "leased" {
			got.start = float64(detail.Reports[0].Metrics["started"]) - float64(one.At.UnixNano())/1e9
		}
	}
	for _, one := range detail.Reports[1:] {
		kept = append(kept, float64(one.Metrics["kept"]))
	}
	slices.Sort(kept)
	got.kept = kept[len(kept)/2]
	return got
}

// spent is the CPU time of all processes that have ended, in seconds.
func spent() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// shown is the median with the range.
func shown(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%.2f (%.2f–%.2f)", sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1])
}
