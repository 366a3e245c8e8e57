package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/bench/pool/queueing"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// setting is a row of the tables: the jobs that come, lowest class first, and
// how they are treated.
type setting struct {
	name string
	// rates are relative; they are scaled to the load.
	rates []float64
	// service is a class's job when so much is dropped of its map tasks.
	service []func(drop float64) work
	load    float64
	drops   [][]float64
	// sprint is that of the highest class; the zero value: none is measured.
	sprint     approximation.Sprint
	account    approximation.Account
	busy, idle float64
}

// work is a job that goes through stages on so many slots (equation 4.1): tasks that
// run beside each other, whose times are exponential.
type work struct {
	slots  int
	stages []stage
}

type stage struct {
	seconds float64 // of a task, in the mean
	tasks   int
	drop    float64
}

// draw is what a job takes; with no random numbers in the mean.
func (w work) draw(random *rand.Rand) float64 {
	sum := 0.0
	for _, one := range w.stages {
		for left := max(1, int(math.Ceil(float64(one.tasks)*(1-one.drop)-1e-9))); left > 0; left-- {
			factor := 1.0
			if random != nil {
				factor = random.ExpFloat64()
			}
			sum += factor * one.seconds / float64(min(left, w.slots))
		}
	}
	return sum
}

// text is a job of section 4.4.2: 50 map tasks on 20 slots, in waves, between a
// setup and a shuffle, and a reduce task for each slot. scale is its size.
func text(scale float64) func(drop float64) work {
	return func(drop float64) work {
		return work{20, []stage{{5, 1, 0}, {20 * scale, 50, drop}, {3, 1, 0}, {4 * scale, 20, 0}}}
	}
}

// waves is that job with tasks that hardly differ, as those of a cluster that reads
// blocks of one size do: 50 of them on 20 slots run in three waves, 40 in two (the
// waves of section 4.3.2). A wave is ten exponential stages.
func waves(scale float64) func(drop float64) work {
	return func(drop float64) work {
		w := work{1, []stage{{5, 1, 0}, {3, 1, 0}}}
		wave := func(seconds float64) {
			w.stages = append(w.stages, slices.Repeat(list(stage{seconds / 10, 1, 0}), 10)...)
		}
		for range int(math.Ceil(math.Ceil(50*(1-drop)-1e-9) / 20)) {
			wave(20 * scale)
		}
		wave(4 * scale)
		return w
	}
}

// triangles is a job of the triangle count: six stages that drop tasks each, and
// one that does not.
func triangles(drop float64) work {
	stages := list(stage{8, 1, 0})
	for range 6 {
		stages = append(stages, stage{7, 40, drop})
	}
	return work{20, append(stages, stage{7, 20, 0})}
}

// chapter has the settings of section 4.4, in its order.
func chapter() []setting {
	low, high := text(1.117), text(0.473)
	two := [][]float64{{0.1, 0}, {0.2, 0}, {0.4, 0}}
	three := [][]float64{{0.2, 0.1, 0}, {0.4, 0.2, 0}}
	small := [][]float64{{0.1, 0}, {0.2, 0}}
	sprint := approximation.Sprint{Speed: 2.5, Watts: 90}
	return []setting{
		{name: "reference: 9 low to 1 high, sizes 2.36 to 1", rates: []float64{9, 1}, service: list(low, high), load: 0.8, drops: two,
			sprint: sprint, account: approximation.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
		{name: "the same in waves", rates: []float64{9, 1}, service: list(waves(1.117), waves(0.473)), load: 0.8, drops: two,
			sprint: sprint, account: approximation.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
		{name: "same sizes", rates: []float64{9, 1}, service: list(high, high), load: 0.8, drops: two},
		{name: "1 low to 9 high", rates: []float64{1, 9}, service: list(low, high), load: 0.8, drops: two},
		{name: "load 50%", rates: []float64{9, 1}, service: list(low, high), load: 0.5, drops: two},
		{name: "three classes, 5-4-1", rates: []float64{5, 4, 1}, service: list(low, low, high), load: 0.8, drops: three},
		{name: "triangle count, 7 to 3, limited sprint (22 kJ, after 65 s)", rates: []float64{7, 3}, service: list(triangles, triangles), load: 0.8, drops: small,
			sprint: approximation.Sprint{Speed: sprint.Speed, Watts: sprint.Watts, TimeoutSeconds: 65}, account: approximation.Account{Joules: 22_000, Watts: 9}, busy: 180, idle: 54},
		{name: "triangle count, 7 to 3, unlimited sprint", rates: []float64{7, 3}, service: list(triangles, triangles), load: 0.8, drops: small,
			sprint: sprint, account: approximation.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
	}
}

func list[T any](all ...T) []T { return all }

// priorities measures DiAS: first in the chapter's settings, then on recorded
// traces with recorded accuracies. With a part of a trace's name, only on these.
func priorities(data string, runs, jobs int, only string) error {
	if only == "" {
		if err := chapterPlayed(runs, jobs); err != nil {
			return err
		}
	}
	losses, err := measureLosses(data)
	if err != nil {
		return err
	}
	return traced(data, runs, only, losses)
}

// chapterPlayed measures the chapter's settings.
func chapterPlayed(runs, jobs int) error {
	fmt.Println("\n### The chapter's settings, played\n\nMean (95th percentile) of the response against preemptive, lowest class first; median over the runs, and the range of the lowest class's mean.")
	for _, s := range chapter() {
		if err := s.measure(runs, jobs); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Println("\n### The controller in these settings\n\nMeans of the high class in seconds, medians over the runs and their ranges; the limit is half way from non-preemptive to DA (0,40), which is the most that is allowed.\n\n| | non-preemptive | limit | controlled | of the limit | dropped | low against non-preemptive | twice the first as the limit: dropped |\n|---|---|---|---|---|---|---|---|")
	for _, s := range chapter() {
		if len(s.rates) == 2 && s.sprint.TimeoutSeconds == 0 {
			if err := s.control(runs, jobs); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// variant is a way to treat the jobs.
type variant struct {
	name    string
	policy  queueing.Policy
	drop    []float64
	sprints bool
	helps   bool
}

func (s setting) variants() []variant {
	none := make([]float64, len(s.rates))
	list := []variant{
		{"preemptive", queueing.Evicting, none, false, false}, {"preemptive, with checkpoints", queueing.Resuming, none, false, false}, {"non-preemptive", queueing.NonPreemptive, none, false, false},
	}
	for _, drop := range s.drops {
		list = append(list, variant{"DA " + percents(drop), queueing.NonPreemptive, drop, false, false})
	}
	if s.sprint.Speed <= 1 {
		return list
	}
	for _, helps := range []bool{false, true} {
		too := map[bool]string{true: ", low ones too while high ones wait"}[helps]
		list = append(list, variant{"non-preemptive, sprint" + too, queueing.NonPreemptive, none, true, helps})
		for _, drop := range s.drops {
			list = append(list, variant{"DiAS " + percents(drop) + too, queueing.NonPreemptive, drop, true, helps})
		}
	}
	return list
}

// percents writes drop ratios as the thesis does, the highest class first.
func percents(drop []float64) string {
	text := ""
	for _, one := range slices.Backward(drop) {
		text += fmt.Sprintf(",%.0f", 100*one)
	}
	return "(" + text[1:] + ")"
}

// measure plays every variant in each run and prints a table.
func (s setting) measure(runs, jobs int) error {
	fmt.Printf("\n**%s**\n\n| | %s wasted | joules |\n|---|%s---|---|\n", s.name, headings(len(s.rates)), dashes(len(s.rates)))
	var base []queueing.Played
	for _, v := range s.variants() {
		played, err := s.play(v, runs, jobs)
		if err != nil {
			return err
		}
		if base == nil {
			base = played
		}
		fmt.Printf("| %s | %s\n", v.name, against(base, played, s.busy > 0))
	}
	return nil
}

// rated are the rates that bring the load without any drop.
func (s setting) rated() []float64 {
	all := 0.0
	for k, service := range s.service {
		all += s.rates[k] * service(0).draw(nil)
	}
	var rates []float64
	for _, rate := range s.rates {
		rates = append(rates, rate*s.load/all)
	}
	return rates
}

// drawn are jobs that come at random.
func (s setting) drawn(drop []float64, jobs int, random *rand.Rand) []queueing.Job {
	rates, total := s.rated(), 0.0
	for _, rate := range rates {
		total += rate
	}
	all, at := make([]queueing.Job, jobs), 0.0
	for i := range all {
		at += random.ExpFloat64() / total
		class, draw := 0, random.Float64()*total
		for ; class < len(rates)-1 && draw >= rates[class]; class++ {
			draw -= rates[class]
		}
		all[i] = queueing.Job{Class: class, At: at, Seconds: s.service[class](drop[class]).draw(random)}
	}
	return all
}

func (s setting) play(v variant, runs, jobs int) ([]queueing.Played, error) {
	engine := queueing.Engine{Slots: 1, Policy: v.policy, BusyWatts: s.busy, IdleWatts: s.idle, Helps: v.helps}
	if v.sprints {
		engine.Sprints, engine.Account = make([]approximation.Sprint, len(s.rates)), s.account
		engine.Sprints[len(s.rates)-1] = s.sprint
	}
	var all []queueing.Played
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 11)) //nolint:gosec // what is drawn has to repeat
		played, err := engine.Replay(s.drawn(v.drop, jobs, random), len(s.rates), 0.1)
		if err != nil {
			return nil, err
		}
		all = append(all, played)
	}
	return all, nil
}

// control prints what the controller makes of a setting without sprints.
func (s setting) control(runs, jobs int) error {
	none := make([]float64, len(s.rates))
	var without, limits, met, kept, share, low, idle []float64
	for run := range runs {
		play := func(drop []float64, control *queueing.Control) (queueing.Played, error) {
			random := rand.New(rand.NewPCG(uint64(run), 11)) //nolint:gosec // what is drawn has to repeat
			return queueing.Engine{Slots: 1, Control: control}.Replay(s.drawn(drop, jobs, random), 2, 0.1)
		}
		plain, err := play(none, nil)
		if err != nil {
			return err
		}
		deep, err := play([]float64{0.4, 0}, nil)
		if err != nil {
			return err
		}
		limit := (plain.Classes[1].Mean + deep.Classes[1].Mean) / 2
		with := func(limit float64) (queueing.Played, error) {
			return play(none, &queueing.Control{Limits: approximation.Limits{Mean: limit}, Most: 0.4, Every: limit / 50, Next: approximation.NextShare})
		}
		played, err := with(limit)
		if err != nil {
			return err
		}
		placebo, err := with(2 * plain.Classes[1].Mean)
		if err != nil {
			return err
		}
		without, limits, met = append(without, plain.Classes[1].Mean), append(limits, limit), append(met, played.Classes[1].Mean)
		kept, share, idle = append(kept, played.Classes[1].Mean/limit), append(share, 100*played.Dropped), append(idle, 100*placebo.Dropped)
		low = append(low, 100*(played.Classes[0].Mean/plain.Classes[0].Mean-1))
	}
	spread := func(list []float64, format string) string {
		return fmt.Sprintf(format+" ("+format+" to "+format+")", middle(list), slices.Min(list), slices.Max(list))
	}
	fmt.Printf("| %s | %.0f | %.0f | %s | %s | %s%% | %+.0f%% | %s%% |\n", s.name, middle(without), middle(limits), spread(met, "%.0f"), spread(kept, "%.2f"), spread(share, "%.0f"), middle(low), spread(idle, "%.1f"))
	return nil
}

// against are a row's cells: responses against those of the base in the same
// run.
func against(base, played []queueing.Played, joules bool) string {
	text := ""
	for k := range base[0].Classes {
		mean := relative(base, played, func(p queueing.Played) float64 { return p.Classes[k].Mean })
		last := relative(base, played, func(p queueing.Played) float64 { return p.Classes[k].Tail })
		text += fmt.Sprintf("%+.0f%% (%+.0f%%)", middle(mean), middle(last))
		if k == 0 {
			text += fmt.Sprintf(", %+.0f to %+.0f%%", slices.Min(mean), slices.Max(mean))
		}
		text += " | "
	}
	var wasted []float64
	for _, one := range played {
		wasted = append(wasted, 100*one.Wasted)
	}
	text += fmt.Sprintf("%.1f%% | ", middle(wasted))
	if !joules {
		return text + "- |"
	}
	return text + fmt.Sprintf("%+.1f%% |", middle(relative(base, played, func(p queueing.Played) float64 { return p.Joules })))
}

// relative is the difference from the base in percent, run by run.
func relative(base, played []queueing.Played, of func(queueing.Played) float64) []float64 {
	var list []float64
	for run := range base {
		list = append(list, 100*(of(played[run])/of(base[run])-1))
	}
	return list
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

func headings(classes int) string {
	text := ""
	for k := range classes {
		switch {
		case k == 0:
			text += "low |"
		case k == classes-1:
			text += " high |"
		default:
			text += " medium |"
		}
	}
	return text
}

func dashes(classes int) string {
	text := ""
	for range classes {
		text += "---|"
	}
	return text
}
