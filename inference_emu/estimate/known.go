package estimate

import (
	_ "embed" // the knowledge that the program brings along
	"encoding/json"
)

// known was made by "go run ./bench/edgetune learn" from published measurements
// (MLPerf Inference on edge devices, NAS-Bench-201's latencies and a Jetson TX2's
// configurations) and, for ONNX Runtime, from runs of ten networks on one machine
// of our own. It holds no measurement, only how factors are spread.
//
//go:embed knowledge.json
var known []byte

// Known is the knowledge that the program brings along.
func Known() (Knowledge, error) {
	var k Knowledge
	err := json.Unmarshal(known, &k)
	return k, err
}
