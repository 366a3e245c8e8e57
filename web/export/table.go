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

// column is one column of the table of a study's trials, which CSV and Parquet
// have alike.
type column struct {
	name string
	kind cellKind
	// cell is what stands there: a value of the kind's type, a space.Value for a
	// parameter, nil for nothing.
	cell func(line) any
}

// cellKind is of what type all cells of a column are that have something.
type cellKind uint8

const (
	whole cellKind = iota // int
	real                  // trial.Float
	words                 // string
	truth                 // a space.Value, true or false
)

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

// columnsOf are the columns of a study's trials, in order.
func columnsOf(def definition.Definition) []column {
	columns := []column{
		{"number", whole, func(l line) any { return l.Number }},
		{"state", words, func(l line) any { return string(l.State) }},
		{"rank", whole, func(l line) any {
			if l.Rank == 0 {
				return nil
			}
			return l.Rank
		}},
		{"rung", whole, func(l line) any { return l.rung }},
		{"epochs", whole, func(l line) any { return l.spent.Epochs }},
		{"data_fraction", real, func(l line) any { return trial.Float(l.spent.DataFraction) }},
	}
	for at, objective := range def.Objectives {
		columns = append(columns, column{"value_" + objective.Label(), real, func(l line) any {
			if l.last == nil || at >= len(l.last.Values) {
				return nil
			}
			return l.last.Values[at]
		}})
	}
	if len(def.Constraints) > 0 {
		columns = append(columns, column{"violation", real, func(l line) any {
			if l.last == nil {
				return nil
			}
			return l.last.Violation
		}})
	}
	columns = append(columns,
		column{"seconds", real, func(l line) any { return l.Seconds }},
		column{"joules", real, func(l line) any {
			if l.Energy.Method == "" {
				return nil
			}
			return l.Energy.Joules
		}},
		column{"energy_method", words, func(l line) any { return wordsOrNil(l.Energy.Method) }},
	)
	if def.Inference != nil { // how what an objective has of inference was obtained
		columns = append(columns, inferenceColumn("inference_method", func(i trial.InferenceCost) string { return i.Method }),
			inferenceColumn("inference_energy_method", func(i trial.InferenceCost) string { return i.EnergyMethod }))
	}
	columns = append(columns,
		column{"tags", words, func(l line) any { return wordsOrNil(strings.Join(l.Tags, " ")) }},
		column{"note", words, func(l line) any { return wordsOrNil(l.Note) }},
	)
	for _, parameter := range def.Space.Parameters {
		columns = append(columns, column{"params_" + parameter.Name, kindOf(parameter), func(l line) any {
			value := l.Configuration[parameter.Name]
			if value.IsZero() { // it does not exist in this configuration
				return nil
			}
			return value
		}})
	}
	return columns
}

// inferenceColumn has a text of what inference takes; empty for a trial without a model.
func inferenceColumn(name string, text func(trial.InferenceCost) string) column {
	return column{name, words, func(l line) any {
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

// kindOf is the type that all values of a parameter have; text where they are of
// several types.
func kindOf(parameter space.Parameter) cellKind {
	switch parameter.Type {
	case space.FloatType:
		return real
	case space.IntType:
		return whole
	}
	integers, numbers, truths := true, true, true
	for _, value := range parameter.Values {
		_, integer := value.Integer()
		_, number := value.Number()
		_, isTruth := value.Truth()
		integers, numbers, truths = integers && integer, numbers && number, truths && isTruth
	}
	switch {
	case integers:
		return whole
	case numbers:
		return real
	case truths:
		return truth
	}
	return words
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
