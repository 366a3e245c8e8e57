package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/pool/queueing"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// recorded is a trace of jobs: when they come and what they take.
type recorded struct {
	name  string
	jobs  []queueing.Job
	given bool // the classes are the trace's
}

// sprinter is what a GPU's power limit does, from recorded trainings.
type sprinter struct {
	speed, low, high float64 // times as fast; watts on average
}

// traced replays the traces at two loads.
func traced(data string, runs int, only string, losses lossTable) error {
	sprint, err := readSprinter(filepath.Join(data, "zeus", "summary_power_v100.csv"))
	if err != nil {
		return err
	}
	fmt.Printf("\n### Recorded traces\n\nSprint: a V100 from its lowest power limit to its highest (Zeus, medians over its workloads): %.2f times as fast, %.0f W instead of %.0f W; 40 W idle (an estimate). %d slots. The account is replenished by 6 minutes of sprinting in an hour, the timeout is the least that this pays for.\n", sprint.speed, sprint.high, sprint.low, slots)
	all, err := readTraces(data)
	if err != nil {
		return err
	}
	for _, trace := range all {
		if !strings.Contains(trace.name, only) {
			continue
		}
		for _, load := range []float64{0.5, 0.8} {
			r := replayer{trace: trace, load: load, runs: runs, sprint: sprint, losses: losses}
			if err := r.table(); err != nil {
				return fmt.Errorf("%s: %w", trace.name, err)
			}
		}
	}
	return nil
}

// slots is how many jobs run at once on the traces.
const slots = 8

// readSprinter takes the medians over workloads and batch sizes of what the
// highest power limit brings against the lowest.
func readSprinter(path string) (sprinter, error) {
	t, err := readTable(path)
	if err != nil {
		return sprinter{}, err
	}
	type ends struct{ lowLimit, highLimit, lowTime, highTime, lowWatts, highWatts float64 }
	found := map[string]ends{}
	for _, row := range t.rows {
		key := strings.Join(row[:4], " ")
		limit, seconds, watts := t.number(row, "power_limit"), t.number(row, "time_per_epoch"), t.number(row, "average_power")
		e, known := found[key]
		if !known || limit < e.lowLimit {
			e.lowLimit, e.lowTime, e.lowWatts = limit, seconds, watts
		}
		if !known || limit > e.highLimit {
			e.highLimit, e.highTime, e.highWatts = limit, seconds, watts
		}
		found[key] = e
	}
	var speed, low, high []float64
	for _, e := range found {
		if e.highLimit > e.lowLimit && e.highTime > 0 {
			speed, low, high = append(speed, e.lowTime/e.highTime), append(low, e.lowWatts), append(high, e.highWatts)
		}
	}
	if len(speed) == 0 {
		return sprinter{}, fmt.Errorf("%s has no workload with two power limits", path)
	}
	return sprinter{middle(speed), middle(low), middle(high)}, nil
}

func readTraces(data string) ([]recorded, error) {
	var all []recorded
	for _, name := range []string{"msr_seed0_0e4a51", "msr_seed0_103959"} {
		one, err := readGavel(data, name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	one, err := readMuri(data, "trace1")
	return append(all, one), err
}

// readGavel reads a trace of Gavel: its steps at the speed of a V100.
func readGavel(data, name string) (recorded, error) {
	r := recorded{name: "Gavel, " + name}
	content, err := os.ReadFile(filepath.Join(data, "gavel", "simulation_throughputs.json"))
	if err != nil {
		return r, fmt.Errorf("the data are not there (-data, TANDEM_DATA): %w", err)
	}
	var speeds map[string]map[string]map[string]json.RawMessage
	if err := json.Unmarshal(content, &speeds); err != nil {
		return r, err
	}
	trace, err := os.ReadFile(filepath.Join(data, "gavel", "traces", name+".trace"))
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(trace)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 7 {
			continue
		}
		var speed float64
		if err := json.Unmarshal(speeds["v100"]["('"+fields[0]+"', 1)"]["null"], &speed); err != nil || speed <= 0 {
			return r, fmt.Errorf("no speed of %s on a V100: %w", fields[0], err)
		}
		steps, stepsErr := strconv.ParseFloat(fields[4], 64)
		at, atErr := strconv.ParseFloat(fields[5], 64)
		if stepsErr != nil || atErr != nil {
			return r, fmt.Errorf("%s has %q", name, line)
		}
		r.jobs = append(r.jobs, queueing.Job{At: at, Seconds: steps / speed})
	}
	return r, nil
}

// readMuri reads a trace of Muri, which has priorities.
func readMuri(data, name string) (recorded, error) {
	r := recorded{name: "Muri, " + name + ", its priorities", given: true}
	t, err := readTable(filepath.Join(data, "muri_traces", name+".csv"))
	for _, row := range t.rows {
		r.jobs = append(r.jobs, queueing.Job{
			Class: int(t.number(row, "priority")), At: t.number(row, "submit_time") / 1000,
			Seconds: t.number(row, "iterations") * t.number(row, "iteration_time") / 1000,
		})
	}
	slices.SortStableFunc(r.jobs, func(a, b queueing.Job) int { return compare(a.At, b.At) })
	return r, err
}

// replayer plays one trace at one load.
type replayer struct {
	trace  recorded
	load   float64
	runs   int
	sprint sprinter
	losses lossTable
}

// classes draws who is of the high class, one in ten, unless the trace says so.
func (r replayer) classes(run int) []queueing.Job {
	random := rand.New(rand.NewPCG(uint64(run), 13)) //nolint:gosec // what is drawn has to repeat
	jobs, work := slices.Clone(r.trace.jobs), 0.0
	for i := range jobs {
		if !r.trace.given && random.Float64() < 0.1 {
			jobs[i].Class = 1
		}
		work += jobs[i].Seconds
	}
	first := jobs[0].At
	stretch := work / (slots * r.load) / (jobs[len(jobs)-1].At - first)
	for i := range jobs {
		jobs[i].At = (jobs[i].At - first) * stretch
	}
	if r.trace.given { // what is drawn is where the trace begins
		jobs = turned(jobs, random.IntN(len(jobs)))
	}
	return jobs
}

// turned begins with a later job; those before it come behind the last.
func turned(jobs []queueing.Job, by int) []queueing.Job {
	span, first := jobs[len(jobs)-1].At, jobs[by].At
	list := slices.Concat(jobs[by:], jobs[:by])
	for i := range list {
		list[i].At -= first
		if i >= len(jobs)-by {
			list[i].At += span
		}
	}
	return list
}

// dropped takes a share of the low class's work out: a training on less data
// takes less in proportion.
func dropped(jobs []queueing.Job, drop float64) []queueing.Job {
	list := slices.Clone(jobs)
	for i := range list {
		if list[i].Class == 0 {
			list[i].Seconds *= 1 - drop
		}
	}
	return list
}

// way is a row of a trace's table.
type way struct {
	name   string
	engine queueing.Engine
	drop   float64
}

// plainWays are the rows without a sprint and without a controller.
func (r replayer) plainWays() []way {
	engine := func(policy queueing.Policy) queueing.Engine {
		return queueing.Engine{Slots: slots, Policy: policy, BusyWatts: r.sprint.low, IdleWatts: 40}
	}
	list := []way{{"preemptive", engine(queueing.Evicting), 0}, {"preemptive, with checkpoints", engine(queueing.Resuming), 0}, {"non-preemptive", engine(queueing.NonPreemptive), 0}}
	for _, drop := range []float64{0.1, 0.2, 0.4} {
		list = append(list, way{fmt.Sprintf("DA (0,%.0f)", 100*drop), engine(queueing.NonPreemptive), drop})
	}
	return list
}

// sprints are the engines with a sprint for one run: with an account, whose timeout
// is the least that it pays for, and without a limit.
func (r replayer) sprints(jobs []queueing.Job) (limited, free queueing.Engine) {
	extra := r.sprint.high - r.sprint.low
	sprint, account := approximation.Sprint{Speed: r.sprint.speed, Watts: extra}, approximation.Account{Watts: slots * extra / 10, Joules: slots * extra * 360}
	var high []float64
	for _, job := range jobs {
		if job.Class == 1 {
			high = append(high, job.Seconds)
		}
	}
	paid := sprint.Paid(high, float64(len(high))/jobs[len(jobs)-1].At, account)
	free = queueing.Engine{Slots: slots, BusyWatts: r.sprint.low, IdleWatts: 40, Sprints: []approximation.Sprint{{}, sprint}, Account: approximation.Account{Joules: math.Inf(1)}}
	limited = free
	limited.Sprints, limited.Account = []approximation.Sprint{{}, paid}, account
	return limited, free
}

// ways are all rows, for one run.
func (r replayer) ways(jobs []queueing.Job) ([]way, error) {
	limited, free := r.sprints(jobs)
	limitedToo, freeToo := limited, free
	limitedToo.Helps, freeToo.Helps = true, true
	list := r.plainWays()
	for _, drop := range []float64{0, 0.2, 0.4} {
		list = append(list, way{fmt.Sprintf("DiAS (0,%.0f), limited sprint", 100*drop), limited, drop}, way{fmt.Sprintf("DiAS (0,%.0f), unlimited sprint", 100*drop), free, drop},
			way{fmt.Sprintf("DiAS (0,%.0f), limited sprint, low ones too while high ones wait", 100*drop), limitedToo, drop}, way{fmt.Sprintf("DiAS (0,%.0f), unlimited sprint, low ones too while high ones wait", 100*drop), freeToo, drop})
	}
	plain := queueing.Engine{Slots: slots, BusyWatts: r.sprint.low, IdleWatts: 40}
	alone, err := r.high(plain, slices.DeleteFunc(slices.Clone(jobs), func(job queueing.Job) bool { return job.Class == 0 }))
	if err != nil {
		return nil, err
	}
	without, err := r.high(plain, jobs)
	if err != nil {
		return nil, err
	}
	limits := approximation.Limits{Mean: (alone + without) / 2}
	return append(list,
		way{"controlled, limit twice what is met without", r.controlled(plain, approximation.Limits{Mean: 2 * without}), 0},
		way{"controlled, limit half way to alone", r.controlled(plain, limits), 0},
		way{"controlled, limit half way to alone, limited sprint", r.controlled(limited, limits), 0},
		way{"controlled, limit half way to alone, unlimited sprint", r.controlled(free, limits), 0},
		way{"controlled, limit as if alone", r.controlled(plain, approximation.Limits{Mean: alone}), 0},
	), nil
}

// high is the mean response of the high class.
func (r replayer) high(engine queueing.Engine, jobs []queueing.Job) (float64, error) {
	played, err := engine.Replay(jobs, 2, 0.1)
	return played.Classes[1].Mean, err
}

// controlled is the engine with the controller, for a point of accuracy at most.
func (r replayer) controlled(engine queueing.Engine, limits approximation.Limits) queueing.Engine {
	most := 0.0
	for drop := 0.05; drop <= 0.5+1e-9 && r.losses.mean(drop) <= 0.01; drop += 0.05 {
		most = drop
	}
	engine.Control = &queueing.Control{Limits: limits, Most: most, Every: limits.Mean / 50, Next: approximation.NextShare}
	return engine
}

// table plays all ways in each run and prints them.
func (r replayer) table() error {
	var names []string
	rows, drops, kept := map[string][]queueing.Played{}, map[string][]float64{}, map[string][]float64{}
	for run := range r.runs {
		jobs := r.classes(run)
		all, err := r.ways(jobs)
		if err != nil {
			return err
		}
		for _, w := range all {
			played, err := w.engine.Replay(dropped(jobs, w.drop), 2, 0.1)
			if err != nil {
				return err
			}
			if run == 0 {
				names = append(names, w.name)
			}
			rows[w.name], drops[w.name] = append(rows[w.name], played), append(drops[w.name], w.drop+played.Dropped)
			if control := w.engine.Control; control != nil {
				kept[w.name] = append(kept[w.name], played.Classes[1].Mean/control.Limits.Mean)
			}
		}
	}
	fmt.Printf("\n**%s, load %.0f%%**, %d jobs\n\n| | low | high | wasted | joules | dropped | points of accuracy lost | of the limit |\n|---|---|---|---|---|---|---|---|\n", r.trace.name, 100*r.load, len(r.trace.jobs))
	for _, name := range names {
		drop, limit := middle(drops[name]), "-"
		if list := kept[name]; list != nil {
			limit = fmt.Sprintf("%.2f (%.2f to %.2f)", middle(list), slices.Min(list), slices.Max(list))
		}
		fmt.Printf("| %s | %s %.0f%% | %.2f | %s |\n", name, against(rows["preemptive"], rows[name], true), 100*drop, 100*r.losses.mean(drop), limit)
	}
	return nil
}
