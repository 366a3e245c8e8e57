// Command boards has agents with limits stand in for three boards, of 2, 1 and 0.5 cores,
// while a study trains CNNs, and holds what is recommended for each against all settings.
//
//	go run ./bench/edgetune/boards -onnxruntime FOLDER -python PYTHON -networks 30 -exhaustive 10
//
// Cores are limited by taskset, and the half one by a control group of cpu (version 1, as
// root), memory by the agent's --memory. The exhaustive search repeats each setting, shuffled:
// the best setting is chosen by half of the passes and compared by the others. Joules are not
// compared: these boards have no meter. It prints Markdown.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// board is one that an agent stands in for.
type board struct {
	name    string
	cores   string // of taskset
	threads int
	quota   int // microseconds of 100,000; 0: no limit
	memory  string
}

func boards() []board {
	return []board{{"two", "0,1", 2, 0, "2GiB"}, {"one", "0", 1, 0, "1GiB"}, {"half", "1", 1, 50_000, "512MiB"}}
}

type bench struct {
	library, python, client, scripts, binary, folder string
	networks, exhaustive, batches, passes            int
	epoch                                            time.Duration
	server                                           *launch.Server
	graphs                                           []graph.Graph
}

func main() {
	var b bench
	flag.StringVar(&b.library, "onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in")
	flag.StringVar(&b.python, "python", "/usr/bin/python3", "the interpreter of trials")
	flag.StringVar(&b.client, "client", "clients/python", "folder of the Python client")
	flag.StringVar(&b.scripts, "scripts", "bench/edgetune/boards", "folder of the training script")
	flag.IntVar(&b.networks, "networks", 30, "how many CNNs are trained, at most 30")
	flag.IntVar(&b.exhaustive, "exhaustive", 10, "for how many of them all settings are measured")
	flag.IntVar(&b.batches, "batches", 8, "the largest batch")
	flag.IntVar(&b.passes, "passes", 4, "how often all settings are measured")
	flag.DurationVar(&b.epoch, "epoch", 2*time.Second, "how long an epoch lasts")
	flag.Parse()
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edgetune/boards:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context) (err error) {
	for _, path := range []*string{&b.client, &b.scripts, &b.library} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.folder, err = os.MkdirTemp("", "tandem-boards-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if b.binary, err = launch.Build(ctx, b.folder); err != nil {
		return err
	}
	if err := b.write(); err != nil {
		return err
	}
	if b.server, err = launch.Serve(b.binary, filepath.Join(b.folder, "data")); err != nil {
		return err
	}
	defer b.server.Kill()
	fmt.Fprintln(os.Stderr, "a study without boards")
	plain, err := b.study(ctx, "plain", "")
	if err != nil {
		return err
	}
	stop, err := b.agents(ctx)
	defer stop()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the same with boards")
	measured, err := b.study(ctx, "boards", `, "inference": {"devices": ["board/two", "board/one", "board/half"], "batch_size": {"low": 1, "high": `+strconv.Itoa(b.batches)+`}, "objective": "throughput"}`)
	if err != nil {
		return err
	}
	found, err := b.deployments(ctx, measured)
	if err != nil {
		return err
	}
	stop()
	fmt.Fprintln(os.Stderr, "all settings")
	fmt.Printf("Beyond its epoch a trial waited %s s with boards, %s s without.\n\n", spread(waits(measured)), spread(waits(plain)))
	return b.compare(ctx, found)
}

// write writes the CNNs: MobileNets of five widths and six resolutions, in an order by chance.
func (b *bench) write() error {
	for _, width := range []float64{0.25, 0.35, 0.5, 0.75, 1} {
		for _, resolution := range []int64{32, 48, 64, 80, 96, 128} {
			b.graphs = append(b.graphs, zoo.MobileNetV1(width, resolution, graph.Float32))
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(b.graphs), func(i, j int) { b.graphs[i], b.graphs[j] = b.graphs[j], b.graphs[i] })
	b.networks = min(b.networks, len(b.graphs))
	b.graphs = b.graphs[:b.networks]
	for i, g := range b.graphs {
		content, err := zoo.File(g)
		if err == nil {
			err = os.WriteFile(b.model(i), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) model(i int) string { return filepath.Join(b.folder, fmt.Sprintf("%d.onnx", i)) }

// tandem runs a command of the program against the server, and reads its JSON.
func (b *bench) tandem(ctx context.Context, into any, arguments ...string) error {
	command := exec.CommandContext(ctx, b.binary, arguments...)
	command.Env = append(os.Environ(), "TANDEM_SERVER="+b.server.URL, "TANDEM_TOKEN="+b.server.Token)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("tandem %s: %w: %s", strings.Join(arguments, " "), err, errs.String())
	}
	if text, ok := into.(*string); ok {
		*text = string(out)
		return nil
	}
	return json.Unmarshal(out, into)
}

// get asks the server.
func (b *bench) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+b.server.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

// agents starts one for each board.
func (b *bench) agents(ctx context.Context) (stop func(), err error) {
	var all []*launch.Process
	stop = func() {
		for _, one := range all {
			one.Kill()
		}
		all = nil
	}
	var token string
	if err := b.tandem(ctx, &token, "token", "create", "--scope", "device", "--name", "boards"); err != nil {
		return stop, err
	}
	file := filepath.Join(b.folder, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return stop, err
	}
	for _, one := range boards() {
		line := one.limited(b.binary, "edge", "agent", "--server", b.server.URL, "--token-file", file, "--device", one.name, "--name", one.name, "--onnxruntime", b.library, "--seconds", "0.5", "--memory", one.memory)
		agent, err := launch.Start(line[0], nil, line[1:]...)
		if err != nil {
			return stop, err
		}
		all = append(all, agent)
	}
	for range 600 {
		var seen emu.Boards
		if err := b.tandem(ctx, &seen, "edge", "boards", "--json"); err != nil || len(seen.Boards) == len(all) {
			return stop, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return stop, fmt.Errorf("the boards did not come:\n%s", all[len(all)-1].Output())
}

// limited is the command line within the board's limits.
func (one board) limited(line ...string) []string {
	line = append([]string{"taskset", "-c", one.cores}, line...)
	if one.quota == 0 {
		return line
	}
	const script = `g=/sys/fs/cgroup/cpu/tandem-boards; mkdir -p $g && echo 100000 > $g/cpu.cfs_period_us && echo "$0" > $g/cpu.cfs_quota_us && echo $$ > $g/cgroup.procs && exec "$@"`
	return append([]string{"/bin/sh", "-c", script, strconv.Itoa(one.quota)}, line...)
}

// study runs one to its end, with its own worker.
func (b *bench) study(ctx context.Context, name, section string) ([]trial.Trial, error) {
	var values []string
	for i := range b.networks {
		values = append(values, strconv.Itoa(i))
	}
	text := fmt.Sprintf(`{"name": %q, "command": [%q, %q], "objective": {"metric": "waited", "direction": "minimize"}, "budget": {"epochs": 1},
		"space": {"network": {"type": "ordinal", "values": [%s]}}, "search": {"method": "grid"}, "stop": {"trials": %d}, "system": "off",
		"environment": {"NETWORKS": %q, "PYTHONPATH": %q, "EPOCH": "%g"}%s}`,
		name, b.python, filepath.Join(b.scripts, "train.py"), strings.Join(values, ", "), b.networks, b.folder, b.client, b.epoch.Seconds(), section)
	file := filepath.Join(b.folder, name+".json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var said string
	if err := b.tandem(ctx, &said, "study", "create", file); err != nil {
		return nil, err
	}
	worker, err := launch.Start(b.binary, []string{"TANDEM_SERVER=" + b.server.URL, "TANDEM_TOKEN=" + b.server.Token}, "worker", "--probe", "never", "--slots", "1",
		"--directory", b.scripts, "--scratch", filepath.Join(b.folder, "scratch-"+name), "--sandbox", "off")
	if err != nil {
		return nil, err
	}
	defer worker.Kill()
	if err := b.tandem(ctx, &said, "study", "watch", name); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, worker.Output())
	}
	var document struct {
		Trials []trial.Trial `json:"trials"`
	}
	return document.Trials, b.tandem(ctx, &document, "study", "export", name, "--format", "json")
}

func waits(trials []trial.Trial) (list []float64) {
	for _, one := range trials {
		for _, result := range one.Results {
			list = append(list, float64(result.Values[0]))
		}
	}
	return list
}

// deployed is what is recommended for a network, by board.
type deployed map[string]deployment.Deployment

// deployments waits until all boards are idle, and asks for what is recommended.
func (b *bench) deployments(ctx context.Context, trials []trial.Trial) (map[int]deployed, error) {
	began, idle := time.Now(), 0
	for idle < 15 {
		time.Sleep(time.Second)
		var seen emu.Boards
		if err := b.tandem(ctx, &seen, "edge", "boards", "--json"); err != nil {
			return nil, err
		}
		if idle++; slices.ContainsFunc(seen.Boards, func(one emu.Board) bool { return one.Measuring != "" }) {
			idle = 0
		}
		fmt.Fprintf(os.Stderr, "%.0f s: %v\n", time.Since(began).Seconds(), counts(seen))
	}
	fmt.Printf("%d CNNs. Boards measured for %.0f s after the last trial.\n\n", b.networks, time.Since(began).Seconds()-float64(idle))
	var known protocol.Architectures
	if err := b.get(ctx, "/api/v1/architectures?limit=64", &known); err != nil {
		return nil, err
	}
	found, measured, most, total := map[int]deployed{}, 0, 0, 0
	for _, one := range trials {
		var answer protocol.Deployments
		if err := b.tandem(ctx, &answer, "study", "deployments", "boards", "--trial", strconv.Itoa(one.Number), "--json"); err != nil {
			return nil, err
		}
		network, err := strconv.Atoi(one.Configuration["network"].String())
		if err != nil {
			return nil, err
		}
		found[network] = deployed{}
		for _, d := range answer.Devices {
			found[network][strings.TrimPrefix(d.Device, "board/")] = d
			if total++; !d.Estimated() {
				measured++
			}
			runs := 0
			for _, a := range known.Architectures {
				for _, run := range a.Runs {
					if a.Key == answer.Architecture && run.Machine == d.Device {
						runs++
					}
				}
			}
			most = max(most, runs)
		}
	}
	fmt.Printf("%d of %d recommended deployments are measured, with at most %d measurements on a board.\n\n", measured, total, most)
	return found, nil
}

// counts is how many settings each board measured.
func counts(seen emu.Boards) (list []string) {
	for _, one := range seen.Boards {
		list = append(list, fmt.Sprintf("%s %d %s", one.Name, one.Measured, one.Failure))
	}
	return list
}
