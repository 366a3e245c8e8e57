package export

import (
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// column is one column of the table of a study's trials.
type column struct {
	name string
	// cell is what stands there: a number, a text, a space.Value for a parameter, nil
	// for nothing.
	cell func(line) any
}

// line is a trial's line. Rung and budget are those its values were measured
// at; of a trial without a value, those it trains to.
type line struct {
	protocol.RankedTrial
	rung  int
	spent budget.Budget
	last  *trial.Result // nil: nothing was measured
}

func lineOf(one protocol.RankedTrial) line {
	l := line{RankedTrial: one, rung: one.Rung, spent: one.Budget}
	if len(one.Results) > 0 {
		l.last = &one.Results[len(one.Results)-1]
		l.rung, l.spent = l.last.Rung, l.last.Budget
		if l.last.Epoch > 0 { // the budget's epochs are only a bound
			l.spent.Epochs = l.last.Epoch
		}
	}
	return l
}

// columnsOf are the columns of a study's trials, in order; priced says that costs are known,
// metrics are what the trials' newest reports have.
func columnsOf(def definition.Definition, priced bool, metrics []string) []column {
	columns := []column{
		{"number", func(l line) any { return l.Number }},
		{"state", func(l line) any { return string(l.State) }},
		{"rank", rankOrNil},
		{"rung", func(l line) any { return l.rung }},
		{"epochs", func(l line) any { return l.spent.Epochs }},
		{"data_fraction", func(l line) any { return trial.Float(l.spent.DataFraction) }},
	}
	for at, objective := range def.Objectives {
		columns = append(columns, column{"value_" + objective.Label(), func(l line) any {
			if l.last == nil || at >= len(l.last.Values) {
				return nil
			}
			return l.last.Values[at]
		}})
	}
	if len(def.Constraints) > 0 {
		columns = append(columns, column{"violation", func(l line) any {
			if l.last == nil {
				return nil
			}
			return l.last.Violation
		}})
	}
	columns = append(columns,
		column{"seconds", func(l line) any { return l.Seconds }},
		column{"joules", func(l line) any {
			if l.Energy.Method == "" {
				return nil
			}
			return l.Energy.Joules
		}},
		column{"energy_method", func(l line) any { return wordsOrNil(l.Energy.Method) }},
	)
	if priced {
		columns = append(columns, costColumns...)
	}
	if def.Inference != nil { // how what an objective has of inference was obtained
		columns = append(columns, inferenceColumn("inference_method", func(i trial.InferenceCost) string { return i.Method }),
			inferenceColumn("inference_energy_method", func(i trial.InferenceCost) string { return i.EnergyMethod }))
	}
	columns = append(columns,
		column{"tags", func(l line) any { return wordsOrNil(strings.Join(l.Tags, " ")) }},
		column{"note", func(l line) any { return wordsOrNil(l.Note) }},
	)
	for _, parameter := range def.Space.Parameters {
		columns = append(columns, column{"params_" + parameter.Name, func(l line) any {
			value := l.Configuration[parameter.Name]
			if value.IsZero() { // it does not exist in this configuration
				return nil
			}
			return value
		}})
	}
	for _, name := range metrics {
		columns = append(columns, metricColumn(name))
	}
	return columns
}

func metricColumn(name string) column {
	return column{"metrics_" + name, func(l line) any {
		if value, has := l.Last[name]; has {
			return value
		}
		return nil
	}}
}

// inferenceColumn has a text of what inference takes; empty for a trial without a model.
func inferenceColumn(name string, text func(trial.InferenceCost) string) column {
	return column{name, func(l line) any {
		if l.Inference == nil {
			return nil
		}
		return wordsOrNil(text(*l.Inference))
	}}
}

func wordsOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// written is a cell as CSV has it.
func written(cell any) string {
	switch value := cell.(type) {
	case int:
		return strconv.Itoa(value)
	case trial.Float:
		return number(value)
	case string:
		return text(value)
	case space.Value:
		return valueCell(value)
	}
	return ""
}

// rankOrNil is nothing for a trial without a rank.
func rankOrNil(l line) any {
	if l.Rank == 0 {
		return nil
	}
	return l.Rank
}

// costColumns are what a trial cost, where the server has prices.
var costColumns = []column{
	{"cost", func(l line) any {
		if l.Cost == nil || l.Cost.Currency == "" {
			return nil
		}
		return l.Cost.Amount
	}},
	{"currency", func(l line) any {
		if l.Cost == nil {
			return nil
		}
		return wordsOrNil(l.Cost.Currency)
	}},
	{"co2_g", func(l line) any {
		if l.Cost == nil || l.Cost.CO2 == nil {
			return nil
		}
		return *l.Cost.CO2
	}},
}
