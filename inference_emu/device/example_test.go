package device_test

import (
	"fmt"

	"github.com/tandem-tune/tandem/inference_emu/device"
)

// A device is one YAML file: here one of the user's own is read and found beside
// those of the catalogue.
func ExampleRead() {
	own, err := device.Read([]byte(`
name: my-board
title: "A board of our own"
processor: {value: "Cortex-A55", source: "the board's data sheet"}
clusters:
  - core: "cortex-a55"
    cores: {value: 4, source: "data sheet"}
    lowest_hertz: {value: 4e8, source: "data sheet"}
    highest_hertz: {value: 1.8e9, source: "data sheet"}
    float32_operations_per_cycle: {value: 8, source: "Arm's optimization guide"}
    float16_operations_per_cycle: {value: 16, source: "Arm's optimization guide"}
    int8_operations_per_cycle: {value: 32, source: "Arm's optimization guide"}
    level1_data_bytes: {value: 32768, source: "data sheet"}
    level2_bytes: {value: 131072, source: "data sheet"}
memory:
  bytes: {value: 4294967296, source: "data sheet"}
  bytes_per_second: {value: 1.28e10, source: "data sheet"}
power:
  idle_watts: {value: 1.5, source: "measured at the socket"}
  load_watts: {value: 5, source: "measured at the socket"}
default_runtime: {value: "onnx-runtime", source: "what we deploy with"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	catalogue, err := device.Catalogue()
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := device.Find(device.Add(catalogue, own), "my-board")
	fmt.Println(found.Title, err)
	// Output: A board of our own <nil>
}
