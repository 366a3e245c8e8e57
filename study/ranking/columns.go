package ranking

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// How many trials charts are drawn from: as many lines as an eye can follow,
// and as many as a browser draws while one waits.
const (
	usualColumns = 2000
	maxColumns   = 10000
	// mostQuantiles bounds the points of a distribution.
	mostQuantiles = 500
	// enoughToSee is how many trials a chart needs to be worth opening.
	enoughToSee = 5
)

// Columns returns the study's measurements at one rung.
func (q *Queries) Columns(ctx context.Context, ref string, query protocol.ColumnsQuery) (protocol.Columns, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.Columns{}, err
	}
	if err := now.Check(query.Objective, query.Rung); err != nil {
		return protocol.Columns{}, err
	}
	return columnsOf(now, query), nil
}

// measurement is a trial with what it measured at a rung.
type measurement struct {
	trial  *trial.Trial
	result *trial.Result
	rank   int
}

func columnsOf(now journal.View, query protocol.ColumnsQuery) protocol.Columns {
	def, trials := now.Study.Definition, trial.Searched(now.Trials)
	answer := protocol.Columns{Study: def.Name, Sequence: now.Sequence, Measured: make([]int, len(now.Ladder))}
	for i := range trials {
		for _, result := range trials[i].Results {
			answer.Measured[result.Rung]++
		}
	}
	for rung, measured := range answer.Measured {
		if measured > 0 && measured >= min(enoughToSee, answer.Measured[answer.Rung]) {
			answer.Rung = rung
		}
	}
	if query.Rung != nil {
		answer.Rung = *query.Rung
	}
	answer.Budget = now.Ladder[answer.Rung].Budget
	list := rankedAt(trials, answer.Rung, query.Objective, def.Objectives[query.Objective].Direction)
	answer.Distribution = distributionOf(list, query.Objective)
	limit := min(cmp.Or(max(query.Limit, 0), usualColumns), maxColumns)
	list, answer.Sample = sampled(list, limit, func(m measurement) int { return m.trial.Number })
	fill(&answer, list, def)
	return answer
}

// rankedAt are the measurements at the rung, the best first: what keeps to the
// constraints before what does not.
func rankedAt(trials []trial.Trial, rung, objective int, direction definition.Direction) []measurement {
	var list []measurement
	for i := range trials {
		for at := range trials[i].Results {
			if result := &trials[i].Results[at]; result.Rung == rung && objective < len(result.Values) {
				list = append(list, measurement{trial: &trials[i], result: result})
			}
		}
	}
	slices.SortFunc(list, func(a, b measurement) int {
		return cmp.Or(
			cmp.Compare(a.result.Violation, b.result.Violation),
			direction.Compare(a.result.Values[objective], b.result.Values[objective]),
			cmp.Compare(a.trial.Number, b.trial.Number),
		)
	})
	for i := range list {
		list[i].rank = i + 1
	}
	return list
}

// sampled keeps all of a list that is no longer than the limit. Of a longer
// one, the best first, it keeps the first half of the limit, and every so
// manieth of the others by number. What it returns goes by number.
func sampled[T any](list []T, limit int, number func(T) int) ([]T, *protocol.Sample) {
	byNumber := func(a, b T) int { return cmp.Compare(number(a), number(b)) }
	if len(list) <= limit {
		list = slices.Clone(list)
		slices.SortFunc(list, byNumber)
		return list, nil
	}
	best := (limit + 1) / 2
	others, room := slices.Clone(list[best:]), max(1, limit-best)
	slices.SortFunc(others, byNumber)
	sample := protocol.Sample{Of: len(list), Best: best, Every: (len(others) + room - 1) / room}
	kept := slices.Clone(list[:best])
	if limit > best {
		for i := 0; i < len(others); i += sample.Every {
			kept = append(kept, others[i])
		}
	}
	slices.SortFunc(kept, byNumber)
	return kept, &sample
}

// fill writes the measurements into the columns.
func fill(answer *protocol.Columns, list []measurement, def definition.Definition) {
	answer.Numbers, answer.Ranks = make([]int, len(list)), make([]int, len(list))
	answer.Values = make([][]trial.Float, len(def.Objectives))
	for objective := range answer.Values {
		answer.Values[objective] = make([]trial.Float, len(list))
	}
	answer.Parameters = make([]protocol.ParameterColumn, len(def.Space.Parameters))
	for at, parameter := range def.Space.Parameters {
		answer.Parameters[at] = protocol.ParameterColumn{Name: parameter.Name, Choices: parameter.Values, Values: make([]trial.Float, len(list))}
	}
	if len(def.Constraints) > 0 {
		answer.Violations = make([]trial.Float, len(list))
	}
	for i, one := range list {
		answer.Numbers[i], answer.Ranks[i] = one.trial.Number, one.rank
		for objective, values := range answer.Values {
			values[i] = one.result.Values[objective]
		}
		if answer.Violations != nil {
			answer.Violations[i] = one.result.Violation
		}
		for _, column := range answer.Parameters {
			column.Values[i] = coordinate(one.trial.Configuration, column)
		}
	}
}

// coordinate is a parameter's value as a number: of one with choices its place
// among them. NaN: the configuration does not have it.
func coordinate(configuration space.Configuration, column protocol.ParameterColumn) trial.Float {
	value, present := configuration[column.Name]
	if !present {
		return trial.Float(math.NaN())
	}
	if len(column.Choices) > 0 {
		if place := slices.Index(column.Choices, value); place >= 0 {
			return trial.Float(place)
		}
		return trial.Float(math.NaN())
	}
	number, _ := value.Number()
	return trial.Float(number)
}

// distributionOf is the distribution of an objective's finite values.
func distributionOf(list []measurement, objective int) protocol.Distribution {
	var values []trial.Float
	for _, one := range list {
		if value := one.result.Values[objective]; value.IsFinite() {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	answer := protocol.Distribution{Trials: len(values), Values: []trial.Float{}, Shares: []float64{}}
	step := max(1, (len(values)+mostQuantiles-1)/mostQuantiles)
	for i := 0; i < len(values); i += step {
		answer = withPoint(answer, values, i)
	}
	if last := len(values) - 1; last > 0 && last%step != 0 {
		answer = withPoint(answer, values, last)
	}
	return answer
}

func withPoint(d protocol.Distribution, sorted []trial.Float, at int) protocol.Distribution {
	d.Values = append(d.Values, sorted[at])
	d.Shares = append(d.Shares, float64(at+1)/float64(len(sorted)))
	return d
}
