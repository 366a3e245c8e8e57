package onnx_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/inference_emu/onnx/onnxtest"
)

// Each hostile file is refused with a line that says why, and without allocating more
// than a file of an honest model does.
func TestHostileFilesAreRefusedInALine(t *testing.T) {
	for _, one := range onnxtest.Hostile() {
		t.Run(one.Name, func(t *testing.T) {
			content := one.Content()
			if _, err := document.Pack(content[:min(len(content), 1<<20)]); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
			var err error
			allocated := testing.AllocsPerRun(1, func() { _, err = onnx.Read(content, onnx.Options{}) })
			if allocated > mostAllocated {
				t.Errorf("%.0f allocations, at most %d", allocated, mostAllocated)
			}
			switch {
			case one.Says == "" && err != nil:
				t.Error(err)
			case one.Says != "" && (err == nil || !strings.Contains(err.Error(), one.Says)):
				t.Errorf("%.300v, want %q", err, one.Says)
			case err != nil && len(err.Error()) > 2000:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// mostAllocated is twice what 50,000 operators take.
const mostAllocated = 2_000_000
