package objective

import "math"

// Formula computes one number from what is known of a trial: a metric taken as
// it is, or an expression.
type Formula struct {
	metric     string
	expression Expression
}

// NewFormula is the metric's, or the expression's if there is no metric. The
// error is that of [Compile].
func NewFormula(metric, expression string) (Formula, error) {
	if metric != "" {
		return Formula{metric: metric}, nil
	}
	compiled, err := Compile(expression)
	return Formula{expression: compiled}, err
}

// Names are the numbers it needs.
func (f Formula) Names() []string {
	if f.metric != "" {
		return []string{f.metric}
	}
	return f.expression.Names()
}

// Value computes it. A metric keeps its infinities; see [Expression.Value].
func (f Formula) Value(numbers map[string]float64) float64 {
	if f.metric == "" {
		return f.expression.Value(numbers)
	}
	if number, known := numbers[f.metric]; known {
		return number
	}
	return math.NaN()
}
