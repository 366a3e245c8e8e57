package onnx

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// broadcast repeats the values of a constant to a shape, nil if it cannot be.
func broadcast(v value, shape []int64) []float64 {
	count := graph.Product(shape...)
	if len(v.Shape) > len(shape) || int64(len(v.numbers)) != v.Elements() {
		return nil
	}
	result := make([]float64, count)
	for i := range result {
		// The place in v of element i: dimensions of size 1 stand still.
		rest, at, stride := int64(i), int64(0), int64(1)
		for d := 1; d <= len(shape); d++ {
			size := shape[len(shape)-d]
			place := rest % size
			rest /= size
			if d > len(v.Shape) {
				continue
			}
			own := v.Shape[len(v.Shape)-d]
			if own != 1 {
				if own != size {
					return nil
				}
				at += place * stride
			}
			stride *= own
		}
		result[i] = v.numbers[at]
	}
	return result
}

// foldArithmetic computes what exporters compute with shapes; nil for others.
func (s *step) foldArithmetic(output graph.Tensor) []float64 {
	integer := output.Type == graph.Int64 || output.Type == graph.Int32
	row := slices.Repeat([]float64{1}, len(s.inputs))
	if _, known := calculate(s.node.Kind, row, integer); !known {
		return nil
	}
	operands := make([][]float64, len(s.inputs))
	for i, input := range s.inputs {
		if operands[i] = broadcast(input, output.Shape); operands[i] == nil {
			return nil
		}
	}
	result := make([]float64, output.Elements())
	for i := range result {
		for j := range operands {
			row[j] = operands[j][i]
		}
		number, known := calculate(s.node.Kind, row, integer)
		if !known {
			return nil
		}
		result[i] = number
	}
	return result
}

// calculate is one element of an operator's output.
func calculate(kind string, x []float64, integer bool) (number float64, known bool) {
	one, two := unary[kind], binary[kind]
	switch {
	case len(x) == 1 && one != nil:
		return one(x[0]), true
	case len(x) == 2 && x[1] == 0 && (kind == "Mod" || kind == "Div" && integer):
		return 0, false
	case len(x) == 2 && kind == "Div" && integer:
		return math.Trunc(x[0] / x[1]), true
	case len(x) == 2 && two != nil:
		return two(x[0], x[1]), true
	case len(x) == 3 && kind == "Where" && x[0] != 0:
		return x[1], true
	case len(x) == 3 && kind == "Where":
		return x[2], true
	}
	return 0, false
}

// truth is a number for what holds or not.
func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// unary are the functions of one number, by their operators.
var unary = map[string]func(x float64) float64{
	"Neg": func(x float64) float64 { return -x }, "Not": func(x float64) float64 { return truth(x == 0) },
	"Abs": math.Abs, "Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt,
}

// binary are the functions of two numbers, by their operators.
var binary = map[string]func(x, y float64) float64{
	"Add":     func(x, y float64) float64 { return x + y },
	"Sub":     func(x, y float64) float64 { return x - y },
	"Mul":     func(x, y float64) float64 { return x * y },
	"Div":     func(x, y float64) float64 { return x / y },
	"Mod":     func(x, y float64) float64 { return x - y*math.Floor(x/y) },
	"Pow":     math.Pow,
	"Min":     func(x, y float64) float64 { return min(x, y) },
	"Max":     func(x, y float64) float64 { return max(x, y) },
	"Equal":   func(x, y float64) float64 { return truth(x == y) },
	"Greater": func(x, y float64) float64 { return truth(x > y) },
	"Less":    func(x, y float64) float64 { return truth(x < y) },
	"And":     func(x, y float64) float64 { return truth(x != 0 && y != 0) },
	"Or":      func(x, y float64) float64 { return truth(x != 0 || y != 0) },
}
