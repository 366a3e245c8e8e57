package onnx

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// steps says how each kind of operator is worked out.
func steps() map[string]func(*step) error {
	table := map[string]func(*step) error{}
	add := func(handle func(*step) error, kinds ...string) {
		for _, kind := range kinds {
			table[kind] = handle
		}
	}
	add(convolution, "Conv", "ConvInteger", "QLinearConv", "com.microsoft.FusedConv")
	add(transposedConvolution, "ConvTranspose")
	add(gemm, "Gemm", "com.microsoft.FusedGemm")
	add(matrixProduct, "MatMul", "MatMulInteger", "QLinearMatMul")
	add(einsum, "Einsum")
	add(recurrent, "LSTM", "GRU", "RNN")
	add(pooling, "MaxPool", "AveragePool", "LpPool")
	add(globalPooling, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
	add(quantizing, "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
	add(cast, "Cast", "CastLike")
	add(reduction, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
		"ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin")
	add(topK, "TopK")
	add(cumulative, "CumSum")
	add(reshape, "Reshape")
	add(flatten, "Flatten")
	add(squeeze, "Squeeze")
	add(unsqueeze, "Unsqueeze")
	add(identity, "Identity", "Dropout")
	add(transpose, "Transpose")
	add(concat, "Concat")
	add(split, "Split")
	add(slice, "Slice")
	add(gather, "Gather")
	add(gatherElements, "GatherElements")
	add(gatherND, "GatherND")
	add(likeFirst, "ScatterElements", "ScatterND", "Scatter", "Trilu", "ReverseSequence")
	add(expand, "Expand")
	add(tile, "Tile")
	add(pad, "Pad")
	add(resize, "Resize", "Upsample")
	add(depthToSpace, "DepthToSpace")
	add(spaceToDepth, "SpaceToDepth")
	add(oneHot, "OneHot")
	add(shapeOf, "Shape", "Size")
	add(constant, "Constant")
	add(constantOfShape, "ConstantOfShape")
	add(rangeOf, "Range")
	add(trees, "TreeEnsembleClassifier", "TreeEnsembleRegressor")
	add(linearModel, "LinearClassifier", "LinearRegressor")
	add(supportVectors, "SVMClassifier", "SVMRegressor")
	add(scaler, "Scaler", "Normalizer", "Imputer", "Binarizer")
	add(labels, "LabelEncoder")
	add(featureExtractor, "ArrayFeatureExtractor")
	add(zipMap, "ZipMap")
	add(pointwise, "com.microsoft.Gelu")
	add(pointwise, pointwiseKinds()...)
	return table
}

// pointwiseKinds are those that work element by element, without the ones that
// have a step of their own.
func pointwiseKinds() []string {
	return []string{"Relu", "Tanh", "Erf", "Softsign", "Sign", "ThresholdedRelu", "LeakyRelu", "PRelu", "Clip", "Softplus", "Elu", "Celu",
		"Selu", "Gelu", "Sigmoid", "HardSigmoid", "HardSwish", "Softmax", "LogSoftmax", "Hardmax", "Swish", "Mish",
		"BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization",
		"RMSNormalization", "SimplifiedLayerNormalization", "LpNormalization", "LRN",
		"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod", "Sum", "Mean", "BitShift",
		"And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where",
		"Abs", "Neg", "Reciprocal", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Round", "IsNaN", "IsInf",
		"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"}
}

// pointwise is an activation, a normalization or arithmetic. Other outputs than
// the first are of training.
func pointwise(s *step) error {
	if err := s.need(1); err != nil {
		return err
	}
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
