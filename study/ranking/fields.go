package ranking

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/query"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// fieldsOf finds what the study's trials have under a name, for queries and for
// columns. A bare name is first a field that all studies have, then a parameter, an
// objective and a metric. The error is the end of a sentence that begins with the name.
func fieldsOf(now journal.View) func(name string) (query.Field[Place], error) {
	def := now.Study.Definition
	return func(name string) (query.Field[Place], error) {
		if field, ok := plainFields[name]; ok {
			return field, nil
		}
		if name == "" {
			return query.Field[Place]{List: textsOf}, nil
		}
		bare, explicit := strings.CutPrefix(name, "params.")
		if parameter, ok := def.Space.Parameter(bare); ok {
			return parameterField(parameter), nil
		}
		if at := objectiveOf(name, def.Objectives); at >= 0 {
			return query.Field[Place]{Of: func(p Place) query.Value { return p.value(at) }}, nil
		}
		if name == "latest" && def.Objectives[0].Metric != "" {
			return metricField(def.Objectives[0].Metric), nil
		}
		if metric, ok := strings.CutPrefix(name, "metrics."); ok {
			return metricField(metric), nil
		}
		if !explicit && slices.ContainsFunc(now.Trials, func(t trial.Trial) bool { _, has := t.Last[name]; return has }) {
			return metricField(name), nil
		}
		return query.Field[Place]{}, fmt.Errorf("is no field of study %s, and no trial has reported it: %s", def.Name, query.Meant(name, namesOf(now)))
	}
}

// textsOf are the texts of a trial in which plain words are found.
func textsOf(p Place) []string {
	texts := append([]string{string(p.trial.State), p.trial.Origin, p.trial.Worker, p.trial.Host, p.trial.Reason}, p.trial.Tags...)
	for name, value := range p.trial.Configuration {
		texts = append(texts, name+"="+value.String())
	}
	return texts
}

// namesOf are the names that fieldsOf finds, those of the study first.
func namesOf(now journal.View) []string {
	var names []string
	for _, parameter := range now.Study.Definition.Space.Parameters {
		names = append(names, parameter.Name)
	}
	metrics := map[string]bool{}
	for i := range now.Trials {
		for metric := range now.Trials[i].Last {
			metrics[metric] = true
		}
	}
	for _, objective := range now.Study.Definition.Objectives {
		metrics[objective.Label()] = true
	}
	return slices.Concat(names, slices.Sorted(maps.Keys(metrics)), slices.Sorted(maps.Keys(plainFields)))
}

// plainFields are the fields that every study has.
var plainFields = map[string]query.Field[Place]{
	"rank":      numbers(func(p Place) query.Value { return query.NumberIf(p.rank > 0, float64(p.rank)) }),
	"number":    numbers(func(p Place) query.Value { return query.Number(float64(p.trial.Number)) }),
	"value":     numbers(func(p Place) query.Value { return p.value(0) }),
	"rung":      numbers(func(p Place) query.Value { return query.Number(float64(p.trial.Rung)) }),
	"budget":    numbers(func(p Place) query.Value { return query.Number(budgetOf(p.trial)) }),
	"epochs":    numbers(func(p Place) query.Value { return query.Number(float64(p.trial.Epochs)) }),
	"failures":  numbers(func(p Place) query.Value { return query.Number(float64(p.trial.Failures)) }),
	"losses":    numbers(func(p Place) query.Value { return query.Number(float64(p.trial.Losses)) }),
	"repeat_of": numbers(func(p Place) query.Value { return numberAt(p.trial.RepeatOf) }),
	"retry_of":  numbers(func(p Place) query.Value { return numberAt(p.trial.RetryOf) }),
	"violation": numbers(func(p Place) query.Value {
		return query.NumberIf(len(p.trial.Results) > 0, float64(Violation(p.trial)))
	}),
	"seconds": {Of: secondsOf, Seconds: true}, "duration": {Of: secondsOf, Seconds: true},
	"joules": numbers(joulesOf), "energy": numbers(joulesOf),
	"state":  {Of: func(p Place) query.Value { return query.Text(string(p.trial.State)) }, Texts: true, Choices: stateNames()},
	"worker": texts(func(t *trial.Trial) string { return t.Worker }),
	"host":   texts(func(t *trial.Trial) string { return t.Host }),
	"origin": texts(func(t *trial.Trial) string { return t.Origin }),
	"reason": texts(func(t *trial.Trial) string { return t.Reason }),
	"note":   texts(func(t *trial.Trial) string { return t.Note }),
	"tags": {
		Of:   func(p Place) query.Value { return query.Text(strings.Join(p.trial.Tags, " ")) },
		List: func(p Place) []string { return p.trial.Tags }, Texts: true,
	},
}

func numbers(of func(Place) query.Value) query.Field[Place] { return query.Field[Place]{Of: of} }

func texts(of func(*trial.Trial) string) query.Field[Place] {
	return query.Field[Place]{Of: func(p Place) query.Value { return query.Text(of(p.trial)) }, Texts: true}
}

func numberAt(number *int) query.Value {
	if number == nil {
		return query.Value{}
	}
	return query.Number(float64(*number))
}

func secondsOf(p Place) query.Value { return query.Number(float64(p.trial.Seconds)) }

func joulesOf(p Place) query.Value {
	return query.NumberIf(p.trial.Energy.Method != "", float64(p.trial.Energy.Joules))
}

// budgetOf is that of its rung: in passes over the data, seconds or joules.
func budgetOf(t *trial.Trial) float64 {
	if b := t.Budget; b.Measured() {
		return b.Seconds + b.Joules // it is one of the two
	}
	return float64(t.Budget.Epochs) * t.Budget.DataFraction
}

func stateNames() []string {
	var names []string
	for _, state := range trial.States() {
		names = append(names, string(state))
	}
	return names
}

// value is the newest result in an objective; of a repeated trial the mean.
func (p Place) value(objective int) query.Value {
	value, ok := p.trial.Value(objective)
	if p.repeated != nil && objective < len(p.repeated.Mean) {
		value = p.repeated.Mean[objective]
	}
	return query.NumberIf(ok, float64(value))
}

// metricField is a metric in the newest report.
func metricField(metric string) query.Field[Place] {
	return numbers(func(p Place) query.Value {
		value, has := p.trial.Last[metric]
		return query.NumberIf(has, float64(value))
	})
}

// parameterField has nothing in a configuration without the parameter.
func parameterField(parameter space.Parameter) query.Field[Place] {
	field := query.Field[Place]{Texts: len(parameter.Values) > 0, Of: func(p Place) query.Value {
		value := p.trial.Configuration[parameter.Name]
		if number, ok := value.Number(); ok {
			return query.Number(number)
		}
		return query.Text(value.String())
	}}
	for _, value := range parameter.Values {
		field.Choices = append(field.Choices, value.String())
		if _, numeric := value.Number(); numeric {
			field.Texts = false
		}
	}
	return field
}

// objectiveOf is the place of the objective with the name: what it is shown under,
// or value.N; -1 for none.
func objectiveOf(name string, objectives []definition.Objective) int {
	if text, ok := strings.CutPrefix(name, "value."); ok {
		if at, err := strconv.Atoi(text); err == nil && at >= 0 && at < len(objectives) {
			return at
		}
	}
	return slices.IndexFunc(objectives, func(o definition.Objective) bool { return o.Label() == name })
}
