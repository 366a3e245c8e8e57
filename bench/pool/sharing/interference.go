package sharing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/bench/pool/colocated"
)

// interferences judges predictions of pairs that were hidden: a fifth of the
// pairs in turn, and all pairs of a workload in turn.
func interferences(path, data string, runs int) error {
	if err := gavelInterference(data, runs); err != nil {
		return err
	}
	r, err := readRecording(path)
	if err != nil {
		return err
	}
	pairs, seconds, err := r.pairs()
	if err != nil {
		return err
	}
	if len(pairs) < 10 {
		return fmt.Errorf("%s has %d pairs: too few to hide some", path, len(pairs))
	}
	var repeated []float64
	for _, list := range seconds {
		if len(list) > 1 {
			repeated = append(repeated, 100*math.Abs(list[1]/list[0]-1))
		}
	}
	bad := 0
	for _, one := range pairs {
		truth, err := colocated.OutcomeOf(one.Pair)
		if err != nil {
			return fmt.Errorf("%v: %w", one.names, err)
		}
		if (colocated.Limits{}).Refuses(truth) {
			bad++
		}
	}
	fmt.Printf("\n%s: %d pairs of %d workloads, of which %d lose; utilization is the %s; the same run alone again differs by %s%%\n\n", path, len(pairs), len(seconds), bad, r.Resource, spread(repeated, 1))
	fmt.Println("| | hidden | error of the end: median, 90% | error of the slowdown | error of the utilization over time | bad pairs found | good pairs refused |\n|---|---|---|---|---|---|---|")
	for _, by := range []string{"pairs", "workloads"} {
		for _, one := range predictors() {
			times := runs
			if !one.drawn {
				times = 1
			}
			if err := one.judge(pairs, by, times); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairPredictor is a way to predict pairs; what is drawn differs with the seed.
type pairPredictor struct {
	name  string
	drawn bool
	train func(pairs []colocated.Pair, seed uint64) (colocated.Predictor, error)
}

func predictors() []pairPredictor {
	type list = []colocated.Pair
	return []pairPredictor{
		{"no slowdown", false, func(list, uint64) (colocated.Predictor, error) { return colocated.NoSlowdown{}, nil }},
		{"sum of utilizations", false, func(list, uint64) (colocated.Predictor, error) { return colocated.Sharing{}, nil }},
		{"linear", true, func(pairs list, _ uint64) (colocated.Predictor, error) { return colocated.TrainLine(pairs) }},
		{"GRU encoder and decoder", true, func(pairs list, seed uint64) (colocated.Predictor, error) {
			return colocated.Train(pairs, colocated.Settings{Seed: seed})
		}},
	}
}

// judge hides parts in turn, with other seeds, and prints a line.
func (p pairPredictor) judge(pairs []recordedPair, by string, runs int) error {
	var columns [6][]float64
	for run := range runs {
		seed := uint64(run) //nolint:gosec // a small number
		var s pairScore
		for _, part := range hiddenPairs(pairs, by, seed) {
			var rest []colocated.Pair
			for i, one := range pairs {
				if !slices.Contains(part, i) {
					rest = append(rest, one.Pair)
				}
			}
			predictor, err := p.train(rest, seed)
			if err != nil {
				return err
			}
			for _, i := range part {
				if err := s.add(predictor, pairs[i].Pair); err != nil {
					return fmt.Errorf("%v: %w", pairs[i].names, err)
				}
			}
		}
		for i, value := range s.columns() {
			columns[i] = append(columns[i], value)
		}
	}
	fmt.Printf("| %s | %s | %s%%, %s%% | %s | %s | %s%% | %s%% |\n", p.name, by, spread(columns[0], 1), spread(columns[1], 1), spread(columns[2], 3), spread(columns[3], 3), spread(columns[4], 0), spread(columns[5], 0))
	return nil
}

// pairScore is how well pairs were predicted.
type pairScore struct {
	ends, slowdowns, busy  []float64
	bad, found, good, lost int
}

func (s *pairScore) add(predictor colocated.Predictor, pair colocated.Pair) error {
	said, err := predictor.Predict(pair.Alone[0], pair.Alone[1])
	if err != nil {
		return err
	}
	truth, err := colocated.OutcomeOf(pair)
	if err != nil {
		return err
	}
	for k := range said.Jobs {
		is, was := said.Jobs[k], truth.Jobs[k]
		s.ends = append(s.ends, 100*math.Abs(is.Seconds/was.Seconds-1))
		s.slowdowns = append(s.slowdowns, math.Abs(is.Slowdown()-was.Slowdown()))
		for i := range min(len(is.Utilization), len(was.Utilization)) {
			s.busy = append(s.busy, math.Abs(is.Utilization[i]-was.Utilization[i]))
		}
	}
	refuse := (colocated.Limits{}).Refuses(said)
	if (colocated.Limits{}).Refuses(truth) {
		s.bad++
		if refuse {
			s.found++
		}
	} else {
		s.good++
		if refuse {
			s.lost++
		}
	}
	return nil
}

func (s *pairScore) columns() [6]float64 {
	slices.Sort(s.ends)
	return [6]float64{
		s.ends[len(s.ends)/2], s.ends[len(s.ends)*9/10], average(s.slowdowns), average(s.busy),
		100 * float64(s.found) / float64(max(1, s.bad)), 100 * float64(s.lost) / float64(max(1, s.good)),
	}
}

func average(values []float64) (mean float64) {
	for _, one := range values {
		mean += one / float64(len(values))
	}
	return mean
}

// hiddenPairs are the places of pairs that are predicted together. Of a workload
// that is hidden no pair is learned from, so that a pair of two is predicted
// twice, once for each.
func hiddenPairs(pairs []recordedPair, by string, seed uint64) (parts [][]int) {
	if by == "pairs" {
		parts = make([][]int, 5)
		for at, i := range rand.New(rand.NewPCG(seed, 3)).Perm(len(pairs)) { //nolint:gosec // what is drawn has to repeat
			parts[at%len(parts)] = append(parts[at%len(parts)], i)
		}
		return parts
	}
	return partsByWorkload(pairs)
}

func partsByWorkload(pairs []recordedPair) (parts [][]int) {
	workloads := map[string]bool{}
	for _, one := range pairs {
		for _, name := range one.names {
			if workloads[name] {
				continue
			}
			workloads[name] = true
			var part []int
			for i, other := range pairs {
				if slices.Contains(other.names[:], name) {
					part = append(part, i)
				}
			}
			parts = append(parts, part)
		}
	}
	return parts
}
