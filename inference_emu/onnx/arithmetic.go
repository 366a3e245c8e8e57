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
	switch len(x) {
	case 1:
		return calculateOne(kind, x[0])
	case 2:
		return calculateTwo(kind, x[0], x[1], integer)
	case 3:
		if kind == "Where" && x[0] != 0 {
			return x[1], true
		}
		return x[2], kind == "Where"
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

func calculateOne(kind string, x float64) (number float64, known bool) {
	switch kind {
	case "Neg":
		return -x, true
	case "Abs":
		return math.Abs(x), true
	case "Floor":
		return math.Floor(x), true
	case "Ceil":
		return math.Ceil(x), true
	case "Round":
		return math.RoundToEven(x), true
	case "Sqrt":
		return math.Sqrt(x), true
	case "Not":
		return truth(x == 0), true
	}
	return 0, false
}

func calculateTwo(kind string, x, y float64, integer bool) (number float64, known bool) {
	switch kind {
	case "Add":
		return x + y, true
	case "Sub":
		return x - y, true
	case "Mul":
		return x * y, true
	case "Div":
		if integer {
			return math.Trunc(x / y), y != 0
		}
		return x / y, true
	case "Mod":
		return x - y*math.Floor(x/y), y != 0
	case "Pow":
		return math.Pow(x, y), true
	case "Min":
		return min(x, y), true
	case "Max":
		return max(x, y), true
	case "Equal":
		return truth(x == y), true
	case "Greater":
		return truth(x > y), true
	case "Less":
		return truth(x < y), true
	case "And":
		return truth(x != 0 && y != 0), true
	case "Or":
		return truth(x != 0 || y != 0), true
	}
	return 0, false
}
