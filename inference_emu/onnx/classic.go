package onnx

import (
	"math"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// The operators of ai.onnx.ml keep their parameters in attributes. The bytes of
// weights are those of the numbers in them, as 4 bytes each.

// learned adds what attributes hold to an operator as one weight, and the others as its
// settings.
func (s *step) learned(op *graph.Operator, names ...string) {
	count := int64(0)
	for _, name := range names {
		count += int64(s.node.Attribute(name).Count)
	}
	op.Weights = append(op.Weights, graph.Weight{Name: s.node.Named(s.index) + ".attributes", Position: len(s.inputs), Type: graph.Float32, Shape: []int64{count}})
	op.Parameters = graph.Sum(op.Parameters, count)
	op.WeightBytes = graph.Sum(op.WeightBytes, 4*count)
	op.Attributes = s.settings()
}

// table is the input as samples and features.
func (s *step) table() (samples, features int64, err error) {
	shape := s.inputs[0].Shape
	switch len(shape) {
	case 1:
		return 1, shape[0], nil
	case 2:
		return shape[0], shape[1], nil
	}
	return 0, 0, problem.New(problem.Invalid, "input %v is not a table of samples and features", shape)
}

// scores are the outputs of a classifier (labels and a score for each class) or
// of a regressor (a number for each target).
func (s *step) scores(samples, width int64, classifies bool) []graph.Tensor {
	scores := s.like(s.inputs[0].Tensor, []int64{samples, width})
	scores.Type = graph.Float32
	if !classifies {
		return []graph.Tensor{scores}
	}
	labels := s.like(s.inputs[0].Tensor, []int64{samples})
	labels.Type = graph.Int64
	return []graph.Tensor{labels, scores}
}

// classes is how many classes a classifier tells apart.
func (s *step) classes() int64 {
	for _, name := range []string{"classlabels_int64s", "classlabels_ints", "classlabels_strings"} {
		if count := s.node.Attribute(name).Count; count > 0 {
			return int64(count)
		}
	}
	return 1
}

// trees count a comparison for each level of each tree as if all its leaves were
// equally deep, and an addition for each tree and class.
func trees(s *step) error {
	samples, _, err := s.table()
	if err != nil {
		return err
	}
	classifies := s.node.Kind == "TreeEnsembleClassifier"
	width := s.integer("n_targets", 1)
	if classifies {
		width = s.classes()
	}
	outputs := s.scores(samples, width, classifies)
	op := graph.NewOperator(s.node.Kind, graph.Rest, s.operands(), outputs...)
	var each int64
	for _, inTree := range s.node.Attribute("nodes_treeids").Runs {
		each += int64(math.Ceil(math.Log2(float64(inTree+1)/2))) + width
	}
	op.Operations = graph.Product(samples, each)
	s.learned(&op, "nodes_values", "nodes_featureids", "class_weights", "target_weights")
	return s.emit(op, outputs...)
}

func linearModel(s *step) error {
	samples, features, err := s.table()
	if err != nil {
		return err
	}
	classifies := s.node.Kind == "LinearClassifier"
	width := s.integer("targets", 1)
	rows := width
	if classifies {
		width = s.classes()
		rows = int64(s.node.Attribute("coefficients").Count) / max(features, 1)
	}
	outputs := s.scores(samples, width, classifies)
	op := graph.NewOperator(s.node.Kind, graph.Linear, s.operands(), outputs...)
	op.Operations = graph.Product(2, samples, features, rows)
	op.InChannels, op.OutChannels, op.Positions = features, rows, samples
	s.learned(&op, "coefficients", "intercepts")
	return s.emit(op, outputs...)
}

// supportVectors count the kernel of the input with each of the vectors.
func supportVectors(s *step) error {
	samples, _, err := s.table()
	if err != nil {
		return err
	}
	classifies := s.node.Kind == "SVMClassifier"
	width := int64(1)
	if classifies {
		width = s.classes()
	}
	outputs := s.scores(samples, width, classifies)
	op := graph.NewOperator(s.node.Kind, graph.Linear, s.operands(), outputs...)
	op.Operations = graph.Product(2, samples, int64(s.node.Attribute("support_vectors").Count+s.node.Attribute("coefficients").Count))
	s.learned(&op, "support_vectors", "coefficients", "rho")
	return s.emit(op, outputs...)
}

// scaler is a step before a model: two operations for each feature.
func scaler(s *step) error {
	output := s.like(s.inputs[0].Tensor, s.inputs[0].Shape)
	output.Type = graph.Float32
	op := graph.NewOperator(s.node.Kind, graph.Elementwise, s.operands(), output)
	op.Operations = graph.Product(2, output.Elements())
	s.learned(&op, "offset", "scale", "imputed_value_floats")
	return s.emit(op, output)
}

// labels looks a label up for each element.
func labels(s *step) error {
	output := s.like(s.inputs[0].Tensor, s.inputs[0].Shape)
	return s.emit(graph.NewMovement(s.node.Kind, s.operands(), output), output)
}

// featureExtractor takes columns of a table.
func featureExtractor(s *step) error {
	shape := append([]int64{}, s.inputs[0].Shape...)
	if len(shape) == 0 {
		return problem.New(problem.Invalid, "a number has no columns")
	}
	if len(shape) == 1 {
		shape = []int64{1, shape[0]}
	}
	shape[len(shape)-1] = s.inputs[1].Elements()
	return s.moved(shape)
}

// zipMap names scores by their class: for a program, the same numbers.
func zipMap(s *step) error {
	return s.view(s.inputs[0].Shape)
}
