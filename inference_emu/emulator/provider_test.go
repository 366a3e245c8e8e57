package emulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
)

// A provider that a library comes without, or that cannot be loaded, is refused with the
// reason; with the first one the library runs models as ever.
func TestAProviderThatCannotBeUsed(t *testing.T) {
	plain, err := filepath.EvalSymlinks(library(t))
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), filepath.Base(plain))
	if err := os.Symlink(plain, broken); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(filepath.Dir(broken), "libonnxruntime_providers_openvino.so"), "none")
	for name, one := range map[string]struct {
		library, provider string
		code              problem.Code
		says              string
	}{
		"without it": {plain, emu.OpenVINO, problem.NotFound, "comes without the execution provider openvino: the Python package onnxruntime-openvino has both"},
		"broken":     {broken, emu.OpenVINO, problem.NotFound, "cannot use the execution provider openvino"},
		"unknown":    {plain, "tpu", problem.Invalid, "must be one of cpu, openvino"},
	} {
		job := quick(t, contentOf(t, "cnn.onnx"), emulator.Cell{Batch: 1, Threads: 1}, emulator.Cell{Batch: 1, Threads: 1, Provider: one.provider})
		job.Library = one.library
		if _, err := emulator.Run(t.Context(), job); !problem.Is(err, one.code) || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", name, err)
		}
		job.Cells = job.Cells[:1]
		if result, err := emulator.Run(t.Context(), job); err != nil || len(result.Cells) != 1 {
			t.Errorf("%s: the first provider runs %d cells: %v", name, len(result.Cells), err)
		}
		if usable, lacking := emulator.Providers(t.Context(), one.library); len(usable) > 0 || len(lacking) != 1 {
			t.Errorf("%s: it can use %v, and not %v", name, usable, lacking)
		}
	}
}

// A model runs by OpenVINO, locked in as any, on the cores that it is given.
func TestAModelRunsByOpenVINO(t *testing.T) {
	folders, _ := filepath.Glob("../../.venv-openvino/lib/python3*/site-packages/onnxruntime/capi")
	if len(folders) == 0 {
		t.Skip("python3 -m venv .venv-openvino; .venv-openvino/bin/pip install onnxruntime-openvino==1.24.1")
	}
	path, err := onnxruntime.Find(t.Context(), onnxruntime.Options{Named: folders[0]})
	if err != nil {
		t.Fatal(err)
	}
	if usable, lacking := emulator.Providers(t.Context(), path); len(usable) != 1 || len(lacking) > 0 {
		t.Fatalf("it can use %v, and not %v", usable, lacking)
	}
	by := func(threads, batch int, provider string) emulator.Cell {
		return emulator.Cell{Batch: batch, Threads: threads, Provider: provider}
	}
	job := quick(t, contentOf(t, "cnn.onnx"), by(1, 1, ""), by(1, 1, emu.OpenVINO), by(1, 8, emu.OpenVINO), by(2, 1, emu.OpenVINO))
	job.Library = path
	result, err := emulator.Run(t.Context(), job)
	if err != nil || len(result.Cells) != len(job.Cells) {
		t.Fatalf("%d cells, %v", len(result.Cells), err)
	}
	for i, m := range result.Cells {
		if m.Provider != job.Cells[i].Provider || m.Latency.P50 <= 0 || len(m.CoreNumbers) != min(m.Threads, result.Environment.AllowedCores) {
			t.Errorf("%+v", m)
		}
	}
	job.Cells = job.Cells[:1]
	plain, err := emulator.Run(t.Context(), job)
	if err != nil || result.Environment.LibraryBytes < plain.Environment.LibraryBytes+(30<<20) {
		t.Errorf("with OpenVINO %d bytes are loaded, without %d (%v)", result.Environment.LibraryBytes, plain.Environment.LibraryBytes, err)
	}
	for _, layer := range result.Environment.Layers {
		if !layer.Active {
			t.Errorf("%s does not hold it: %s", layer.Name, layer.Detail)
		}
	}
}
