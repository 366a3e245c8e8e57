package search_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// training is one trial at one rung.
type training struct{ trial, rung int }

// play runs a search to its end with workers that finish in the order that
// pick chooses, and returns the trainings by bracket: it knows from the rung
// of a creation when the next bracket begins.
func play(t rapid.TB, settings search.Settings, workers int, pick func(out []training) int) [][]training {
	t.Helper()
	method := start(t, settings)
	var brackets [][]training
	var running []training
	bracketOf, last := map[int]int{}, -1
	for {
		for len(running) < workers {
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil {
				t.Fatal(err)
			}
			a := actions[0]
			if a.Kind == search.Wait || a.Kind == search.Finish {
				break
			}
			if a.Kind == search.Create {
				if a.Rung != last {
					brackets, last = append(brackets, nil), a.Rung
				}
				bracketOf[a.Trial] = len(brackets) - 1
			}
			now := training{a.Trial, a.Rung}
			brackets[bracketOf[a.Trial]] = append(brackets[bracketOf[a.Trial]], now)
			running = append(running, now)
		}
		if len(running) == 0 {
			return brackets
		}
		i := pick(running)
		done := running[i]
		running = slices.Delete(running, i, i+1)
		value := trial.Float(float64(done.trial*7919%1009) / 1009) // every trial has its own, the same at each rung
		if _, err := method.Handle(search.Event{Kind: search.Measured, Trial: done.trial, Rung: done.rung, Values: []trial.Float{value}}); err != nil {
			t.Fatal(err)
		}
	}
}

// Hyperband's table for eta 3 and budgets from 1 to 81 (Li et al. 2018, table
// 1), played: n_i trials on r_i epochs in the brackets s = 4 to 0. That is 206
// trainings of 143 configurations; 1,902 epochs if each rung is trained from
// scratch, as the paper counts, and 1,581 if trials continue from checkpoints.
func TestHyperbandsTableIsPlayed(t *testing.T) {
	table := [][][2]int{
		{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}},
		{{34, 3}, {11, 9}, {3, 27}, {1, 81}},
		{{15, 9}, {5, 27}, {1, 81}},
		{{8, 27}, {2, 81}},
		{{5, 81}},
	}
	ladder := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 81}, Eta: 3}.Ladder()
	rapid.Check(t, func(rt *rapid.T) {
		settings := hyperband(5, 3, 143)
		settings.Rungs = ladder
		workers := rapid.IntRange(1, 64).Draw(rt, "workers")
		brackets := play(rt, settings, workers, func(out []training) int {
			return rapid.IntRange(0, len(out)-1).Draw(rt, "done")
		})
		trainings, scratch, continued := 0, 0, 0
		var got [][][2]int
		for _, bracket := range brackets {
			counts := make([]int, len(ladder))
			for _, one := range bracket {
				counts[one.rung]++
			}
			var row [][2]int
			for rung, n := range counts {
				if n == 0 {
					continue
				}
				epochs, below := ladder[rung].Budget.Epochs, 0
				if len(row) > 0 {
					below = ladder[rung-1].Budget.Epochs
				}
				row = append(row, [2]int{n, epochs})
				trainings += n
				scratch += n * epochs
				continued += n * (epochs - below)
			}
			got = append(got, row)
		}
		if fmt.Sprint(got) != fmt.Sprint(table) {
			rt.Fatalf("got  %v\nwant %v", got, table)
		}
		if trainings != 206 || scratch != 1902 || continued != 1581 {
			rt.Fatalf("%d trainings, %d units from scratch, %d continued", trainings, scratch, continued)
		}
	})
}

// The best of every bracket's rung go up, whatever came out first.
func TestOnlyTheBestOfABracketGoUp(t *testing.T) {
	value := func(number int) int { return number * 7919 % 1009 }
	rapid.Check(t, func(rt *rapid.T) {
		brackets := play(rt, hyperband(3, 3, 17), rapid.IntRange(1, 20).Draw(rt, "workers"), func(out []training) int {
			return rapid.IntRange(0, len(out)-1).Draw(rt, "done")
		})
		for _, bracket := range brackets {
			at := map[int][]int{}
			for _, one := range bracket {
				at[one.rung] = append(at[one.rung], value(one.trial))
			}
			for rung := 1; rung < 3; rung++ {
				below, here := at[rung-1], at[rung]
				slices.Sort(below)
				slices.Sort(here)
				if best := below[len(below)-min(len(below), len(here)):]; len(below) > 0 && !slices.Equal(best, here) {
					rt.Fatalf("%v at rung %d, of %v", here, rung, below)
				}
			}
		}
	})
}
