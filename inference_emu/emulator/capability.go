package emulator

import (
	"context"
	_ "embed" // the model that is tried
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/profiler"
)

// trialModel is a small CNN, which execution providers run.
//
//go:embed testdata/cnn.onnx
var trialModel []byte

// without says what a machine without ONNX Runtime goes without.
const without = "no model is run here: 'tandem edge run' and 'tandem edge agent' do not work, and what inferences take on this machine stays an estimate"

// Capabilities say whether models can be run on this machine, and what holds them:
// they run a tiny one.
func Capabilities(ctx context.Context, options onnxruntime.Options) []profiler.Capability {
	library := profiler.Capability{Name: "onnx runtime"}
	sandbox := profiler.Capability{Name: "model sandbox"}
	at, err := onnxruntime.Find(ctx, options)
	var result Result
	if err == nil {
		result, err = try(ctx, at, "")
	}
	if err != nil {
		library.Reason, library.Remedy = strings.TrimSuffix(err.Error(), ": "+onnxruntime.HowToInstall), "repair it; until then "+without
		sandbox.Reason = "it is tried by running a model, which did not succeed"
		if problem.Is(err, problem.NotFound) {
			library.Remedy = onnxruntime.HowToInstall + "; until then " + without
			sandbox.Reason, sandbox.Remedy = "it is tried by running a model, which needs ONNX Runtime", "see onnx runtime"
		}
		return []profiler.Capability{library, sandbox}
	}
	others, lacking := Providers(ctx, at)
	library.Available, library.Reason = true, strings.Join(lacking, "; ")
	library.Detail = fmt.Sprintf("%s at %s, execution providers: %s", result.Environment.Runtime, at, strings.Join(append([]string{emu.CPU}, others...), ", "))
	sandbox.Available = true
	var active, missing []string
	for _, layer := range result.Environment.Layers {
		if layer.Active {
			active = append(active, layer.Name)
		} else {
			missing = append(missing, layer.Name+": "+layer.Detail)
		}
	}
	sandbox.Detail = strings.Join(active, ", ")
	if len(missing) > 0 {
		sandbox.Reason = "without " + strings.Join(missing, "; ")
	}
	return []profiler.Capability{library, sandbox}
}

// Providers are the execution providers beside the first that the library can run a model with
// on this machine, locked in as any model; lacking says why it cannot use the others.
func Providers(ctx context.Context, library string) (usable, lacking []string) {
	for _, name := range emu.Providers()[1:] {
		if _, err := try(ctx, library, name); err != nil {
			lacking = append(lacking, name+": "+err.Error())
		} else {
			usable = append(usable, name)
		}
	}
	return usable, lacking
}

func try(ctx context.Context, library, provider string) (Result, error) {
	model, err := ModelOf(trialModel)
	if err != nil {
		return Result{}, err
	}
	defer model.Close()
	return Run(ctx, Job{Model: model, Library: library, Cells: []Cell{{Batch: 1, Threads: 1, Provider: provider}}, Precision: Precision{Seconds: 0.01, MinRuns: 1}})
}

// ModelOf is a file in memory with the bytes of a model, for [Job].
func ModelOf(content []byte) (*os.File, error) {
	descriptor, err := unix.MemfdCreate("model.onnx", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory for the model: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "model.onnx")
	if _, err := file.Write(content); err != nil {
		file.Close()
		return nil, fmt.Errorf("write the model to memory: %w", err)
	}
	return file, nil
}
