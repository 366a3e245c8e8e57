package sharing

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/gpushare"
)

// gavelFew has the server itself see some of the pairs, and tell all others: how near it
// is, and which it lets share a GPU.
func gavelFew(all map[string]*gavel, runs int) error {
	fmt.Printf("\nGavel: few pairs seen, all others told; %d drawn\n\n| GPU | pairs seen | told by | relative error, median | within 15%% | pairs that lose, refused | pairs that gain, refused |\n|---|---|---|---|---|---|---|\n", runs)
	for _, gpu := range slices.Sorted(maps.Keys(all)) {
		for _, percent := range []int{0, 2, 5, 10, 20} {
			for _, harmless := range []bool{true, false} {
				all[gpu].few(percent, harmless, runs)
			}
		}
	}
	return nil
}

// few prints a line: of pairs that were not seen, told as the server does, or as if none
// of them did any harm.
func (g *gavel) few(percent int, harmless bool, runs int) {
	var columns [4][]float64
	count := 0
	for run := range runs {
		list := slices.DeleteFunc(g.shuffled(uint64(run)), func(one gavelPair) bool { return one.speed[0] <= 0 || one.speed[1] <= 0 }) //nolint:gosec // a small number
		count = (len(list)*percent + 50) / 100
		server := seeing(list[:count])
		var relative []float64
		var counts [2][2]float64 // of pairs that gain and that lose: all, and those that are refused
		for _, one := range list[count:] {
			said := gpushare.Speeds{Own: 1, Other: 1}
			if !harmless {
				said = server.Colocated(trainingOf(one.kinds[0]), trainingOf(one.kinds[1]))
			}
			lose := 0
			if one.sum() < 1 {
				lose = 1
			}
			counts[lose][0]++
			if said.Loses() {
				counts[lose][1]++
			}
			relative = append(relative, 100*math.Abs(said.Own/one.speed[0]-1), 100*math.Abs(said.Other/one.speed[1]-1))
		}
		slices.Sort(relative)
		near, _ := slices.BinarySearch(relative, 15.0)
		for i, value := range []float64{relative[len(relative)/2], 100 * float64(near) / float64(len(relative)), 100 * counts[1][1] / counts[1][0], 100 * counts[0][1] / counts[0][0]} {
			columns[i] = append(columns[i], value)
		}
	}
	by := "the server"
	if harmless {
		by = "no slowdown"
	}
	fmt.Printf("| %s | %d (%d%%) | %s | %s%% | %s%% | %s%% | %s%% |\n", g.gpu, count, percent, by, spread(columns[0], 0), spread(columns[1], 0), spread(columns[2], 0), spread(columns[3], 0))
}

// trainingOf is a kind of Gavel as the server names it. What it uses was not recorded.
func trainingOf(kind string) gpushare.Training {
	model, batch, _ := strings.Cut(kind, " (")
	return gpushare.Training{Kind: "gavel/" + model + "/" + batch}
}

// seeing is a server that has seen the pairs on a type of GPU.
func seeing(pairs []gavelPair) *gpushare.GPU {
	g := &gpushare.GPU{}
	at := time.Unix(0, 0)
	for _, one := range pairs {
		for k := range one.kinds {
			own, other := trainingOf(one.kinds[k]), trainingOf(one.kinds[1-k])
			for range 3 {
				g.Ran(own, "", 1, at)
				g.Ran(own, other.Kind, 1/one.speed[k], at)
			}
		}
	}
	if g.Due() {
		g.Adopt(g.TrainingSet().Fit())
	}
	return g
}
