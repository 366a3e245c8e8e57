package sharing

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

const (
	// mostSiblings is how many trials of a study were seen at most, and cautious their
	// quantile that the next one is expected to use, as the server has it.
	mostSiblings = 4
	cautious     = 0.9
)

// siblings takes the trainings of each family, or of each network, for those of a
// study, with all others for what the server has seen before: some of the study are
// seen, and the next one is expected to use what nine tenths of them did, or what is
// foretold by its architecture (the upper end of the band).
func siblings(r *recording, runs int) {
	fmt.Println("\n| trials of a study | seen of it | expected by | memory: too little | spare | RMSLE | time: too little | spare | RMSLE |\n|---|---|---|---|---|---|---|---|---|")
	for _, by := range []struct {
		name string
		of   func(profile) string
	}{
		{"of a family", func(p profile) string { return p.Family }},
		{"of a network, batches differ", func(p profile) string { return p.Architecture }},
	} {
		studies := map[string][]int{}
		for i, one := range r.Profiles {
			studies[by.of(one)] = append(studies[by.of(one)], i)
		}
		var quantile, foretold [mostSiblings]nearness
		for run := range uint64(runs) { //nolint:gosec // a small number
			for _, name := range slices.Sorted(maps.Keys(studies)) {
				nextOf(r.Profiles, studies[name], run, func(seen int, usual, said utilization.Sample, was profile) {
					quantile[seen-1].add(usual, was.Sample)
					foretold[seen-1].add(said, was.Sample)
				})
			}
		}
		for at := range quantile {
			if quantile[at].trials > 0 {
				fmt.Printf("| %s | %d | nine tenths of those | %s |\n| | | its architecture | %s |\n", by.name, at+1, quantile[at], foretold[at])
			}
		}
	}
}

// nextOf shows a study's trainings one by one, in an order that is drawn, to a server
// that has seen all others, and tells what either way expects of each before.
func nextOf(all []profile, study []int, run uint64, tell func(seen int, usual, said utilization.Sample, was profile)) {
	var gpu gpushare.GPU
	see := func(i int) {
		one := all[i].Sample
		one.Family = all[i].Architecture
		gpu.See(gpushare.Profile{Training: fmt.Sprint(i), Sample: one, Seconds: 60, At: time.Unix(int64(i), 0)})
	}
	for i := range all {
		if !slices.Contains(study, i) {
			see(i)
		}
	}
	order := slices.Clone(study)
	rand.New(rand.NewPCG(run, 29)).Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] }) //nolint:gosec // what is drawn has to repeat
	var shares []float64
	var bytes []int64
	for seen, i := range order[:min(len(order), mostSiblings+1)] {
		if seen > 0 {
			gpu.Adopt(gpu.TrainingSet().Fit())
			if said, _, err := gpu.Expect(all[i].Features, all[i].Architecture); err == nil {
				at := int(math.Ceil(cautious*float64(seen))) - 1
				usual := utilization.Sample{Utilization: slices.Sorted(slices.Values(shares))[at], MemoryBytes: slices.Sorted(slices.Values(bytes))[at]}
				tell(seen, usual, utilization.Sample{Utilization: said.UtilizationHigh, MemoryBytes: said.MemoryHigh}, all[i])
			}
		}
		shares, bytes = append(shares, all[i].Utilization), append(bytes, all[i].MemoryBytes)
		see(i)
	}
}

// nearness is how near what was expected came to what trainings used: how often it was
// too little, how much was kept in vain on average (of the memory that was used, and of
// the time in parts of a GPU), and the root of the mean squared logarithm of the ratio.
type nearness struct {
	trials             int
	lacksBytes, lacks  int
	spareBytes, spare  float64
	ratioBytes, ratios float64
}

func (n *nearness) add(expected, was utilization.Sample) {
	n.trials++
	if was.MemoryBytes > expected.MemoryBytes {
		n.lacksBytes++
	}
	if was.Utilization > expected.Utilization {
		n.lacks++
	}
	ratio := float64(expected.MemoryBytes) / float64(was.MemoryBytes)
	n.spareBytes += max(0, ratio-1)
	n.spare += max(0, expected.Utilization-was.Utilization)
	n.ratioBytes += math.Pow(math.Log(ratio), 2)
	n.ratios += math.Pow(math.Log(expected.Utilization/was.Utilization), 2)
}

func (n nearness) String() string {
	all := float64(n.trials)
	return fmt.Sprintf("%.0f%% | %.0f%% | %.2f | %.0f%% | %.3f | %.2f", 100*float64(n.lacksBytes)/all, 100*n.spareBytes/all, math.Sqrt(n.ratioBytes/all),
		100*float64(n.lacks)/all, n.spare/all, math.Sqrt(n.ratios/all))
}
