package sharing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
)

// crowding is how much more work arrives than slots could do: packing has to help.
const crowding = 1.15

// bounds are how many jobs that came later may start before one that waits.
var bounds = []struct {
	name       string
	mostPassed int
}{{"any number, as in the paper", -1}, {"as many as all GPUs hold (the default)", 0}, {"as many as there are GPUs", cluster}, {"one", 1}}

// passed replays jobs that come one after the other, and says what it costs that
// nobody is passed by more than some.
func (m mix) passed(jobs, runs int) error {
	fmt.Printf("\n**%s**: %d jobs that come one after the other, %.0f%% of what %d GPUs do without sharing; %d runs\n\n", m.name, jobs, 100*crowding, cluster, runs)
	fmt.Println("| others may pass one that waits | utilization | completion, min: mean | 95% | the longest wait, min | mean wait of the quarter that needs most of a GPU |\n|---|---|---|---|---|---|")
	for _, bound := range bounds {
		var columns [5][]float64
		for run := range runs {
			s, err := m.scene(jobs, uint64(run)) //nolint:gosec // a small number
			if err != nil {
				return err
			}
			s.spreadOut(uint64(run)) //nolint:gosec // a small number
			o, err := s.play(sharingWay{policies.Packed(packed.Settings{MostPassed: bound.mostPassed}), 3})
			if err != nil {
				return err
			}
			for i, value := range []float64{100 * o.Utilization, o.Completion.Mean / 60, o.Completion.P95 / 60, o.Waiting.Most / 60, waitOfLargest(o) / 60} {
				columns[i] = append(columns[i], value)
			}
		}
		fmt.Printf("| %s | %s%% | %s | %s | %s | %s |\n", bound.name, spread(columns[0], 1), spread(columns[1], 0), spread(columns[2], 0), spread(columns[3], 0), spread(columns[4], 0))
	}
	return nil
}

// spreadOut has the jobs come at random times, each a little after the one before.
func (s *scene) spreadOut(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 41)) //nolint:gosec // what is drawn has to repeat
	work := 0.0
	for i := range s.jobs {
		took, _ := s.jobs[i].Alone(s.gpu)
		work += took.Seconds
	}
	between, at := work/float64(len(s.jobs))/(crowding*cluster), 0.0
	for i := range s.jobs {
		s.jobs[i].Arrives = at
		at += between * random.ExpFloat64()
	}
}

// waitOfLargest is the mean wait of the quarter of the jobs that need the most.
func waitOfLargest(o replay.Outcome) float64 {
	sum, count, least := 0.0, 0.0, largest(o)
	for _, one := range o.Ended {
		if one.Job.Utilization >= least {
			sum, count = sum+one.Waited, count+1
		}
	}
	return sum / math.Max(1, count)
}

// largest is what they keep busy at least.
func largest(o replay.Outcome) float64 {
	var list []float64
	for _, one := range o.Ended {
		list = append(list, one.Job.Utilization)
	}
	slices.Sort(list)
	return list[3*len(list)/4]
}
