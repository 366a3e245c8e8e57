// Command confidential measures what encryption and attestation cost a training.
//
//	go run ./bench/confidential                  # 1 and 100 MB, 7 rounds, about 5 minutes
//	go run ./bench/confidential -megabytes 2000 -rounds 5 -epochs 2 # 20 GB of disk in TMPDIR
//	go run ./bench/confidential -policy policy.yaml  # in a confidential machine, as root
//
// Each round is the same study three times: plain; with an encrypted data set and encrypted
// checkpoints, both of that size; and with these in a confidential machine, which gets the key
// from a broker. Without -policy the machine is an ordinary one: its processor is this program,
// so what is measured is the protocol, and nothing of what memory encryption costs. Which comes first
// rotates. Each round has a server of its own, which keeps checkpoints for a while after
// their studies are deleted, and each run has a worker of its own, in the strict sandbox with its files in memory, so
// each fetches the data set. The trial does nothing but write its checkpoints. Markdown goes to
// standard output.
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

started = time.time() - float(os.environ["SINCE"])
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
environment: {MEGABYTES: "%d", SINCE: "%d"}
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}}
system: off
budget: {policy: epochs, epochs: {min: %d, max: %d}}
stop: {trials: 1}
%s`

const confidentialSection = `confidential: {policy: %s, metrics: {accuracy: {low: 0, high: 1e6, round: 1}, started: {low: 0, high: 1e5, round: 0.001}, kept: {low: 0, high: 1e5, round: 0.001}}}
`

// run is one study.
type run struct {
	// Start is from the lease to the script's first line, Kept a checkpoint until the
	// server has it, in seconds; CPU is that of worker and script in all.
	start, kept, cpu float64
	// Key is from the lease to its key, by the worker's log, in milliseconds; 0: it had one before.
	key float64
}

type bench struct {
	folder, binary, key, recipient string
	policy                         string // of this machine; empty: of one that does not exist
	scratch                        string // in memory
	epochs, runs                   int
	server                         *launch.Server
	client                         *rest.Client
	site                           *site
}

func main() {
	sizes := flag.String("megabytes", "1,100", "sizes of data set and checkpoint")
	rounds := flag.Int("rounds", 7, "runs of each kind")
	epochs := flag.Int("epochs", 8, "checkpoints of a run, of which the last is not timed")
	own := flag.String("policy", "", "file of a policy that allows this machine (tandem policy from-evidence); empty: this program is the processor")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{epochs: *epochs, policy: *own}
	if err := b.measure(ctx, strings.Split(*sizes, ","), *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench/confidential:", err)
		os.Exit(1)
	}
}

func (b *bench) open(ctx context.Context) (err error) {
	if b.folder, err = os.MkdirTemp("", "tandem-confidential-"); err != nil {
		return err
	}
	if b.scratch, err = os.MkdirTemp("/dev/shm", "tandem-confidential-"); err != nil {
		return err
	}
	build := launch.BuildForTests
	if b.policy != "" {
		build = launch.Build
	}
	if b.binary, err = build(ctx, b.folder); err != nil {
		return err
	}
	if b.server, err = launch.Serve(b.binary, filepath.Join(b.folder, "server")); err != nil {
		return err
	}
	if b.client, err = rest.New(rest.Options{URL: b.server.URL, Token: b.server.Token}); err != nil {
		return err
	}
	b.key = filepath.Join(b.folder, "workers.key")
	if b.recipient, err = b.tandem(ctx, "keys", "create", "--out", b.key); err != nil {
		return err
	}
	b.site, err = b.openSite(ctx)
	return errors.Join(err, os.WriteFile(filepath.Join(b.folder, "train.py"), []byte(script), 0o600))
}

func (b *bench) close() (err error) {
	err = b.site.close()
	if b.server != nil {
		err = errors.Join(err, b.server.Stop())
	}
	b.site, b.server = nil, nil
	return errors.Join(err, os.RemoveAll(b.folder), os.RemoveAll(b.scratch))
}

// tandem runs a command to its end, and returns what it printed.
func (b *bench) tandem(ctx context.Context, words ...string) (string, error) {
	command := exec.CommandContext(ctx, b.binary, words...) //nolint:gosec // our own
	command.Env = append(os.Environ(), "TANDEM_SERVER="+b.server.URL, "TANDEM_TOKEN="+b.server.Token)
	said, err := command.Output()
	return strings.TrimSpace(string(said)), err
}

func (b *bench) measure(ctx context.Context, sizes []string, rounds int) error {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds of %d checkpoints; load before the first run: %s.\n\n", rounds, b.epochs, strings.Fields(string(load))[0])
	fmt.Println("| | plain | encrypted | with attestation | encrypted to plain | attested to encrypted |\n|---|---|---|---|---|---|")
	var keys []run
	for _, size := range sizes {
		megabytes, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		var arms [3][]run
		for round := range rounds {
			if err := errors.Join(b.round(ctx, megabytes, round, &arms), b.close()); err != nil {
				return err
			}
		}
		keys = append(keys, arms[2]...)
		for i, one := range kinds {
			what := one.what
			if i == 0 {
				what = fmt.Sprintf("%d MB: %s", megabytes, what)
			}
			fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", what, shown(arms[0], one.of), shown(arms[1], one.of), shown(arms[2], one.of), more(arms[0], arms[1], one.of), more(arms[1], arms[2], one.of))
		}
	}
	var waited []float64
	for _, one := range keys {
		waited = append(waited, one.key)
	}
	_, err = fmt.Printf("\nFrom a lease to its key: %s ms, n = %d.\n", middle(waited, "%.0f"), len(keys))
	return err
}

// round adds a run to each of the arms: plain, encrypted, with attestation.
func (b *bench) round(ctx context.Context, megabytes, round int, arms *[3][]run) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	section, err := b.prepare(ctx, megabytes)
	if err != nil {
		return err
	}
	kinds := [3]struct {
		section string
		flags   []string
	}{
		{},
		{section, []string{"--identity", b.key}},
		{section + fmt.Sprintf(confidentialSection, b.site.policy), []string{"--confidential", "auto", "--broker", b.site.url, "--broker-token", b.site.token, "--policy", b.site.policy}},
	}
	for turn := range kinds {
		arm := (round + turn) % len(kinds)
		got, err := b.run(ctx, megabytes, kinds[arm].section, kinds[arm].flags...)
		if err != nil {
			return err
		}
		arms[arm] = append(arms[arm], got)
	}
	return nil
}

// kinds are what is measured of a run.
var kinds = []struct {
	what string
	of   func(run) float64
}{
	{"start of the script, s", func(r run) float64 { return r.start }},
	{"a checkpoint, s", func(r run) float64 { return r.kept }},
	{"CPU of worker and script, s", func(r run) float64 { return r.cpu }},
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
	name, since := fmt.Sprintf("run-%d", b.runs), time.Now().Unix()
	if _, err := b.client.CreateStudy(ctx, fmt.Appendf(nil, studyFile, name, megabytes, since, b.epochs, b.epochs, section), "application/yaml"); err != nil {
		return run{}, err
	}
	client, err := filepath.Abs("clients/python")
	if err != nil {
		return run{}, err
	}
	before := spent()
	line := append([]string{"worker", "--probe", "never", "--study", name, "--slots", "1", "--sandbox", "strict", "--directory", b.folder, "--scratch", b.scratch, "--allow-read", client}, flags...)
	environment := []string{"TANDEM_SERVER=" + b.server.URL, "TANDEM_TOKEN=" + b.server.Token, "PYTHONPATH=" + client}
	if b.site.socket != "" {
		environment = append(environment, "TANDEM_FAKE_ENCLAVE="+b.site.socket)
	}
	worker, err := launch.Start(b.binary, environment, line...)
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
	got := of(detail, since, spent()-before)
	got.key = said(worker.Output(), `msg="the broker released the key"`).Sub(said(worker.Output(), "msg=leased")).Seconds() * 1000
	return got, b.client.DeleteStudy(ctx, name)
}

// said is when the worker's log has the line first.
func said(log, line string) (at time.Time) {
	for one := range strings.SplitSeq(log, "\n") {
		if stamp, _, _ := strings.Cut(strings.TrimPrefix(one, "time="), " "); strings.Contains(one, line) {
			at, _ = time.Parse(time.RFC3339Nano, stamp)
			return at
		}
	}
	return at
}

func of(detail protocol.TrialDetail, since int64, cpu float64) run {
	got, kept := run{cpu: cpu}, []float64{}
	for _, one := range detail.Events {
		if one.State == "leased" {
			got.start = float64(detail.Reports[0].Metrics["started"]) - float64(one.At.Sub(time.Unix(since, 0)))/1e9
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
func shown(runs []run, of func(run) float64) string {
	values := make([]float64, 0, len(runs))
	for _, one := range runs {
		values = append(values, of(one))
	}
	return middle(values, "%.2f")
}

// more is what the second took more than the first, in pairs: seconds, and the ratio.
func more(first, second []run, of func(run) float64) string {
	var seconds, ratios []float64
	for i := range first {
		seconds, ratios = append(seconds, of(second[i])-of(first[i])), append(ratios, of(second[i])/of(first[i]))
	}
	return middle(seconds, "%.2f") + "; × " + middle(ratios, "%.2f")
}

func middle(values []float64, form string) string {
	slices.Sort(values)
	return fmt.Sprintf(form+" ("+form+"–"+form+")", values[len(values)/2], values[0], values[len(values)-1])
}
