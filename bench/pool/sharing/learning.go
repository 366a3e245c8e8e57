package sharing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// learning shows recorded profiles to what a server keeps of a GPU, one by one in
// an order that is drawn, and has each predicted before it is shown: what a server
// would have told, by how many trainings it had seen.
func learning(path string, runs int) error {
	r, err := readRecording(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d profiles, shown one by one, %d orders; utilization is the %s\n\n", path, len(r.Profiles), runs, r.Resource)
	fmt.Println("| trainings seen | told | RMSLE of the utilization, % | of what the mean tells | RMSLE of the memory, MB | half are off by at most | within the band |\n|---|---|---|---|---|---|---|")
	until := []int{12, 24, 40, 60, len(r.Profiles)}
	columns := make([][6][]float64, len(until)-1)
	for run := range runs {
		for at, score := range shown(r.Profiles, uint64(run), until) { //nolint:gosec // a small number
			for i, value := range score.columns() {
				columns[at][i] = append(columns[at][i], value)
			}
		}
	}
	for at, one := range columns {
		fmt.Printf("| %d to %d | %s%% | %s | %s | %s | %s | %s%% |\n", until[at], until[at+1]-1, spread(one[0], 0), spread(one[1], 3), spread(one[2], 3), spread(one[3], 3), spread(one[4], 3), spread(one[5], 0))
	}
	siblings(r, runs)
	return nil
}

// toldScore is how well trainings were predicted before they were shown.
type toldScore struct {
	all, told, covered int
	said, was, mean    []float64 // utilizations in percent
	saidMB, wasMB, off []float64
}

// shown has the scores of each span of how many were seen before.
func shown(profiles []profile, seed uint64, until []int) []toldScore {
	scores := make([]toldScore, len(until)-1)
	var gpu gpushare.GPU
	sum := 0.0
	for n, i := range rand.New(rand.NewPCG(seed, 23)).Perm(len(profiles)) { //nolint:gosec // what is drawn has to repeat
		one := profiles[i].Sample
		one.Family = profiles[i].Architecture
		if at := slices.IndexFunc(until[1:], func(end int) bool { return n < end }); n >= until[0] && at >= 0 {
			scores[at].add(&gpu, one, sum/float64(n))
		}
		sum += math.Log1p(100 * one.Utilization)
		gpu.See(gpushare.Profile{Training: fmt.Sprint(i), Sample: one, Seconds: 60, At: time.Unix(int64(n), 0)})
		if gpu.Due() {
			gpu.Adopt(gpu.TrainingSet().Fit())
		}
	}
	return scores
}

func (s *toldScore) add(gpu *gpushare.GPU, one utilization.Sample, mean float64) {
	s.all++
	said, _, err := gpu.Expect(one.Features, one.Family)
	if err != nil {
		return
	}
	s.told++
	if said.UtilizationLow <= one.Utilization && one.Utilization <= said.UtilizationHigh {
		s.covered++
	}
	s.said, s.was, s.mean = append(s.said, 100*said.Utilization), append(s.was, 100*one.Utilization), append(s.mean, math.Expm1(mean))
	s.saidMB, s.wasMB = append(s.saidMB, float64(said.MemoryBytes)/1e6), append(s.wasMB, float64(one.MemoryBytes)/1e6)
	s.off = append(s.off, math.Abs(said.Utilization-one.Utilization))
}

func (s *toldScore) columns() [6]float64 {
	if s.told == 0 {
		return [6]float64{0, math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(s.off)
	return [6]float64{
		100 * float64(s.told) / float64(s.all), utilization.RMSLE(s.said, s.was), utilization.RMSLE(s.mean, s.was), utilization.RMSLE(s.saidMB, s.wasMB),
		s.off[len(s.off)/2], 100 * float64(s.covered) / float64(s.told),
	}
}
