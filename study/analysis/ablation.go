package analysis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

const ablationMethod = "ablation (Fawcett and Hoos, 2016) on a random forest as surrogate (Biedenkapp et al., AAAI 2017)"

// enoughTrials is how many trials a rung needs to be chosen for a path. A lower
// one has always more.
const enoughTrials = 50

// Ablation walks from one trial's configuration to another's, one parameter at
// a time, on the predictions of a surrogate.
func (q *Queries) Ablation(ctx context.Context, ref string, query protocol.AblationQuery) (protocol.Ablation, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Ablation{}, err
	}
	p := pathfinder{def: now.Study.Definition, ladder: now.Ladder, trials: trial.Searched(now.Trials), objective: query.Objective}
	p.recommended = q.leader(now)
	if err := p.check(now, query); err != nil {
		return protocol.Ablation{}, err
	}
	if err := q.gate.Enter(ctx); err != nil {
		return protocol.Ablation{}, err
	}
	defer q.gate.Leave()
	return p.find(query), nil
}

// pathfinder answers one question for a path, on a copy of the study.
type pathfinder struct {
	def         definition.Definition
	ladder      []budget.Rung
	trials      []trial.Trial
	recommended *int
	objective   int
	rung        int
}

func (p *pathfinder) check(now journal.View, query protocol.AblationQuery) error {
	if err := now.Check(query.Objective, query.Rung); err != nil {
		return err
	}
	for path, number := range map[string]*int{"from": query.From, "to": query.To} {
		if number != nil && (*number < 0 || *number >= len(p.trials)) {
			return problem.WithFields("the query is not valid", []problem.Field{{Path: path, Value: *number,
				Message: fmt.Sprintf("must be the number of a trial that is no repeat: the study has %d, from 0 on", len(p.trials))}})
		}
	}
	return nil
}

func (p *pathfinder) find(query protocol.AblationQuery) protocol.Ablation {
	p.rung = p.richest()
	if query.Rung != nil {
		p.rung = *query.Rung
	}
	objective := p.def.Objectives[p.objective]
	answer := protocol.Ablation{
		Study: p.def.Name, Method: ablationMethod, Metric: objective.Label(), Direction: objective.Direction,
		Rung: p.rung, Budget: p.ladder[p.rung].Budget, Steps: []protocol.AblationStep{}, Notes: []string{},
	}
	list := observations(p.trials, p.rung, p.objective, objective.Direction)
	forest := importance.Grow(p.def.Space, list)
	if forest == nil {
		answer.Notes = append(answer.Notes, fmt.Sprintf("rung %d has %d measured trials, and a surrogate needs %d", p.rung, len(list), importance.Least))
		return answer
	}
	answer.Surrogate = surrogateOf(forest)
	if forest.Explained < importance.Doubtful {
		answer.Notes = append(answer.Notes, unpredictable(forest, p.rung))
		return answer
	}
	p.fill(&answer, forest, query)
	answer.Notes = append(answer.Notes, caveats(forest, p.rung, objective.Direction)...)
	answer.Notes = append(answer.Notes, crowded(p.trials, p.rung, p.objective)...)
	return answer
}

// richest is the highest rung with enough trials, or else the one with most.
func (p *pathfinder) richest() int {
	counts := make([]int, len(p.ladder))
	for i := range p.trials {
		for rung := range counts {
			if _, measured := p.trials[i].ValueAt(rung, p.objective); measured {
				counts[rung]++
			}
		}
	}
	most := 0
	for rung, count := range counts {
		if count >= enoughTrials || count >= counts[most] {
			most = rung
		}
	}
	return most
}

// fill walks the path and writes it down.
func (p *pathfinder) fill(answer *protocol.Ablation, forest *importance.Forest, query protocol.AblationQuery) {
	from, to := p.median(), p.goal()
	if query.From != nil {
		from = *query.From
	}
	if query.To != nil {
		to = *query.To
	}
	start, goal := p.trials[from].Configuration, p.trials[to].Configuration
	path := forest.Ablate(start, goal)
	answer.Gain = path.Gain()
	answer.From = &protocol.AblationEnd{Trial: from, Params: start, AblationPoint: p.point(path.From, start)}
	answer.To = &protocol.AblationEnd{Trial: to, Params: goal, AblationPoint: p.point(forest.Predict(goal), goal)}
	before := answer.From.Predicted
	for _, step := range path.Steps {
		one := protocol.AblationStep{
			Switched: changes(step.Switched), Dependent: changes(step.Dependent),
			Before: before, After: p.point(step.Predicted, step.Configuration), Gain: step.Gain,
		}
		if share := step.Gain / answer.Gain; answer.Gain > 0 && !math.IsInf(share, 0) {
			one.Share = &share
		}
		before = one.After.Predicted
		answer.Steps = append(answer.Steps, one)
	}
	switch {
	case len(path.Steps) == 0:
		answer.Notes = append(answer.Notes, fmt.Sprintf("trials %d and %d have the same configuration: there is no path", from, to))
	case answer.Gain <= 0:
		answer.Notes = append(answer.Notes, fmt.Sprintf("the surrogate predicts no gain from trial %d to trial %d at rung %d", from, to, p.rung))
	case answer.Gain < max(answer.From.Spread, answer.To.Spread):
		answer.Notes = append(answer.Notes, "the whole gain is smaller than the surrogate's trees differ: it may be none")
	}
}

// leastDrawn is how many trials drawn without a model a start is chosen from.
const leastDrawn = 5

// median is the trial in the middle of those measured at the rung that were
// drawn without a model: a usual one to start from, while what a model proposes
// is near the goal. Where they are too few it is the middle one of all.
func (p *pathfinder) median() int {
	all := p.ordered()
	drawn := slices.DeleteFunc(slices.Clone(all), func(number int) bool {
		return !drawnFreely(p.trials[number])
	})
	if len(drawn) < leastDrawn {
		drawn = all
	}
	return drawn[len(drawn)/2]
}

// goal is the recommended trial, or for another objective than the first the
// one that was best in it at the rung.
func (p *pathfinder) goal() int {
	if p.objective == 0 && p.recommended != nil {
		return *p.recommended
	}
	return p.ordered()[0]
}

// ordered has the trials measured at the rung, the best first, NaN last.
func (p *pathfinder) ordered() []int {
	scores := make(map[int]float64)
	for i := range p.trials {
		if value, measured := p.trials[i].ValueAt(p.rung, p.objective); measured {
			scores[i] = p.def.Objectives[p.objective].Direction.Score(value)
		}
	}
	return slices.SortedFunc(maps.Keys(scores), func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), a-b) // cmp takes NaN for the smallest
	})
}

// point is a prediction in the objective's own direction, with the trial that
// measured the configuration at the rung, if one did.
func (p *pathfinder) point(prediction importance.Prediction, configuration space.Configuration) protocol.AblationPoint {
	value := p.def.Objectives[p.objective].Direction.Score(trial.Float(prediction.Score))
	point := protocol.AblationPoint{Predicted: value, Spread: prediction.Spread}
	for i := range p.trials {
		if value, measured := p.trials[i].ValueAt(p.rung, p.objective); measured && p.equal(p.trials[i].Configuration, configuration) {
			point.Measured = &protocol.MeasuredTrial{Trial: i, Value: value}
			break
		}
	}
	return point
}

// equal compares configurations of the space; most differ in the first parameter.
func (p *pathfinder) equal(a, b space.Configuration) bool {
	for i := range p.def.Space.Parameters {
		if name := p.def.Space.Parameters[i].Name; a[name] != b[name] {
			return false
		}
	}
	return true
}

func changes(list []importance.Change) []protocol.ParameterChange {
	var out []protocol.ParameterChange
	for _, change := range list {
		one := protocol.ParameterChange{Parameter: change.Parameter}
		if !change.From.IsZero() {
			one.From = &change.From
		}
		if !change.To.IsZero() {
			one.To = &change.To
		}
		out = append(out, one)
	}
	return out
}
