// Package objective turns what was measured of a trial into what its study
// improves: formulas over metrics, and how far a limit was missed.
//
// Formulas are read by expr-lang/expr and held to numbers: arithmetic,
// comparisons, conditions and a few functions. They have no loops, no texts
// and no way out, a bounded length, and so a bounded cost. The package is
// pure; the same numbers give the same value.
package objective

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxLength is how many bytes an expression may have; maxNodes bounds its parts.
const (
	MaxLength = 1000
	maxNodes  = 400
)

// Expression is a formula over named numbers, ready to be computed. It is safe
// for concurrent use.
type Expression struct {
	names   []string
	program *vm.Program
}

// Compile reads a formula such as "train_seconds * edge.latency_ms / accuracy".
// The error is [problem.Invalid] and says what is wrong, as the end of a
// sentence that begins with the field.
func Compile(text string) (Expression, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return Expression{}, problem.New(problem.Invalid, "is empty: write a formula over metrics, such as train_seconds / accuracy")
	case len(text) > MaxLength:
		return Expression{}, problem.New(problem.Invalid, "has %d bytes: at most %d", len(text), MaxLength)
	}
	config := expr.DisableIfOperator()
	tree, err := parser.ParseWithConfig(text, options(config))
	if err != nil {
		return Expression{}, problem.New(problem.Invalid, "cannot be read: %s", inWords(err))
	}
	inspection := newInspector()
	inspection.inspect(tree.Node)
	if inspection.fault != "" {
		return Expression{}, problem.New(problem.Invalid, "%s", inspection.fault)
	}
	names := slices.Sorted(maps.Keys(inspection.names))
	if len(names) == 0 {
		return Expression{}, problem.New(problem.Invalid, "has no metric in it, so that every trial would have the same value")
	}
	environment := make(map[string]any, len(names))
	for _, name := range names {
		environment[name] = 0.0
	}
	program, err := expr.Compile(text, append(functions(), config, expr.DisableAllBuiltins(), expr.Env(environment),
		expr.Patch(rewriter{}), expr.MaxNodes(maxNodes), expr.Optimize(false), expr.AsFloat64())...)
	if err != nil {
		return Expression{}, problem.New(problem.Invalid, "cannot be computed: %s", inWords(err))
	}
	return Expression{names: names, program: program}, nil
}

// inWords is the first line of the library's message, with its place.
func inWords(err error) string {
	if told, ok := err.(*file.Error); ok {
		return fmt.Sprintf("%s, at character %d", told.Message, told.Column+1)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// Names are the numbers it needs, sorted.
func (e Expression) Names() []string { return e.names }

// Value computes it. What is no finite number, such as a division by zero, is
// NaN, which never wins, whatever the direction.
func (e Expression) Value(numbers map[string]float64) float64 {
	environment := make(map[string]any, len(e.names))
	for _, name := range e.names {
		number, known := numbers[name]
		if !known {
			return math.NaN()
		}
		environment[name] = number
	}
	answer, err := expr.Run(e.program, environment)
	if err != nil {
		return math.NaN()
	}
	value, ok := answer.(float64)
	if !ok || math.IsInf(value, 0) {
		return math.NaN()
	}
	return value
}
