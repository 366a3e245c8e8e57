package analysis

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// maxTrajectories bounds the trajectories that are kept at hand.
	maxTrajectories = 64
	// maxPoints bounds the points of a trajectory in an answer.
	maxPoints = 1000
	// maxQuantiles bounds the values of a distribution.
	maxQuantiles = 200
)

// Trajectory returns how the study came to its best value.
func (q *Queries) Trajectory(ctx context.Context, ref string) (protocol.Trajectory, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Trajectory{}, err
	}
	if err := q.gate.Enter(ctx); err != nil {
		return protocol.Trajectory{}, err
	}
	defer q.gate.Leave()
	path, known := q.trajectories[now.Study.ID]
	if !known {
		if len(q.trajectories) >= maxTrajectories {
			clear(q.trajectories)
		}
		path = &trajectory{trials: map[int]spending.Spending{}, seen: map[measuredAt]bool{}}
		q.trajectories[now.Study.ID] = path
	}
	if err := q.continued(ctx, path, now); err != nil {
		delete(q.trajectories, now.Study.ID) // it may have half of a page
		return protocol.Trajectory{}, err
	}
	return path.answer(now, q.now()), nil
}

// trajectory is what was read of a study's log so far.
type trajectory struct {
	sequence int64 // of the last event read
	trials   map[int]spending.Spending
	spent    spending.Spending // their sum
	seen     map[measuredAt]bool
	leader   *protocol.TrajectoryPoint
	points   []protocol.TrajectoryPoint
}

// measuredAt is a trial's result at a rung.
type measuredAt struct{ number, rung int }

// continued reads what was logged since.
func (q *Queries) continued(ctx context.Context, path *trajectory, now journal.View) error {
	for {
		events, err := q.store.Events(ctx, now.Study.ID, path.sequence, eventPage)
		if err != nil {
			return err
		}
		for _, event := range events {
			if err := path.take(event, now); err != nil {
				return err
			}
		}
		if len(events) < eventPage {
			return nil
		}
	}
}

// loggedTrial is what a trajectory needs of a trial in the log.
type loggedTrial struct {
	Number   int            `json:"number"`
	RepeatOf *int           `json:"repeat_of"`
	Budget   budget.Budget  `json:"budget"`
	Results  []trial.Result `json:"results"`
	Epochs   int            `json:"epochs"`
	Seconds  trial.Float    `json:"seconds"`
	Energy   trial.Energy   `json:"energy"`
}

// take reads one event: changes of a trial's state tell what it has spent and
// measured, and a result is told with the first change behind it.
func (p *trajectory) take(event journal.Event, now journal.View) error {
	p.sequence = event.Sequence
	if event.Kind != journal.TrialState || len(event.Data) == 0 {
		return nil
	}
	var t loggedTrial
	if err := json.Unmarshal(event.Data, &t); err != nil {
		return fmt.Errorf("event %d of study %s: %w", event.Sequence, now.Study.ID, err)
	}
	spent := spending.Of(now.Ladder, trial.Trial{Budget: t.Budget, Results: t.Results, Epochs: t.Epochs, Seconds: t.Seconds, Energy: t.Energy})
	p.spent = p.spent.Replacing(p.trials[t.Number], spent)
	p.trials[t.Number] = spent
	if t.RepeatOf != nil {
		return nil // it measures again what was measured
	}
	for _, result := range t.Results {
		at := measuredAt{t.Number, result.Rung}
		if p.seen[at] || len(result.Values) == 0 {
			continue
		}
		p.seen[at] = true
		point := protocol.TrajectoryPoint{
			Spent: spentAt(p.spent, now.Study, event.At), Trial: t.Number, Rung: result.Rung, Value: result.Values[0], Violation: result.Violation,
		}
		if !point.Value.IsNaN() && (p.leader == nil || leads(point, *p.leader, now.Study.Definition.Objectives[0].Direction)) {
			p.points = append(p.points, point)
			p.leader = &point
		}
	}
	return nil
}

// leads orders as the leaderboard does: what is feasible, of that the higher
// rung, of that the better value.
func leads(one, other protocol.TrajectoryPoint, direction definition.Direction) bool {
	switch {
	case (one.Violation > 0) != (other.Violation > 0):
		return other.Violation > 0
	case one.Rung != other.Rung:
		return one.Rung > other.Rung
	case one.Violation != other.Violation:
		return one.Violation < other.Violation
	default:
		return direction.Score(one.Value) > direction.Score(other.Value)
	}
}

func spentAt(spent spending.Spending, study journal.Study, at time.Time) protocol.Spent {
	return protocol.Spent{
		Seconds: max(0, at.Sub(study.Created).Seconds()), DataPasses: spent.Passes, TrainingSeconds: spent.Seconds, Joules: float64(spent.Energy.Joules),
	}
}

// answer is the trajectory for a client, up to the present or the study's end.
func (p *trajectory) answer(now journal.View, present time.Time) protocol.Trajectory {
	objective := now.Study.Definition.Objectives[0]
	if now.Study.Finished != nil {
		present = *now.Study.Finished
	}
	answer := protocol.Trajectory{
		Study: now.Study.Definition.Name, Metric: objective.Label(), Direction: objective.Direction,
		Points: thinned(p.points), Spent: spentAt(p.spent, now.Study, present), EnergyMethod: p.spent.Energy.Method,
		Measurements: len(p.seen), Distributions: distributions(now), Notes: []string{},
	}
	if len(now.Study.Definition.Objectives) > 1 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("the study has %d objectives: this is about the first, %s", len(now.Study.Definition.Objectives), objective.Label()))
	}
	if len(answer.Points) == 0 {
		answer.Notes = append(answer.Notes, "no trial has been measured with a number yet")
	}
	if len(answer.Points) < len(p.points) {
		answer.Notes = append(answer.Notes, fmt.Sprintf("%d of %d changes of the leader are shown, the first and the last among them", len(answer.Points), len(p.points)))
	}
	return answer
}

// thinned returns at most maxPoints of the points, evenly chosen, with both ends.
func thinned(points []protocol.TrajectoryPoint) []protocol.TrajectoryPoint {
	if len(points) <= maxPoints {
		return append([]protocol.TrajectoryPoint{}, points...)
	}
	list := make([]protocol.TrajectoryPoint, maxPoints)
	for i := range list {
		list[i] = points[i*(len(points)-1)/(maxPoints-1)]
	}
	return list
}

// distributions are those of the first objective at each rung.
func distributions(now journal.View) []protocol.RungDistribution {
	list := []protocol.RungDistribution{}
	trials := trial.Searched(now.Trials)
	for rung := range now.Ladder {
		one := protocol.RungDistribution{Rung: rung, Budget: now.Ladder[rung].Budget, Values: []float64{}}
		for i := range trials {
			value, measured := trials[i].ValueAt(rung, 0)
			if !measured {
				continue
			}
			one.Trials++
			if v := float64(value); math.IsNaN(v) || math.IsInf(v, 0) {
				one.NotFinite++
			} else {
				one.Values = append(one.Values, v)
			}
		}
		if one.Trials == 0 {
			continue
		}
		slices.Sort(one.Values)
		one.Values = quantiles(one.Values)
		list = append(list, one)
	}
	return list
}

// quantiles returns at most maxQuantiles of the sorted values, evenly spaced.
func quantiles(sorted []float64) []float64 {
	if len(sorted) <= maxQuantiles {
		return sorted
	}
	list := make([]float64, maxQuantiles)
	for i := range list {
		list[i] = sorted[i*(len(sorted)-1)/(maxQuantiles-1)]
	}
	return list
}

// CountStages adds one trial to the stages that it came to.
func CountStages(stages []protocol.StageProgress, t trial.Trial) {
	for _, result := range t.Results {
		stages[result.Rung].Measured++
	}
	began := t.Rung
	if len(t.Results) > 0 {
		began = t.Results[0].Rung
	}
	stages[began].Began++
	switch {
	case t.MeasuredAt(t.Rung):
	case t.State == trial.Queued || t.State.Held():
		stages[t.Rung].Active++
	case t.State.Terminal():
		stages[t.Rung].Ended++
	}
}
