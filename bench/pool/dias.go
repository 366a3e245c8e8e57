package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/workers/deflate"
)

// setting is a row of the tables: the jobs that come, lowest class first, and
// how they are treated.
type setting struct {
	name string
	// rates are relative; they are scaled to the load.
	rates []float64
	// stages are those of a class's job when so much is dropped of its map tasks.
	service []func(drop float64) (deflate.Phases, error)
	load    float64
	drops   [][]float64
	// sprint is that of the highest class; the zero value: none is measured.
	sprint     deflate.Sprint
	account    deflate.Account
	busy, idle float64
}

// text is a job of section 4.4.2: 50 map tasks on 20 slots, in waves, between a
// setup and a shuffle, and a reduce task for each slot. scale is its size.
func text(scale float64) func(drop float64) (deflate.Phases, error) {
	return func(drop float64) (deflate.Phases, error) {
		return deflate.Stages(20,
			deflate.Stage{Seconds: 5, Tasks: []float64{1}},
			deflate.Stage{Seconds: 20 * scale, Tasks: certainly(50), Drop: drop},
			deflate.Stage{Seconds: 3, Tasks: []float64{1}},
			deflate.Stage{Seconds: 4 * scale, Tasks: certainly(20)})
	}
}

// waves is that job with tasks that hardly differ, as those of a cluster that reads
// blocks of one size do: 50 of them on 20 slots run in three waves, 40 in two (the
// waves of section 4.3.2). A wave is ten exponential stages.
func waves(scale float64) func(drop float64) (deflate.Phases, error) {
	return func(drop float64) (deflate.Phases, error) {
		stages := []deflate.Stage{{Seconds: 5, Tasks: []float64{1}}}
		wave := func(seconds float64) {
			for range 10 {
				stages = append(stages, deflate.Stage{Seconds: seconds / 10, Tasks: []float64{1}})
			}
		}
		for range int(math.Ceil(math.Ceil(50*(1-drop)-1e-9) / 20)) {
			wave(20 * scale)
		}
		stages = append(stages, deflate.Stage{Seconds: 3, Tasks: []float64{1}})
		wave(4 * scale)
		return deflate.Stages(1, stages...)
	}
}

// triangles is a job of the triangle count: six stages that drop tasks each, and
// one that does not.
func triangles(drop float64) (deflate.Phases, error) {
	stages := []deflate.Stage{{Seconds: 8, Tasks: []float64{1}}}
	for range 6 {
		stages = append(stages, deflate.Stage{Seconds: 7, Tasks: certainly(40), Drop: drop})
	}
	return deflate.Stages(20, append(stages, deflate.Stage{Seconds: 7, Tasks: certainly(20)})...)
}

// certainly is the distribution of a number of tasks that is fixed.
func certainly(tasks int) []float64 {
	list := make([]float64, tasks)
	list[tasks-1] = 1
	return list
}

// chapter has the settings of section 4.4, in its order.
func chapter() []setting {
	low, high := text(1.117), text(0.473)
	two := [][]float64{{0.1, 0}, {0.2, 0}, {0.4, 0}}
	three := [][]float64{{0.2, 0.1, 0}, {0.4, 0.2, 0}}
	small := [][]float64{{0.1, 0}, {0.2, 0}}
	sprint := deflate.Sprint{Speed: 2.5, Watts: 90}
	return []setting{
		{name: "reference: 9 low to 1 high, sizes 2.36 to 1", rates: []float64{9, 1}, service: list(low, high), load: 0.8, drops: two,
			sprint: sprint, account: deflate.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
		{name: "the same in waves", rates: []float64{9, 1}, service: list(waves(1.117), waves(0.473)), load: 0.8, drops: two,
			sprint: sprint, account: deflate.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
		{name: "same sizes", rates: []float64{9, 1}, service: list(high, high), load: 0.8, drops: two},
		{name: "1 low to 9 high", rates: []float64{1, 9}, service: list(low, high), load: 0.8, drops: two},
		{name: "load 50%", rates: []float64{9, 1}, service: list(low, high), load: 0.5, drops: two},
		{name: "three classes, 5-4-1", rates: []float64{5, 4, 1}, service: list(low, low, high), load: 0.8, drops: three},
		{name: "triangle count, 7 to 3, limited sprint (22 kJ, after 65 s)", rates: []float64{7, 3}, service: list(triangles, triangles), load: 0.8, drops: small,
			sprint: deflate.Sprint{Speed: sprint.Speed, Watts: sprint.Watts, TimeoutSeconds: 65}, account: deflate.Account{Joules: 22_000, Watts: 9}, busy: 180, idle: 54},
		{name: "triangle count, 7 to 3, unlimited sprint", rates: []float64{7, 3}, service: list(triangles, triangles), load: 0.8, drops: small,
			sprint: sprint, account: deflate.Account{Joules: math.Inf(1)}, busy: 180, idle: 54},
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
	var errors errorsOf
	fmt.Println("\n### The chapter's settings, played\n\nMean (95th percentile) of the response against preemptive, lowest class first; median over the runs, and the range of the lowest class's mean.")
	for _, s := range chapter() {
		if err := s.measure(runs, jobs, &errors); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	errors.print("The model's error (response times of non-preemptive and deflated runs against these plays)")
	return nil
}

// variant is a way to treat the jobs.
type variant struct {
	name    string
	policy  deflate.Policy
	drop    []float64
	sprints bool
	helps   bool
}

func (s setting) variants() []variant {
	none := make([]float64, len(s.rates))
	list := []variant{
		{"preemptive", deflate.Evicting, none, false, false}, {"preemptive, with checkpoints", deflate.Resuming, none, false, false}, {"non-preemptive", deflate.NonPreemptive, none, false, false},
	}
	for _, drop := range s.drops {
		list = append(list, variant{"DA " + percents(drop), deflate.NonPreemptive, drop, false, false})
	}
	if s.sprint.Speed <= 1 {
		return list
	}
	for _, helps := range []bool{false, true} {
		too := map[bool]string{true: ", low ones too while high ones wait"}[helps]
		list = append(list, variant{"non-preemptive, sprint" + too, deflate.NonPreemptive, none, true, helps})
		for _, drop := range s.drops {
			list = append(list, variant{"DiAS " + percents(drop) + too, deflate.NonPreemptive, drop, true, helps})
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
func (s setting) measure(runs, jobs int, errors *errorsOf) error {
	fmt.Printf("\n**%s**\n\n| | %s wasted | joules |\n|---|%s---|---|\n", s.name, headings(len(s.rates)), dashes(len(s.rates)))
	var base []deflate.Played
	for _, v := range s.variants() {
		played, err := s.play(v, runs, jobs)
		if err != nil {
			return err
		}
		if base == nil {
			base = played
		}
		fmt.Printf("| %s | %s\n", v.name, against(base, played, s.busy > 0))
		if v.policy == deflate.NonPreemptive && !v.sprints {
			if err := s.compare(v, played, errors); err != nil {
				return err
			}
		}
	}
	return nil
}

// services are the classes' jobs, and the rates that bring the load without any
// drop.
func (s setting) services(drop []float64) (services []deflate.Phases, rates []float64, err error) {
	work := 0.0
	for k, service := range s.service {
		full, err := service(0)
		if err != nil {
			return nil, nil, err
		}
		mean, _ := full.Moments()
		work += s.rates[k] * mean
		one, err := service(drop[k])
		if err != nil {
			return nil, nil, err
		}
		services = append(services, one)
	}
	for _, rate := range s.rates {
		rates = append(rates, rate*s.load/work)
	}
	return services, rates, nil
}

func (s setting) play(v variant, runs, jobs int) ([]deflate.Played, error) {
	services, rates, err := s.services(v.drop)
	if err != nil {
		return nil, err
	}
	engine := deflate.Engine{Slots: 1, Policy: v.policy, BusyWatts: s.busy, IdleWatts: s.idle, Helps: v.helps}
	if v.sprints {
		engine.Sprints, engine.Account = make([]deflate.Sprint, len(rates)), s.account
		engine.Sprints[len(rates)-1] = s.sprint
	}
	var classes []deflate.Class
	for _, service := range services {
		classes = append(classes, deflate.Class{Service: list(service)})
	}
	var all []deflate.Played
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 11)) //nolint:gosec // what is drawn has to repeat
		drawn, err := deflate.Poisson(rates...).Draw(classes, jobs, random)
		if err != nil {
			return nil, err
		}
		played, err := engine.Replay(drawn, len(rates), 0.1)
		if err != nil {
			return nil, err
		}
		all = append(all, played)
	}
	return all, nil
}

// compare notes how far the model is from what was played.
func (s setting) compare(v variant, played []deflate.Played, errors *errorsOf) error {
	services, rates, err := s.services(v.drop)
	if err != nil {
		return err
	}
	var classes []deflate.Class
	for _, service := range services {
		classes = append(classes, deflate.Class{Service: list(service)})
	}
	q, err := deflate.NewQueue(deflate.Poisson(rates...), classes, 1)
	if err != nil {
		return err
	}
	for k := range classes {
		last, err := q.Quantile(k, 0.95)
		if err != nil {
			return err
		}
		for _, one := range played {
			errors.note(q.Mean(k), one.Classes[k].Mean, last, one.Classes[k].Tail)
		}
	}
	return nil
}

// against are a row's cells: responses against those of the base in the same
// run.
func against(base, played []deflate.Played, joules bool) string {
	text := ""
	for k := range base[0].Classes {
		mean := relative(base, played, func(p deflate.Played) float64 { return p.Classes[k].Mean })
		last := relative(base, played, func(p deflate.Played) float64 { return p.Classes[k].Tail })
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
	return text + fmt.Sprintf("%+.1f%% |", middle(relative(base, played, func(p deflate.Played) float64 { return p.Joules })))
}

// relative is the difference from the base in percent, run by run.
func relative(base, played []deflate.Played, of func(deflate.Played) float64) []float64 {
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

// errorsOf collects how far predictions are off, as a part of what was met.
type errorsOf struct{ mean, tail []float64 }

func (e *errorsOf) note(mean, metMean, last, metLast float64) {
	e.mean, e.tail = append(e.mean, math.Abs(mean-metMean)/metMean), append(e.tail, math.Abs(last-metLast)/metLast)
}

func (e *errorsOf) print(what string) {
	share := func(list []float64) string {
		sum := 0.0
		for _, one := range list {
			sum += one / float64(len(list))
		}
		sorted := slices.Sorted(slices.Values(list))
		return fmt.Sprintf("%.1f%% in the mean, %.1f%% in nine of ten, at most %.1f%%", 100*sum, 100*sorted[len(sorted)*9/10], 100*sorted[len(sorted)-1])
	}
	fmt.Printf("\n%s: mean response %s; 95th percentile %s; %d comparisons.\n", what, share(e.mean), share(e.tail), len(e.mean))
}
