package study_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// trainTo trains the lease's one epoch to a value of its first objective, with what
// that took.
func (w *world) trainTo(lease *protocol.Lease, value, seconds, joules float64) {
	w.t.Helper()
	_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: trial.Float(seconds), Metrics: map[string]trial.Float{lease.Objectives[0]: trial.Float(value)},
		Energy: &trial.Energy{Joules: trial.Float(joules), Method: "estimate: test"},
	})
	if err == nil {
		_, err = w.finish(lease, protocol.BudgetReached)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) trajectory(name string) protocol.Trajectory {
	w.t.Helper()
	answer, err := w.service.Trajectory(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func TestTrajectoryOfAStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("trials: 27", "trials: 40", "method: bohb", "method: random")
		w.register("worker-1")
		if early := w.trajectory(created.Name); len(early.Points) != 0 || early.Measurements != 0 || len(early.Distributions) != 0 || len(early.Notes) != 1 {
			t.Errorf("before any trial: %+v", early)
		}
		for trained := 0; ; trained++ {
			lease := w.lease("worker-1")
			if lease == nil {
				break
			}
			time.Sleep(10 * time.Second)
			w.train(lease)
			if trained == 11 { // what comes later is added to what was read
				if half := w.trajectory(created.Name); half.Measurements != 12 {
					t.Errorf("after 12 runs there are %d measurements", half.Measurements)
				}
			}
		}
		answer, view := w.trajectory(created.Name), w.view(created.Name)
		last := answer.Points[len(answer.Points)-1]
		if best := view.Progress.Best; last.Trial != best.Number || last.Value != best.Value || last.Rung != best.Rung {
			t.Errorf("it ends with %+v, the study's best is %+v", last, best)
		}
		spent := answer.Spent
		if math.Abs(spent.DataPasses-view.Progress.DataPasses) > 1e-9 || spent.TrainingSeconds != view.Progress.TrialSeconds || spent.Joules != float64(view.Progress.Energy.Joules) ||
			math.Abs(spent.Seconds-view.Progress.ElapsedSeconds) > 1e-6 || answer.EnergyMethod != "estimate: test" {
			t.Errorf("spent %+v (%s), the study says %+v", spent, answer.EnergyMethod, view.Progress)
		}
		for i, point := range answer.Points[1:] {
			before := answer.Points[i]
			if point.DataPasses <= before.DataPasses || point.Seconds <= before.Seconds || point.Rung < before.Rung || point.Rung == before.Rung && point.Value <= before.Value {
				t.Errorf("%+v comes after %+v", point, before)
			}
		}
		measured := 0
		for _, one := range answer.Distributions {
			measured += one.Trials
			if len(one.Values) != one.Trials || one.NotFinite != 0 || !slices.IsSorted(one.Values) {
				t.Errorf("%+v", one)
			}
		}
		if measured != answer.Measurements || answer.Distributions[0].Trials != 40 {
			t.Errorf("%d values in the distributions, %d measurements", measured, answer.Measurements)
		}
		w.start() // read anew, it is the same
		if again := w.trajectory(created.Name); len(again.Points) != len(answer.Points) || again.Spent != answer.Spent || again.Measurements != answer.Measurements {
			t.Errorf("after a restart: %+v", again)
		}
	})(t)
}

func TestTrajectoryKnowsTheDirectionAndNoNumbers(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("direction: maximize", "direction: minimize", "trials: 27", "trials: 6", "method: bohb", "method: random",
			"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1")
		w.register("worker-1")
		values := []float64{math.NaN(), 5, 7, 3, math.Inf(1), 2}
		for _, value := range values {
			lease := w.mustLease("worker-1")
			w.trainTo(lease, value, 2, 3)
		}
		answer := w.trajectory(created.Name)
		var led []float64
		for _, point := range answer.Points {
			led = append(led, float64(point.Value))
		}
		if !slices.Equal(led, []float64{5, 3, 2}) || answer.Direction != "minimize" || answer.Measurements != 6 {
			t.Errorf("led by %v: %+v", led, answer)
		}
		if one := answer.Distributions[0]; one.Trials != 6 || one.NotFinite != 2 || !slices.Equal(one.Values, []float64{2, 3, 5, 7}) {
			t.Errorf("%+v", one)
		}
	})(t)
}
