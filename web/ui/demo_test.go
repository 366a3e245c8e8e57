package ui_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

const energyMethod = "estimate: 7.5 W for each busy core"

// emptyStudy is a study that has just been created.
func emptyStudy(name string, trials int, created time.Time) *fakeStudy {
	def := definition.Definition{
		Name: name, Description: "LeNet-5 on Fashion-MNIST, in PyTorch", Command: []string{"python3", "train.py"},
		Objectives: []definition.Objective{{Metric: "accuracy", Direction: definition.Maximize}},
		Space: space.Space{Parameters: []space.Parameter{
			{Name: "learning_rate", Kind: space.Training, Type: space.FloatType, Low: 3e-4, High: 3e-2, Log: true},
			{Name: "batch_size", Kind: space.Training, Type: space.OrdinalType, Values: []space.Value{space.Int(16), space.Int(32), space.Int(64), space.Int(128)}},
			{Name: "dropout", Kind: space.Training, Type: space.FloatType, Low: 0, High: 0.5},
			{Name: "conv_channels", Kind: space.Model, Type: space.IntType, Low: 4, High: 24, Log: true},
		}},
		System: map[string]space.Value{"cpu_threads": space.Int(1)},
		Budget: budget.Settings{Policy: budget.Multi, Growth: budget.Geometric, Eta: 3,
			Epochs: budget.EpochRange{Min: 1, Max: 27}, DataFraction: budget.FractionRange{Min: 1.0 / 27, Max: 1}},
		Search: definition.Search{Method: "bohb", Seed: 7, RandomFraction: 0.33},
		Stop:   definition.Stop{Trials: trials, Seconds: 5400},
	}
	s := &fakeStudy{reports: map[int][]trial.Report{}, logs: map[int]string{}, changed: make(chan struct{})}
	s.view = protocol.StudyView{ID: "st-" + name, Name: name, Status: protocol.StudyRunning, Created: created, Definition: def, Rungs: def.Ladder()}
	s.log(protocol.Event{At: created, Kind: "study_created", State: "running"})
	return s
}

// trialOf makes a trial that waits for a worker.
func (s *fakeStudy) trialOf(number int, random *rand.Rand, at time.Time) trial.Trial {
	sizes := s.view.Definition.Space.Parameters[1].Values
	return trial.Trial{
		ID: trial.ID(fmt.Sprintf("%s-%d", s.view.ID, number)), Study: s.view.ID, Number: number, Seed: random.Uint64(),
		Origin: []string{"random", "model", "model"}[random.IntN(3)], State: trial.Queued, Created: at, Budget: s.view.Rungs[0].Budget,
		Configuration: space.Configuration{
			"learning_rate": space.Float(3e-4 * math.Pow(100, random.Float64())),
			"batch_size":    sizes[random.IntN(len(sizes))],
			"dropout":       space.Float(random.Float64() / 2),
			"conv_channels": space.Int(4 + random.Int64N(21)),
		},
	}
}

// metricsAfter is what the trial reaches with a number of passes over the data.
func metricsAfter(t trial.Trial, passes float64, random *rand.Rand) map[string]trial.Float {
	rate, _ := t.Configuration["learning_rate"].Number()
	channels, _ := t.Configuration["conv_channels"].Number()
	away := math.Log10(rate) - math.Log10(4e-3)
	ceiling := 0.918 - 0.06*away*away - 0.6/(channels+6)
	speed := 2.6 * math.Exp(-1.4*away*away)
	accuracy := ceiling - (ceiling-0.42)*math.Exp(-speed*math.Sqrt(passes)) + 0.004*random.NormFloat64()
	loss := -math.Log(accuracy) * 1.7
	if away > 0.82 { // too large a step: it diverges
		return map[string]trial.Float{"accuracy": 0.1, "loss": trial.Float(math.NaN())}
	}
	return map[string]trial.Float{"accuracy": trial.Float(accuracy), "loss": trial.Float(loss)}
}

// occurrence is something that happens to a demo study at a moment.
type occurrence struct {
	at  time.Time
	run func(at time.Time)
}

// demo plays a study on four slots up to a moment: trials start, are measured,
// go up if they are among the best third of their rung, and one fails, one is
// lost with its worker.
type demo struct {
	*fakeStudy
	random *rand.Rand
	agenda []occurrence
	passes map[int]float64
}

func demoStudy(name string, trials int, length time.Duration, now time.Time) *fakeStudy {
	start := now.Add(-length)
	d := &demo{fakeStudy: emptyStudy(name, trials, start), random: rand.New(rand.NewPCG(7, 11)), passes: map[int]float64{}}
	for slot := range 4 {
		d.later(start.Add(time.Duration(1+slot)*time.Second), func(at time.Time) { d.next(slot, at) })
	}
	for len(d.agenda) > 0 {
		first := slices.MinFunc(d.agenda, func(a, b occurrence) int { return a.at.Compare(b.at) })
		if first.at.After(now) {
			break
		}
		d.agenda = slices.DeleteFunc(d.agenda, func(o occurrence) bool { return o.at.Equal(first.at) })
		first.run(first.at)
	}
	d.view.Progress.ElapsedSeconds = length.Seconds()
	rest := 0.31 * length.Seconds()
	d.view.Progress.RemainingSeconds = &rest
	return d.fakeStudy
}

func (d *demo) later(at time.Time, run func(time.Time)) {
	at = at.Add(time.Duration(d.random.IntN(900_000)) * time.Microsecond)
	d.agenda = append(d.agenda, occurrence{at, run})
}

// next gives a free slot a promotion, or else a new trial.
func (d *demo) next(slot int, at time.Time) {
	t, found := d.promotable()
	if !found {
		if len(d.trials) == d.view.Definition.Stop.Trials {
			return
		}
		t = d.trialOf(len(d.trials), d.random, at)
		t.Reason = "new"
	}
	worker := fmt.Sprintf("worker-%d-id", slot/2+1)
	if t.Checkpoint != nil {
		t.Resumes++
	}
	t.State, t.Worker, t.LeaseEpoch = trial.Leased, worker, t.LeaseEpoch+1
	if t.Started == nil {
		t.Started = &at
	}
	d.move(t, at)
	d.logs[t.Number] += fmt.Sprintf("loading Fashion-MNIST: %.0f of 60000 images\n", 60000*t.Budget.DataFraction)
	d.later(at.Add(d.epochTime(t)), func(at time.Time) { d.epoch(slot, t.Number, at) })
}

func (d *demo) epochTime(t trial.Trial) time.Duration {
	return time.Duration((0.7 + 22*t.Budget.DataFraction) * float64(time.Second))
}

// promotable finds a trial among the best third of its rung that has not gone up.
func (d *demo) promotable() (trial.Trial, bool) {
	for rung := len(d.view.Rungs) - 2; rung >= 0; rung-- {
		var measured []protocol.RankedTrial
		for _, t := range d.ranked() {
			if len(t.Results) > rung {
				measured = append(measured, t)
			}
		}
		slices.SortStableFunc(measured, func(a, b protocol.RankedTrial) int {
			return int(math.Copysign(1, float64(b.Results[rung].Values[0]-a.Results[rung].Values[0])))
		})
		for place, candidate := range measured[:len(measured)/3] {
			t := candidate.Trial
			if t.Rung == rung && t.State == trial.Paused {
				t.Rung, t.Budget, t.Promotions = rung+1, d.view.Rungs[rung+1].Budget, t.Promotions+1
				t.Reason = fmt.Sprintf("place %d of %d on rung %d: among the best third", place+1, len(measured), rung)
				return t, true
			}
		}
	}
	return trial.Trial{}, false
}

// epoch reports one epoch, then plans the next, or ends the run.
func (d *demo) epoch(slot, number int, at time.Time) {
	t := d.trials[number]
	switch {
	case number == 9 && t.Failures == 0:
		t.State, t.Failures, t.Finished = trial.Failed, 1, &at
		t.Reason = "exit status 1: RuntimeError: expected <Tensor[64]> & got none"
		d.logs[number] += "Traceback (most recent call last):\n  <b>RuntimeError</b>: expected <Tensor[64]> & got none\n"
		d.move(t, at)
		d.later(at, func(at time.Time) { d.next(slot, at) })
		return
	case number == 5 && t.Losses == 0 && t.Rung > 0:
		t.State, t.Losses, t.Reason = trial.Lost, 1, "worker "+t.Worker+" was not heard of for a lease term"
		d.move(t, at)
		t.State, t.Reason = trial.Queued, "lost 1 of at most 3 times; waits for another worker"
		d.move(t, at)
		t.State, t.Worker, t.LeaseEpoch, t.Resumes, t.Reason = trial.Leased, "worker-1-id", t.LeaseEpoch+1, t.Resumes+1, "goes on"
		d.move(t, at)
	}
	d.passes[number] += t.Budget.DataFraction
	seconds := d.epochTime(t).Seconds()
	metrics := metricsAfter(t, d.passes[number], d.random)
	d.report(number, metrics, seconds, seconds*7.5*(0.9+0.2*d.random.Float64()), at)
	t = d.trials[number]
	d.logs[number] += fmt.Sprintf("epoch %d: accuracy %.4f, loss %.4f, %.1f s\n", t.LastEpoch, float64(metrics["accuracy"]), float64(metrics["loss"]), seconds)
	if t.LastEpoch < t.Budget.Epochs {
		d.later(at.Add(d.epochTime(t)), func(at time.Time) { d.epoch(slot, number, at) })
		return
	}
	d.checkpoint(number, at)
	t = d.trials[number]
	t.State, t.Reason = trial.Paused, fmt.Sprintf("measured at rung %d", t.Rung)
	if t.Rung == len(d.view.Rungs)-1 {
		t.State, t.Reason, t.Finished = trial.Completed, "measured at the top rung", &at
	}
	d.move(t, at)
	d.later(at, func(at time.Time) { d.next(slot, at) })
}

func demoWorkers(s *fakeStudy) []protocol.Worker {
	workers := []protocol.Worker{}
	for i, name := range []string{"desk", "lab-03"} {
		worker := protocol.Worker{Alive: true, LastSeenSeconds: 1.2 + float64(i), Trials: []trial.ID{}}
		worker.WorkerRegistration = protocol.WorkerRegistration{ID: fmt.Sprintf("worker-%d-id", i+1), Name: name, Slots: 2, Machine: protocol.Machine{
			Host: name + ".example", CPUModel: "AMD EPYC 7543", Cores: 8 * (i + 1), MemoryBytes: 33 << 30, EnergyMethod: []string{energyMethod, "rapl"}[i]}}
		for _, t := range s.trials {
			if t.State.Held() && strings.HasPrefix(t.Worker, worker.ID) {
				worker.Trials = append(worker.Trials, t.ID)
			}
		}
		workers = append(workers, worker)
	}
	return workers
}
