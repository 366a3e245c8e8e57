package document

import (
	"bytes"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Foreign is the error for a file that begins as another format does in which models are saved:
// what it is, and how the model becomes ONNX. Nil: it begins as none of them.
func Foreign(file []byte) error {
	const saved = "save the model as ONNX: trial.save_model takes one of PyTorch, Keras or scikit-learn itself"
	switch {
	case len(file) >= 8 && string(file[4:8]) == "TFL3":
		return problem.New(problem.Invalid, "this is a LiteRT (TensorFlow Lite) file, and only ONNX files are read: %s, and tf2onnx converts many files: python3 -m tf2onnx.convert --tflite FILE --output model.onnx", saved)
	case bytes.HasPrefix(file, []byte("PK\x03\x04")), bytes.HasPrefix(file, []byte("\x89HDF")):
		return problem.New(problem.Invalid, "this is no ONNX file, but one as PyTorch or Keras save models: %s", saved)
	}
	return nil
}
