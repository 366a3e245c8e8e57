// Command claims measures whether what system tuning says of itself is so: that a
// study which saves nothing claims nothing, that the interval of a saving holds what a
// control finds afterwards, and how many trials start by what is known.
//
//	go run ./bench/pipetune/claims -studies 30    # about half an hour on two cores
//
// Each workload of epochs.py has a server of its own. Its studies of the same script
// follow each other. For a study that claims a saving, the script then runs by itself,
// with the default and the chosen number of threads in turn.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/trial"
)

// kind is a workload of epochs.py. One that ignores its threads can save nothing.
type kind struct {
	name    string
	ignores bool
}

var kinds = []kind{
	{"spin", true}, {"checksum", true}, {"copy", true}, {"children", true},
	{"parallel", false}, {"serial", false}, {"contended", false}, {"repeated", false},
}

type options struct {
	studies, pairs int
	costs          int
	slots, kinds   string
	python, client string
	folder, binary string
}

func main() {
	var o options
	flag.IntVar(&o.studies, "studies", 30, "studies of workloads that ignore their threads, in all; others have two each")
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of epochs of the control of a claim")
	flag.IntVar(&o.costs, "costs", 0, "instead, pairs of studies without tuning and with the default, of workloads that ignore their threads")
	flag.StringVar(&o.slots, "slots", "1", "slots of the worker, or auto: trials share the machine")
	flag.StringVar(&o.kinds, "kinds", "", "comma-separated workloads; all when empty")
	flag.StringVar(&o.python, "python", "python3", "interpreter")
	flag.StringVar(&o.client, "client", "clients/python", "folder of the Python client")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "claims:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) (err error) {
	o.client, _ = filepath.Abs(o.client) // fails without a working directory only
	if o.folder, err = os.MkdirTemp("", "tandem-claims-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.folder)
	o.binary = filepath.Join(o.folder, "tandem")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.binary, "./cmd/tandem").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	chosen := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		return o.kinds != "" && !slices.Contains(strings.Split(o.kinds, ","), k.name)
	})
	if o.costs > 0 {
		return o.compare(ctx, chosen)
	}
	placebos := 0
	for _, k := range chosen {
		if k.ignores {
			placebos++
		}
	}
	fmt.Println("| workload | study | starts by what is known | epochs that probe | control epochs | workloads by profile | claimed saving (95% interval) | control afterwards |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	var all []outcome
	for i, k := range chosen {
		count := 2
		if k.ignores {
			count = o.studies / placebos
			if i < o.studies%placebos {
				count++
			}
		}
		found, err := o.run(ctx, k, count)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, found...)
	}
	summarize(all)
	return nil
}

// outcome is what a study claimed.
type outcome struct {
	kind
	number                  int
	known, probing, control float64 // parts
	// saved is what the chosen configuration saved of the default's time; nil: nothing
	// was claimed. after is the same by the control.
	saved, after *saving
	workloads    int
}

// saving is a part of the default's cost, with an interval.
type saving struct{ part, low, high float64 }

func (s *saving) String() string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%.1f%% (%.1f to %.1f)", 100*s.part, 100*s.low, 100*s.high)
}

// run runs studies of one workload, one after the other.
func (o options) run(ctx context.Context, k kind, count int) (all []outcome, err error) {
	err = o.on(ctx, k.name, func(client *rest.Client) error {
		for number := range count {
			one, err := o.study(ctx, client, k, number+1)
			if err != nil {
				return fmt.Errorf("study %d: %w", number+1, err)
			}
			fmt.Printf("| %s | %d | %.0f%% | %.1f%% | %.1f%% | %d | %s | %s |\n", k.name, one.number, 100*one.known, 100*one.probing, 100*one.control, one.workloads, one.saved, one.after)
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// on does something on a new server with a worker.
func (o options) on(ctx context.Context, name string, do func(*rest.Client) error) (err error) {
	server, err := launch.Serve(o.binary, filepath.Join(o.folder, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return err
	}
	folder, err := filepath.Abs("bench/pipetune/claims")
	if err != nil {
		return err
	}
	worker, err := launch.Start(o.binary, []string{"TANDEM_SERVER=" + server.URL, "TANDEM_TOKEN=" + server.Token}, "worker",
		"--slots", o.slots, "--directory", folder, "--scratch", filepath.Join(o.folder, name+"-scratch"), "--sandbox", "off")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	if err := do(client); err != nil {
		return fmt.Errorf("%w; the worker said:\n%s", err, worker.Output())
	}
	return nil
}

func (o options) study(ctx context.Context, client *rest.Client, k kind, number int) (outcome, error) {
	one := outcome{kind: k, number: number}
	name := fmt.Sprintf("%s-%d", k.name, number)
	file, err := json.Marshal(map[string]any{
		"name": name, "command": []string{o.python, "epochs.py", "--kind", k.name}, "environment": map[string]string{"PYTHONPATH": o.client},
		"objective": map[string]any{"metric": "accuracy", "direction": "maximize"},
		"space":     map[string]any{"x": map[string]any{"type": "float", "low": 0, "high": 1}},
		"budget":    map[string]any{"policy": "epochs", "epochs": map[string]int{"min": 1, "max": 9}, "eta": 3},
		"search":    map[string]any{"method": "bohb", "seed": number},
		"stop":      map[string]any{"data_passes": 90},
		"system":    map[string]any{"cpu_threads": map[string]any{"values": []int{1, 2}}},
	})
	if err != nil {
		return one, err
	}
	if _, err := trained(ctx, client, file, name); err != nil {
		return one, err
	}
	reports, workloads, err := reportsOf(ctx, client, name)
	if err != nil {
		return one, err
	}
	one.workloads = workloads
	threads := one.read(reports)
	if one.saved != nil {
		one.after, err = o.control(ctx, k, threads)
	}
	return one, err
}

// trained creates a study and waits for its end.
func trained(ctx context.Context, client *rest.Client, file []byte, name string) (view protocol.StudyView, err error) {
	if _, err := client.CreateStudy(ctx, file, "application/json"); err != nil {
		return view, err
	}
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		view, err := client.Study(ctx, name)
		if err != nil || view.Finished != nil {
			return view, err
		}
		if time.Now().After(deadline) {
			return view, fmt.Errorf("it was still %s after ten minutes", view.Status)
		}
	}
}

// reportsOf are the epochs of a study, those of each trial in order, and how many
// workloads its trials were taken for.
func reportsOf(ctx context.Context, client *rest.Client, study string) (reports []trial.Report, workloads int, err error) {
	page, err := client.Trials(ctx, study, protocol.TrialQuery{Sort: "number", Limit: 10_000})
	if err != nil {
		return nil, 0, err
	}
	names := map[string]bool{}
	for _, one := range page.Trials {
		detail, err := client.Trial(ctx, study, one.Number)
		if err != nil {
			return nil, 0, err
		}
		if setting := detail.Trial.Setting; setting != nil && setting.Workload != "" {
			names[setting.Workload] = true
		}
		reports = append(reports, detail.Reports...)
	}
	return reports, len(names), nil
}

// read sums the epochs up, and returns with how many threads something was saved.
func (o *outcome) read(reports []trial.Report) (threads int64) {
	first, seconds := map[trial.ID]bool{}, 0.0
	var saved *trial.Saving
	for _, r := range reports {
		if !first[r.Trial] {
			first[r.Trial] = true
			if r.SystemPhase == trial.Study || r.SystemPhase == trial.Script || r.SystemPhase == trial.Similar {
				o.known++
			}
		}
		switch r.SystemPhase {
		case trial.Probing:
			o.probing++
		case trial.Control:
			o.control++
		}
		if r.Saved != nil && r.Saved.Seconds > 0 && r.Saved.SecondsLow != nil {
			saved = saved.Plus(r.Saved)
			seconds += float64(r.Seconds)
			threads, _ = r.System["cpu_threads"].Integer()
		}
	}
	o.known /= float64(len(first))
	o.probing, o.control = o.probing/float64(len(reports)), o.control/float64(len(reports))
	if saved != nil {
		part := func(more trial.Float) float64 { return float64(more) / (seconds + float64(more)) }
		o.saved = &saving{part(saved.Seconds), part(*saved.SecondsLow), part(*saved.SecondsHigh)}
	}
	return threads
}

// control runs the default and the chosen number of threads in turn, the latter beside
// another process where the study's trials shared the machine.
func (o options) control(ctx context.Context, k kind, threads int64) (*saving, error) {
	arguments := []string{"bench/pipetune/claims/epochs.py", "--kind", k.name, "--pairs", strconv.Itoa(o.pairs), "--threads", "2", strconv.FormatInt(threads, 10)}
	if o.slots == "auto" {
		arguments = append(arguments, "--beside")
	}
	out, err := exec.CommandContext(ctx, o.python, arguments...).Output()
	if err != nil {
		return nil, err
	}
	var ran struct{ First, Second []float64 }
	if err := json.Unmarshal(out, &ran); err != nil {
		return nil, err
	}
	mean, squares := 0.0, 0.0
	for i := range ran.First {
		d := math.Log(ran.First[i] / ran.Second[i])
		before := mean
		mean += (d - mean) / float64(i+1)
		squares += (d - before) * (d - mean)
	}
	half := regression.HalfWidth(squares, len(ran.First))
	return &saving{-math.Expm1(-mean), -math.Expm1(half - mean), -math.Expm1(-half - mean)}, nil
}

// summarize prints what the goals are about.
func summarize(all []outcome) {
	placebos, claimed, claims, held, met, later, known, probing := 0, 0, 0, 0, 0, 0, 0.0, 0.0
	for _, one := range all {
		if one.ignores {
			placebos++
			if one.saved != nil {
				claimed++
			}
		} else if one.saved != nil {
			claims++
			if one.saved.low <= one.after.part && one.after.part <= one.saved.high {
				held++
			}
			if one.saved.low <= one.after.high && one.after.low <= one.saved.high {
				met++
			}
		}
		if one.number > 1 {
			later++
			known += one.known
			probing += one.probing
		}
	}
	fmt.Printf("\nPlacebo: %d of %d studies whose script ignores its threads claim a saving.\n", claimed, placebos)
	fmt.Printf("Truth: the intervals of %d of %d claims of other studies hold what the control found, those of %d meet its interval.\n", held, claims, met)
	if later > 0 {
		fmt.Printf("Reach: in later studies of a script, %.0f%% of the trials start by what is known, and %.1f%% of the epochs probe (means of %d studies).\n",
			100*known/float64(later), 100*probing/float64(later), later)
	}
}
