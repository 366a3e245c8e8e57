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

	"github.com/tandem-tune/tandem/workers/deflate"
)

// recorded is a trace of jobs: when they come and what they take.
type recorded struct {
	name  string
	jobs  []deflate.Job
	given bool // the classes are the trace's
}

// sprinter is what a GPU's power limit does, from recorded trainings.
type sprinter struct {
	speed, low, high float64 // times as fast; watts on average
}

// traced replays the traces at two loads.
func traced(data string, runs int, losses lossTable) error {
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
		var drawn, real errorsOf
		for _, load := range []float64{0.5, 0.8} {
			r := replayer{trace: trace, load: load, runs: runs, sprint: sprint, losses: losses}
			if err := r.table(&drawn, &real); err != nil {
				return fmt.Errorf("%s: %w", trace.name, err)
			}
		}
		drawn.print("The model's error for these jobs, in the order of the trace, if they come one by one (Poisson)")
		real.print("and if they come as recorded")
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
	muri, err := readMuri(data)
	return append(all, muri), err
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
		r.jobs = append(r.jobs, deflate.Job{At: at, Seconds: steps / speed})
	}
	return r, nil
}

// readMuri reads a trace of Muri, which has priorities.
func readMuri(data string) (recorded, error) {
	r := recorded{name: "Muri, trace1, its priorities", given: true}
	t, err := readTable(filepath.Join(data, "muri_traces", "trace1.csv"))
	for _, row := range t.rows {
		r.jobs = append(r.jobs, deflate.Job{
			Class: int(t.number(row, "priority")), At: t.number(row, "submit_time") / 1000,
			Seconds: t.number(row, "iterations") * t.number(row, "iteration_time") / 1000,
		})
	}
	slices.SortStableFunc(r.jobs, func(a, b deflate.Job) int { return compare(a.At, b.At) })
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
func (r replayer) classes(run int) []deflate.Job {
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
func turned(jobs []deflate.Job, by int) []deflate.Job {
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

// scattered has the same jobs come one by one, at random.
func scattered(jobs []deflate.Job, run int) []deflate.Job {
	random := rand.New(rand.NewPCG(uint64(run), 17)) //nolint:gosec // what is drawn has to repeat
	list, span := slices.Clone(jobs), jobs[len(jobs)-1].At
	for i := range list {
		list[i].At = span * random.Float64()
	}
	slices.SortStableFunc(list, func(a, b deflate.Job) int { return compare(a.At, b.At) })
	return list
}

// dropped takes a share of the low class's work out: a training on less data
// takes less in proportion.
func dropped(jobs []deflate.Job, drop float64) []deflate.Job {
	list := slices.Clone(jobs)
	for i := range list {
		if list[i].Class == 0 {
			list[i].Seconds *= 1 - drop
		}
	}
	return list
}

// fits are the classes as a server sees them: rates, and two moments of what
// jobs took.
func fits(jobs []deflate.Job) ([]deflate.Class, error) {
	classes := make([]deflate.Class, 2)
	for k := range classes {
		count, sum, square := 0.0, 0.0, 0.0
		for _, job := range jobs {
			if job.Class == k {
				count++
				sum += job.Seconds
				square += job.Seconds * job.Seconds
			}
		}
		mean := sum / count
		service, err := deflate.Fit(mean, max(0, square/count/(mean*mean)-1))
		if err != nil {
			return nil, err
		}
		classes[k] = deflate.Class{Rate: count / jobs[len(jobs)-1].At, Service: service}
	}
	return classes, nil
}

// chosen is the drop that the deflator takes: the least with which the high
// class is answered as fast as if it preempted, with its sprint, and that costs a
// point of accuracy at most.
func (r replayer) chosen(classes []deflate.Class, speed float64) (float64, error) {
	alone, err := deflate.NewQueue(classes[1:], slots)
	if err != nil {
		return 0, err
	}
	demands := make([]deflate.Demand, 2)
	for k, class := range classes {
		mean, square := class.Service.Moments()
		demands[k] = deflate.Demand{Rate: class.Rate, Service: func(drop, speed float64) (deflate.Phases, error) {
			p, err := deflate.Fit(mean*(1-drop), max(0, square/(mean*mean)-1))
			return p.Sprinted(speed), err
		}}
	}
	demands[0].Loss, demands[0].MostLoss, demands[0].MostDrop = r.losses.mean, 0.01, 0.5
	demands[1].MeanSeconds, demands[1].Speed = alone.Mean(0), speed
	choice, err := deflate.Choose(demands, slots, 20)
	if err == deflate.ErrNoChoice { //nolint:errorlint // that very one, with a choice
		err = nil
	}
	if err != nil {
		return 0, err
	}
	return choice.Drop[0], nil
}

// way is a row of a trace's table.
type way struct {
	name    string
	engine  deflate.Engine
	drop    float64
	sprints bool
}

// ways are the rows for one run.
func (r replayer) ways(classes []deflate.Class) ([]way, error) {
	basic := deflate.Engine{Slots: slots, BusyWatts: r.sprint.low, IdleWatts: 40}
	engine := func(policy deflate.Policy) deflate.Engine {
		e := basic
		e.Policy = policy
		return e
	}
	extra := r.sprint.high - r.sprint.low
	account := deflate.Account{Watts: slots * extra / 10, Joules: slots * extra * 360}
	sprint := deflate.Sprint{Speed: r.sprint.speed, Watts: extra}.Paid(classes[1].Service, classes[1].Rate, account)
	limited, free := basic, basic
	limited.Sprints, limited.Account = []deflate.Sprint{{}, sprint}, account
	free.Sprints, free.Account = []deflate.Sprint{{}, {Speed: r.sprint.speed, Watts: extra}}, deflate.Account{Joules: math.Inf(1)}
	speed, _ := sprint.Effective(classes[1].Service, classes[1].Rate, account)
	list := []way{
		{"preemptive", engine(deflate.Evicting), 0, false}, {"preemptive, with checkpoints", engine(deflate.Resuming), 0, false}, {"non-preemptive", engine(deflate.NonPreemptive), 0, false},
	}
	for _, drop := range []float64{0.1, 0.2, 0.4} {
		list = append(list, way{fmt.Sprintf("DA (0,%.0f)", 100*drop), basic, drop, false})
	}
	for _, drop := range []float64{0, 0.2, 0.4} {
		list = append(list, way{fmt.Sprintf("DiAS (0,%.0f), limited sprint", 100*drop), limited, drop, true}, way{fmt.Sprintf("DiAS (0,%.0f), unlimited sprint", 100*drop), free, drop, true})
	}
	drop, err := r.chosen(classes, speed)
	if err != nil {
		return nil, err
	}
	unlimited, err := r.chosen(classes, r.sprint.speed)
	return append(list, way{"DiAS, chosen, limited sprint", limited, drop, true}, way{"DiAS, chosen, unlimited sprint", free, unlimited, true}), err
}

// table plays all ways in each run and prints them.
func (r replayer) table(drawn, real *errorsOf) error {
	var names []string
	rows, drops := map[string][]deflate.Played{}, map[string][]float64{}
	for run := range r.runs {
		jobs := r.classes(run)
		classes, err := fits(jobs)
		if err != nil {
			return err
		}
		all, err := r.ways(classes)
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
			rows[w.name], drops[w.name] = append(rows[w.name], played), append(drops[w.name], w.drop)
			if w.engine.Policy == deflate.NonPreemptive && !w.sprints {
				if err := r.compare(jobs, w, run, drawn, real); err != nil {
					return err
				}
			}
		}
	}
	fmt.Printf("\n**%s, load %.0f%%**, %d jobs\n\n| | low | high | wasted | joules | dropped | points of accuracy lost |\n|---|---|---|---|---|---|---|\n", r.trace.name, 100*r.load, len(r.trace.jobs))
	for _, name := range names {
		drop := middle(drops[name])
		fmt.Printf("| %s | %s %.0f%% | %.2f |\n", name, against(rows["preemptive"], rows[name], true), 100*drop, 100*r.losses.mean(drop))
	}
	return nil
}

// compare notes the model's errors for a way, for arrivals at random and as
// recorded.
func (r replayer) compare(jobs []deflate.Job, w way, run int, drawn, real *errorsOf) error {
	less := dropped(jobs, w.drop)
	classes, err := fits(less)
	if err != nil {
		return err
	}
	q, err := deflate.NewQueue(classes, slots)
	if err != nil {
		return err
	}
	for list, errors := range map[*[]deflate.Job]*errorsOf{ptr(scattered(less, run)): drawn, &less: real} {
		played, err := w.engine.Replay(*list, 2, 0.1)
		if err != nil {
			return err
		}
		for k := range classes {
			last, err := q.Quantile(k, 0.95)
			if err != nil {
				return err
			}
			errors.note(q.Mean(k), played.Classes[k].Mean, last, played.Classes[k].Tail)
		}
	}
	return nil
}

func ptr[T any](value T) *T { return &value }
