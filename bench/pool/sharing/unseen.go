package sharing

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// gavelUnseen judges predictions for kinds of jobs that were never seen beside others:
// all pairs of a kind are hidden in turn.
func gavelUnseen(all map[string]*gavel) error {
	fmt.Println("\nGavel: all pairs of a kind hidden in turn\n\n| GPU | | pairs | error of the speed, mean | relative, median | pairs that lose, found | pairs that gain, refused |\n|---|---|---|---|---|---|---|")
	for _, gpu := range slices.Sorted(maps.Keys(all)) {
		for _, name := range []string{"no slowdown", "mean", "factors"} {
			if err := all[gpu].judgeUnseen(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gavel) judgeUnseen(name string) error {
	var off, relative []float64
	var counts [2][2]int // pairs that gain and that lose, and of them those that are said to lose
	for _, kind := range g.kinds {
		var seen, hidden []gavelPair
		var speeds []interference.Speed
		for _, one := range g.pairs() {
			switch {
			case one.speed[0] <= 0 || one.speed[1] <= 0: // they do not run together
			case slices.Contains(one.kinds[:], kind):
				hidden = append(hidden, one)
			default:
				seen = append(seen, one)
				speeds = append(speeds, interference.Speed{Own: one.kinds[0], Other: one.kinds[1], Speed: one.speed[0]}, interference.Speed{Own: one.kinds[1], Other: one.kinds[0], Speed: one.speed[1]})
			}
		}
		table, err := interference.Complete(speeds, familyOf)
		if err != nil {
			return err
		}
		k := &known{table: table}
		for _, one := range hidden {
			if one.kinds[0] == one.kinds[1] {
				continue // of neither is anything known
			}
			said := k.say(name, one.kinds, seen)
			lose, says := 0, 0
			if one.sum() < 1 {
				lose = 1
			}
			if said[0]+said[1] < 1 {
				says = 1
			}
			counts[lose][0]++
			counts[lose][1] += says
			for i, speed := range one.speed {
				off, relative = append(off, math.Abs(said[i]-speed)), append(relative, math.Abs(said[i]/speed-1))
			}
		}
	}
	slices.Sort(relative)
	share := func(of [2]int) float64 { return 100 * float64(of[1]) / float64(max(1, of[0])) }
	fmt.Printf("| %s | %s | %d | %.3f | %.0f%% | %.0f%% | %.0f%% |\n", g.gpu, name, len(off)/2, average(off), 100*relative[len(relative)/2], share(counts[1]), share(counts[0]))
	return nil
}
