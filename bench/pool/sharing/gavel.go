package sharing

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// gavel is what jobs on one type of GPU did alone and in pairs (Narayanan and
// others, OSDI 2020), each with one GPU.
type gavel struct {
	gpu   string
	kinds []string           // that run there alone, in order
	alone map[string]float64 // steps a second
	// speed is of a kind beside another, relative to alone; 0 where the two do not
	// run together.
	speed map[[2]string]float64
}

// readPairs reads the measured throughputs, by type of GPU.
func readPairs(data string) (map[string]*gavel, error) {
	document, err := os.ReadFile(filepath.Join(data, "gavel", "simulation_throughputs.json")) //nolint:gosec // the user's folder
	if err != nil {
		return nil, fmt.Errorf("the throughputs of Gavel are not there (-data, TANDEM_DATA): %w", err)
	}
	var all map[string]map[string]map[string]json.RawMessage
	if err := json.Unmarshal(document, &all); err != nil {
		return nil, err
	}
	single := regexp.MustCompile(`^\('(.*)', 1\)$`)
	list := map[string]*gavel{}
	for gpu, jobs := range all {
		if strings.Contains(gpu, "_") { // GPUs of one job far apart: not of one GPU
			continue
		}
		g := &gavel{gpu: gpu, alone: map[string]float64{}, speed: map[[2]string]float64{}}
		for key, beside := range jobs {
			name := single.FindStringSubmatch(key)
			var steps float64
			if name == nil || json.Unmarshal(beside["null"], &steps) != nil || steps <= 0 {
				continue
			}
			g.alone[name[1]] = steps
			for other, raw := range beside {
				partner := single.FindStringSubmatch(other)
				var both [2]float64
				if partner != nil && json.Unmarshal(raw, &both) == nil {
					g.speed[[2]string{name[1], partner[1]}] = min(1, both[0]/steps)
				}
			}
		}
		g.kinds = slices.Sorted(maps.Keys(g.alone))
		list[gpu] = g
	}
	return list, nil
}

// gavelPair is two kinds and how fast each is beside the other.
type gavelPair struct {
	kinds [2]string
	speed [2]float64
}

// sum is the work that is done of both, of what one alone does: below 1, sharing
// loses.
func (p gavelPair) sum() float64 { return p.speed[0] + p.speed[1] }

// pairs are those that were measured, each once.
func (g *gavel) pairs() (list []gavelPair) {
	for i, a := range g.kinds {
		for _, b := range g.kinds[i:] {
			first, has := g.speed[[2]string{a, b}]
			second, also := g.speed[[2]string{b, a}]
			if has && also {
				list = append(list, gavelPair{[2]string{a, b}, [2]float64{first, second}})
			}
		}
	}
	return list
}

// shuffled are the pairs in an order that a seed draws.
func (g *gavel) shuffled(seed uint64) []gavelPair {
	list := g.pairs()
	rand.New(rand.NewPCG(seed, 21)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) //nolint:gosec // what is drawn has to repeat
	return list
}

// known is what is learned from pairs that were seen.
type known struct {
	table *interference.Table
	// share is how much of the GPU a kind keeps busy, as far as the pairs say.
	share map[string]float64
	// impossible are the pairs that were seen not to run together.
	impossible map[[2]string]bool
}

// familyOf is the model of a kind, without its batch.
func familyOf(kind string) string {
	model, _, _ := strings.Cut(kind, " (")
	return model
}

func (g *gavel) learn(seen []gavelPair, seed uint64) (*known, error) {
	k := &known{impossible: map[[2]string]bool{}, share: g.shares(seen)}
	var speeds []interference.Speed
	for _, one := range seen {
		if one.speed[0] <= 0 || one.speed[1] <= 0 {
			k.impossible[one.kinds], k.impossible[[2]string{one.kinds[1], one.kinds[0]}] = true, true
			continue
		}
		speeds = append(speeds, interference.Speed{Own: one.kinds[0], Other: one.kinds[1], Speed: one.speed[0]},
			interference.Speed{Own: one.kinds[1], Other: one.kinds[0], Speed: one.speed[1]})
	}
	var err error
	k.table, err = interference.Complete(speeds, familyOf)
	return k, err
}

// shares fits how much of the GPU each kind keeps busy, so that two which
// together want more of it than there is get it in proportion. Gavel did not
// record the utilization: this is what its pairs say of it.
func (g *gavel) shares(seen []gavelPair) map[string]float64 {
	share := map[string]float64{}
	for _, kind := range g.kinds {
		share[kind] = 0.6
	}
	for range 20 {
		for _, kind := range g.kinds {
			best, least := share[kind], math.Inf(1)
			for candidate := 0.05; candidate <= 1.0001; candidate += 0.05 {
				if off := shareError(kind, candidate, share, seen); off < least-1e-12 {
					best, least = min(1, candidate), off
				}
			}
			share[kind] = best
		}
	}
	return share
}

func shareError(kind string, candidate float64, share map[string]float64, seen []gavelPair) (off float64) {
	of := func(other string) float64 {
		if other == kind {
			return candidate
		}
		return share[other]
	}
	for _, one := range seen {
		if one.kinds[0] != kind && one.kinds[1] != kind || one.sum() <= 0 {
			continue
		}
		said := 2 / max(1, of(one.kinds[0])+of(one.kinds[1]))
		off += (said - one.sum()) * (said - one.sum())
	}
	return off
}

// gavelInterference judges predictions of slowdowns on pairs that were hidden.
func gavelInterference(data string, runs int) error {
	all, err := readPairs(data)
	if err != nil {
		return err
	}
	fmt.Println("Gavel: a fifth of the measured pairs hidden in turn; what runs together at all\n\n| GPU | | pairs | error of the speed, mean | pairs that lose, found | pairs that gain, refused |\n|---|---|---|---|---|---|")
	for _, gpu := range slices.Sorted(maps.Keys(all)) {
		for _, name := range []string{"no slowdown", "half each", "mean", "sum of utilizations, fitted", "factors"} {
			if err := all[gpu].judge(name, runs); err != nil {
				return err
			}
		}
	}
	if err := gavelUnseen(all); err != nil {
		return err
	}
	return gavelFew(all, runs)
}

func (g *gavel) judge(name string, runs int) error {
	var columns [3][]float64
	pairs := 0
	for run := range runs {
		list := g.shuffled(uint64(run)) //nolint:gosec // a small number
		var off []float64
		bad, found, good, lost := 0, 0, 0, 0
		for fold := range 5 {
			var seen, hidden []gavelPair
			for i, one := range list {
				if i%5 == fold {
					hidden = append(hidden, one)
				} else {
					seen = append(seen, one)
				}
			}
			k, err := g.learn(seen, uint64(run)) //nolint:gosec // a small number
			if err != nil {
				return err
			}
			for _, one := range hidden {
				if one.speed[0] <= 0 || one.speed[1] <= 0 {
					continue
				}
				said := k.say(name, one.kinds, seen)
				off = append(off, math.Abs(said[0]-one.speed[0]), math.Abs(said[1]-one.speed[1]))
				refuse := said[0]+said[1] < 1
				if one.sum() < 1 {
					bad++
					if refuse {
						found++
					}
				} else {
					good++
					if refuse {
						lost++
					}
				}
			}
		}
		pairs = bad + good
		for i, value := range []float64{average(off), 100 * float64(found) / float64(max(1, bad)), 100 * float64(lost) / float64(max(1, good))} {
			columns[i] = append(columns[i], value)
		}
	}
	fmt.Printf("| %s | %s | %s | %s | %s%% | %s%% |\n", g.gpu, name, strconv.Itoa(pairs), spread(columns[0], 3), spread(columns[1], 0), spread(columns[2], 0))
	return nil
}

// say predicts the speeds of a pair.
func (k *known) say(name string, kinds [2]string, seen []gavelPair) [2]float64 {
	switch name {
	case "half each":
		return [2]float64{0.5, 0.5}
	case "mean":
		sum, n := 0.0, 0.0
		for _, one := range seen {
			if one.speed[0] > 0 && one.speed[1] > 0 {
				sum, n = sum+one.sum(), n+2
			}
		}
		return [2]float64{sum / n, sum / n}
	case "sum of utilizations, fitted":
		s := 1 / max(1, k.share[kinds[0]]+k.share[kinds[1]])
		return [2]float64{s, s}
	case "factors":
		a, first := k.table.Speed(kinds[0], kinds[1])
		b, second := k.table.Speed(kinds[1], kinds[0])
		if first && second {
			return [2]float64{min(1, a), min(1, b)}
		}
	}
	return [2]float64{1, 1}
}
