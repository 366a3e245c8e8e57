package main

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// agreement prints for how many models the fastest runtime is the one of least energy.
func agreement(problems []*task) {
	fmt.Println("| problem | backends | models | the fastest is also the one of least energy | slowest / fastest, median |")
	fmt.Println("|---|---|---|---|---|")
	for _, t := range problems {
		same := 0.0
		var ratios []float64
		for _, rows := range t.measured {
			fast, economical, slow := 0, 0, 0
			for b, one := range rows {
				if one.seconds < rows[fast].seconds {
					fast = b
				}
				if one.joules < rows[economical].joules {
					economical = b
				}
				if one.seconds > rows[slow].seconds {
					slow = b
				}
			}
			same += indicator(fast == economical)
			ratios = append(ratios, rows[slow].seconds/rows[fast].seconds)
		}
		fmt.Printf("| %s | %s | %d | %.0f%% | %.2f |\n", t.spec.name, t.spec.says, len(t.models), 100*same/float64(len(t.models)), median(ratios))
	}
	fmt.Println()
}

// compare plays all methods on all problems. The spread is of the streams' seeds.
func compare(problems []*task, seeds int) error {
	fmt.Println("| method | regret %: requests 1 to 10 | the rest of the first pass | second pass | best chosen, second pass | limit broken | MAPE of latency: after 10 runs > at the end | of energy |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	byProblem := map[string][]float64{}
	for _, m := range methods() {
		bySeed := make([]score, seeds)
		for _, t := range problems {
			sum := 0.0
			for seed := range seeds {
				s, err := m.play(t, uint64(seed))
				if err != nil {
					return err
				}
				bySeed[seed].add(s, 1/float64(len(problems)))
				sum += (s.regret[1] + s.regret[2]) / 2 / float64(seeds)
			}
			byProblem[m.name] = append(byProblem[m.name], sum)
		}
		fmt.Printf("| %s |", m.name)
		for phase := range 3 {
			fmt.Printf(" %s |", spread(bySeed, func(s score) float64 { return s.regret[phase] }))
		}
		fmt.Printf(" %s | %s |", spread(bySeed, func(s score) float64 { return s.right }), spread(bySeed, func(s score) float64 { return s.broken }))
		for i := range 2 {
			if bySeed[0].predicts {
				fmt.Printf(" %s > %s |", spread(bySeed, func(s score) float64 { return s.early[i] }), spread(bySeed, func(s score) float64 { return s.late[i] }))
			} else {
				fmt.Print(" |")
			}
		}
		fmt.Println()
	}
	fmt.Print("\n| mean regret % after the first 10 requests |")
	for _, t := range problems {
		fmt.Printf(" %s |", t.spec.name)
	}
	fmt.Print("\n|---|")
	for range problems {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, m := range methods() {
		fmt.Printf("| %s |", m.name)
		for _, value := range byProblem[m.name] {
			fmt.Printf(" %.1f |", 100*value)
		}
		fmt.Println()
	}
	fmt.Println()
	return nil
}

func (s *score) add(other score, weight float64) {
	for p := range s.regret {
		s.regret[p] += weight * other.regret[p]
	}
	for i := range s.early {
		s.early[i] += weight * other.early[i]
		s.late[i] += weight * other.late[i]
	}
	s.right += weight * other.right
	s.broken += weight * other.broken
	s.predicts = other.predicts
}

// upgrade is a drift: what was learned from all runs of the older runtimes of the VIM4
// meets the newer ones, and learns online, run by run.
func upgrade(results []result, seeds int) error {
	older, err := newTask(specs()[0], results)
	if err != nil {
		return err
	}
	newer, err := newTask(specs()[1], results)
	if err != nil {
		return err
	}
	newer.profiles = older.profiles // the same backends, with new versions on them
	fmt.Println("| MAPE of latency on the new runtimes: before > after 30 runs > after 140 runs | of energy |")
	fmt.Println("|---|---|")
	stages := make([][3][2]float64, seeds)
	for seed := range seeds {
		if stages[seed], err = upgraded(older, newer, uint64(seed)); err != nil {
			return err
		}
	}
	for i := range 2 {
		fmt.Print("|")
		for stage := range 3 {
			if stage > 0 {
				fmt.Print(" >")
			}
			fmt.Print(" ", spread(stages, func(s [3][2]float64) float64 { return s[stage][i] }))
		}
		fmt.Print(" ")
	}
	fmt.Println("|")
	return nil
}

func upgraded(older, newer *task, seed uint64) (stages [3][2]float64, err error) {
	chooser, err := dopeml.New(older.profiles, dopeml.Settings{})
	if err != nil {
		return stages, err
	}
	requests, heldOut := newer.stream(seed)
	var before []dopeml.Run
	for _, r := range requests[:len(requests)/2] {
		for b := range older.profiles {
			before = append(before, older.run(r.model, b))
		}
	}
	if err := chooser.Learn(before...); err != nil {
		return stages, err
	}
	stages[0] = newer.percent(chooser, heldOut)
	for i := range 140 {
		if err := chooser.Learn(newer.run(requests[i].model, i%len(newer.profiles))); err != nil {
			return stages, err
		}
		if i == 29 {
			stages[1] = newer.percent(chooser, heldOut)
		}
	}
	stages[2] = newer.percent(chooser, heldOut)
	return stages, nil
}

// spread is a mean in percent and the standard deviation over the seeds.
func spread[T any](list []T, value func(T) float64) string {
	mean, variance := 0.0, 0.0
	for _, one := range list {
		mean += value(one) / float64(len(list))
	}
	for _, one := range list {
		variance += (value(one) - mean) * (value(one) - mean) / max(float64(len(list)-1), 1)
	}
	return fmt.Sprintf("%.1f ± %.1f", 100*mean, 100*math.Sqrt(variance))
}

func median(list []float64) float64 {
	sorted := append([]float64{}, list...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted[len(sorted)/2]
}
