// Package launching plays recorded traces through the planner of launchers, in simulated
// time: what do its workers take, against who knows the future?
package launching

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/trace"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

const (
	// every is how often a launcher plans, register how long a worker takes to be heard of
	// after its job began, and margin how long before its time limit it leaves.
	every, register, margin = 10 * time.Second, 5 * time.Second, time.Minute
	// wait is the engine's mean time from an order to its job's begin.
	wait = time.Minute
	// most bounds the workers at once.
	most = 64
)

// work is a job of a trace: a study of one trial.
type work struct {
	arrives, left time.Duration
	began         bool
}

// worker is a job of the engine.
type worker struct {
	launcher.Job
	begins, ends time.Duration // when the engine starts it, and when its time is over
	idle         time.Duration // since when it has no trial
	heard        bool
	runs         *work
}

// played is what came of a trace.
type played struct {
	workers, busy float64 // hours that workers were there, and had a trial
	waited        []float64
	alive         int // most at once
	launches      int
	late          int // launches 30 s and more after the last trial ended
}

// site is an engine and a server in simulated time.
type site struct {
	planner  *launcher.Planner
	now      time.Duration
	random   *rand.Rand
	workers  []*worker
	queue    []*work
	found    played
	finished time.Duration // when the last trial ended
}

// Measure prints the table.
func Measure(data string, runs int) error {
	fmt.Println("| trace | times as fast | idle | workers' hours / hours with a trial | wait in s, median (95%) | most at once | launches | 30 s after the end |\n|---|---|---|---|---|---|---|---|")
	traces, err := read(data)
	if err != nil {
		return err
	}
	for _, one := range traces {
		for _, way := range []struct {
			fast float64
			idle time.Duration
		}{{1, 5 * time.Minute}, {60, 5 * time.Minute}, {60, time.Minute}} {
			var ratios, waits []float64
			var alive, launches, late int
			for seed := range runs {
				got, err := play(one.jobs, way.fast, way.idle, uint64(seed)+1)
				if err != nil {
					return err
				}
				ratios, waits = append(ratios, got.workers/got.busy), append(waits, got.waited...)
				alive, launches, late = max(alive, got.alive), launches+got.launches, late+got.late
			}
			slices.Sort(ratios)
			slices.Sort(waits)
			fmt.Printf("| %s | %.0f | %v | %.3f (%.3f–%.3f) | %.0f (%.0f) | %d of %d | %d | %d |\n", one.name, way.fast, way.idle,
				ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], waits[len(waits)/2], waits[len(waits)*95/100], alive, most, launches/runs, late)
		}
	}
	return nil
}

type recorded struct {
	name string
	jobs []replay.Job
}

// read reads the traces; a job takes what it takes on a V100.
func read(data string) (list []recorded, err error) {
	machines, err := trace.ReadMachines("machines", []byte("types: {v100: {gpus: 16, busy_watts_per_gpu: 200}, p100: {gpus: 8, busy_watts_per_gpu: 200}, k80: {gpus: 8, busy_watts_per_gpu: 120}}\nmachines: [{type: v100, count: 8}, {type: p100, count: 8}, {type: k80, count: 8}]"))
	if err != nil {
		return nil, err
	}
	open := func(name string) *bytes.Reader {
		content, failed := os.ReadFile(filepath.Join(data, name))
		if failed != nil {
			err = fmt.Errorf("the data are not there (-data, TANDEM_DATA): %w", failed)
		}
		return bytes.NewReader(content)
	}
	speeds := open("gavel/simulation_throughputs.json")
	if err != nil {
		return nil, err
	}
	known, err := trace.ReadThroughputs("throughputs", speeds)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"msr_seed0_103959", "msr_seed0_2869ce", "msr_seed0_0e4a51"} {
		file := open("gavel/traces/" + name + ".trace")
		if err != nil {
			return nil, err
		}
		read, err := trace.Gavel(name, file, known, machines)
		if err != nil {
			return nil, err
		}
		list = append(list, recorded{"Gavel, " + name, read.Jobs})
	}
	return list, nil
}

// play plays the jobs, one GPU each and so many times as fast as recorded, until the last
// has ended and an hour more.
func play(jobs []replay.Job, fast float64, idle time.Duration, seed uint64) (played, error) {
	shapes, err := launcher.Sorted([]launcher.Shape{{Name: "gpu", GPUs: 1, Most: most, MostAnHour: 100 * most}})
	if err != nil {
		return played{}, err
	}
	s := &site{planner: &launcher.Planner{Shapes: shapes, Idle: idle}, random: rand.New(rand.NewPCG(seed, 0))}
	var waiting []*work
	for i := range jobs {
		alone, ok := jobs[i].Alone("v100")
		if !ok {
			return played{}, fmt.Errorf("%s runs on no V100", jobs[i].Name)
		}
		waiting = append(waiting, &work{arrives: seconds(jobs[i].Arrives / fast), left: seconds(alone.Seconds / fast)})
	}
	slices.SortStableFunc(waiting, func(a, b *work) int { return int(a.arrives - b.arrives) })
	for open := len(waiting); open > 0 || s.now < s.finished+time.Hour; s.now += every {
		for len(waiting) > 0 && waiting[0].arrives <= s.now {
			s.queue, waiting = append(s.queue, waiting[0]), waiting[1:]
		}
		open -= s.pass(shapes[0].TimeLimit)
		if open == 0 && s.finished == 0 {
			s.finished = s.now
		}
		s.plan(open, idle)
	}
	return s.found, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// pass lets the time until now pass for the workers, and returns how many trials ended.
func (s *site) pass(limit time.Duration) (ended int) {
	for _, w := range s.workers {
		if w.State == launcher.Pending && w.begins <= s.now {
			w.State, w.ends = launcher.Running, w.begins+limit-margin
		}
		if w.State != launcher.Running {
			continue
		}
		if !w.heard && w.begins+register <= s.now {
			w.heard, w.idle = true, s.now
		}
		s.found.workers += every.Hours()
		if w.runs != nil {
			s.found.busy += min(every, w.runs.left).Hours()
			if w.runs.left -= every; w.runs.left <= 0 {
				ended++
				w.runs, w.idle = nil, s.now
			}
		}
		if w.ends <= s.now {
			if w.runs != nil { // it is handed back by checkpoint
				s.queue = slices.Insert(s.queue, 0, w.runs)
			}
			w.State, w.Cause, w.runs = launcher.Ended, protocol.Finished, nil
		}
	}
	return ended
}

// plan lets idle workers take trials or leave, and the planner plan.
func (s *site) plan(open int, idle time.Duration) {
	for _, w := range s.workers {
		switch {
		case w.State != launcher.Running || !w.heard || w.runs != nil:
		case len(s.queue) > 0:
			w.runs, s.queue = s.queue[0], s.queue[1:]
			if one := w.runs; !one.began {
				one.began = true
				s.found.waited = append(s.found.waited, (s.now - one.arrives).Seconds())
			}
		case s.now-w.idle >= idle:
			w.State, w.Cause = launcher.Ended, protocol.Finished
		}
	}
	seen := launcher.Seen{Wants: []launcher.Want{{Study: "trace", StudyID: "trace", Trials: len(s.queue), GPUs: 1}}}
	alive := 0
	for _, w := range s.workers {
		seen.Jobs = append(seen.Jobs, w.Job)
		if w.State != launcher.Ended {
			alive++
		}
		if w.heard && w.State == launcher.Running {
			one := launcher.Worker{Launch: w.Launch, Slots: 1}
			if w.runs != nil {
				one.Trials = 1
			}
			seen.Workers = append(seen.Workers, one)
		}
	}
	plan := s.planner.Plan(time.Unix(1e9, 0).Add(s.now), seen)
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool {
		return w.State == launcher.Ended || slices.Contains(plan.Cancel, w.ID) && w.State == launcher.Pending
	})
	for _, order := range plan.Orders {
		s.found.launches += order.Count
		if open == 0 && s.now >= s.finished+30*time.Second {
			s.found.late += order.Count
		}
		for i := range order.Count {
			launch := order.Launch(i)
			s.workers = append(s.workers, &worker{Job: launcher.Job{ID: launch, Launch: launch, Shape: order.Shape.Name, State: launcher.Pending}, begins: s.now + time.Duration(s.random.ExpFloat64()*float64(wait))})
		}
		alive += order.Count
	}
	s.found.alive = max(s.found.alive, alive)
}
