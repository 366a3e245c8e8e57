package onnx

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// steps says how each kind of operator is worked out.
func steps() map[string]func(*step) error {
	table := map[string]func(*step) error{}
	add := func(needs int, handle func(*step) error, kinds ...string) {
		for _, kind := range kinds {
			table[kind] = needing(needs, handle)
		}
	}
	add(1, convolution, "Conv", "ConvInteger", "QLinearConv", "com.microsoft.FusedConv")
	add(1, transposedConvolution, "ConvTranspose")
	add(0, gemm, "Gemm", "com.microsoft.FusedGemm")
	add(0, matrixProduct, "MatMul", "MatMulInteger", "QLinearMatMul")
	add(0, einsum, "Einsum")
	add(3, recurrent, "LSTM", "GRU", "RNN")
	add(1, pooling, "MaxPool", "AveragePool", "LpPool")
	add(1, globalPooling, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
	add(1, quantizing, "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
	add(1, cast, "Cast", "CastLike")
	add(1, reduction, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
		"ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin")
	add(1, topK, "TopK")
	add(1, cumulative, "CumSum")
	add(1, reshape, "Reshape")
	add(1, flatten, "Flatten")
	add(1, squeeze, "Squeeze")
	add(1, unsqueeze, "Unsqueeze")
	add(1, identity, "Identity", "Dropout")
	add(1, transpose, "Transpose")
	add(1, concat, "Concat")
	add(1, split, "Split")
	add(1, slice, "Slice")
	add(2, gather, "Gather")
	add(2, gatherElements, "GatherElements")
	add(2, gatherND, "GatherND")
	add(1, likeFirst, "ScatterElements", "ScatterND", "Scatter", "Trilu", "ReverseSequence")
	add(0, expand, "Expand")
	add(0, tile, "Tile")
	add(1, pad, "Pad")
	add(1, resize, "Resize", "Upsample")
	add(1, depthToSpace, "DepthToSpace")
	add(1, spaceToDepth, "SpaceToDepth")
	add(0, oneHot, "OneHot")
	add(1, shapeOf, "Shape", "Size")
	add(0, constant, "Constant")
	add(0, constantOfShape, "ConstantOfShape")
	add(3, rangeOf, "Range")
	add(1, trees, "TreeEnsembleClassifier", "TreeEnsembleRegressor")
	add(1, linearModel, "LinearClassifier", "LinearRegressor")
	add(1, supportVectors, "SVMClassifier", "SVMRegressor")
	add(1, scaler, "Scaler", "Normalizer", "Imputer", "Binarizer")
	add(1, labels, "LabelEncoder")
	add(2, featureExtractor, "ArrayFeatureExtractor")
	add(1, zipMap, "ZipMap")
	add(1, pointwise, "com.microsoft.Gelu")
	return table
}

// needing checks that the inputs are there before the operator is worked out.
func needing(inputs int, handle func(*step) error) func(*step) error {
	return func(s *step) error {
		if err := s.need(inputs); err != nil {
			return err
		}
		return handle(s)
	}
}

// pointwise is an activation, a normalization or arithmetic. Other outputs than
// the first are of training.
func pointwise(s *step) error {
	operands := s.operands()
	if s.node.Kind == "BatchNormalization" {
		for i := 3; i < len(operands); i++ {
			operands[i].Auxiliary = true // statistics of the training data
		}
	}
	op, output, err := graph.NewPointwise(s.node.Kind, operands)
	if err != nil {
		return err
	}
	op.Attributes = s.settings()
	if s.node.Kind == "LayerNormalization" && len(s.node.Outputs) > 1 {
		at, err := axis(s.integer("axis", -1), len(output.Shape))
		if err != nil {
			return err
		}
		statistic := output // mean and deviation, one for what is normalized together
		statistic.Shape = slices.Clone(output.Shape)
		for i := at; i < len(statistic.Shape); i++ {
			statistic.Shape[i] = 1
		}
		return s.emit(op, output, statistic, statistic)
	}
	return s.emit(op, output)
}
