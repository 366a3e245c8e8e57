package emu

// The execution providers of ONNX Runtime that models are measured with: parts of it that run
// a model's operators. What another one does not know [CPU] runs.
const (
	CPU      = "cpu"
	OpenVINO = "openvino"
)

// Providers lists all of them, the one that each library has first.
func Providers() []string { return []string{CPU, OpenVINO} }
