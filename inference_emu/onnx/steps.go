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
	add((*step).convolution, "Conv", "ConvInteger", "QLinearConv", "com.microsoft.FusedConv")
	add((*step).transposedConvolution, "ConvTranspose")
	add((*step).gemm, "Gemm", "com.microsoft.FusedGemm")
	add((*step).matrixProduct, "MatMul", "MatMulInteger", "QLinearMatMul")
	add((*step).einsum, "Einsum")
	add((*step).recurrent, "LSTM", "GRU", "RNN")
	add((*step).pooling, "MaxPool", "AveragePool", "LpPool")
	add((*step).globalPooling, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
	add((*step).quantizing, "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
	add((*step).cast, "Cast", "CastLike")
	add((*step).reduction, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
		"ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin")
	add((*step).topK, "TopK")
	add((*step).cumulative, "CumSum")
	add((*step).reshape, "Reshape")
	add((*step).flatten, "Flatten")
	add((*step).squeeze, "Squeeze")
	add((*step).unsqueeze, "Unsqueeze")
	add((*step).identity, "Identity", "Dropout")
	add((*step).transpose, "Transpose")
	add((*step).concat, "Concat")
	add((*step).split, "Split")
	add((*step).slice, "Slice")
	add((*step).gather, "Gather")
	add((*step).gatherElements, "GatherElements")
	add((*step).gatherND, "GatherND")
	add((*step).likeFirst, "ScatterElements", "ScatterND", "Scatter", "Trilu", "ReverseSequence")
	add((*step).expand, "Expand")
	add((*step).tile, "Tile")
	add((*step).pad, "Pad")
	add((*step).resize, "Resize", "Upsample")
	add((*step).depthToSpace, "DepthToSpace")
	add((*step).spaceToDepth, "SpaceToDepth")
	add((*step).oneHot, "OneHot")
	add((*step).shapeOf, "Shape", "Size")
	add((*step).constant, "Constant")
	add((*step).constantOfShape, "ConstantOfShape")
	add((*step).rangeOf, "Range")
	add((*step).trees, "TreeEnsembleClassifier", "TreeEnsembleRegressor")
	add((*step).linearModel, "LinearClassifier", "LinearRegressor")
	add((*step).supportVectors, "SVMClassifier", "SVMRegressor")
	add((*step).scaler, "Scaler", "Normalizer", "Imputer", "Binarizer")
	add((*step).labels, "LabelEncoder")
	add((*step).featureExtractor, "ArrayFeatureExtractor")
	add((*step).zipMap, "ZipMap")
	add((*step).pointwise, "com.microsoft.Gelu")
	add((*step).pointwise, pointwiseKinds()...)
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
func (s *step) pointwise() error {
	if err := s.need(1); err != nil {
		return err
	}
	operands := s.operands()
	if s.node.kind == "BatchNormalization" {
		for i := 3; i < len(operands); i++ {
			operands[i].Auxiliary = true // statistics of the training data
		}
	}
	op, output, err := graph.NewPointwise(s.node.kind, operands)
	if err != nil {
		return err
	}
	op.Attributes = s.settings()
	if s.node.kind == "LayerNormalization" && len(s.node.outputs) > 1 {
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
