package edgecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/board"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// maxRunBytes bounds a file of measurements.
const maxRunBytes = 64 << 20

// readMeasured makes an architecture with its runs on the device of a pair of a model and
// what "tandem edge run --json" printed there.
func readMeasured(pair string, dimensions map[string]string, on device.Device) (emu.Architecture, error) {
	model, runs, found := strings.Cut(pair, "=")
	if !found {
		return emu.Architecture{}, term.Misuse("--measured %q is no pair of a model and its runs: write MODEL.onnx=RUN.json", pair)
	}
	g, err := readModel(model, dimensions)
	if err != nil {
		return emu.Architecture{}, err
	}
	content, err := term.ReadBounded(runs, nil, maxRunBytes)
	if err != nil {
		return emu.Architecture{}, term.Misuse("%w", err)
	}
	var ran edgeRun
	if err := json.Unmarshal(content, &ran); err != nil {
		return emu.Architecture{}, term.Misuse("%s: %w: it has to be what \"tandem edge run --json\" printed", runs, err)
	}
	if cpu := ran.Environment.CPUModel; !on.MayBe(cpu) {
		return emu.Architecture{}, term.Misuse("%s: environment.cpu_model is %q, and the processor of %s is %q: run \"tandem edge run\" on the device itself, or name the device that ran", runs, cpu, on.Name, on.Processor.Value)
	}
	if info, err := os.Stat(model); err == nil && ran.ModelBytes > 0 && info.Size() != ran.ModelBytes {
		return emu.Architecture{}, term.Misuse("%s was measured of a file with %d bytes, and %s has %d: name the model that ran", runs, ran.ModelBytes, model, info.Size())
	}
	a := architectureOf(g)
	a.Seen = time.Now()
	for _, cell := range ran.Cells {
		if err := sameInputs(g, cell); err != nil {
			return a, term.Misuse("%s: %w", runs, err)
		}
		run := board.RunOf(cell)
		run.Machine, run.At = on.Name, a.Seen
		a.Runs = append(a.Runs, run)
	}
	if len(a.Runs) == 0 {
		return a, term.Misuse("%s has no measurement: it has to be what \"tandem edge run --json\" printed", runs)
	}
	if faults := emu.RunFaults(a.Runs); len(faults) > 0 {
		return a, term.Misuse("%s: %s %s", runs, faults[0].Path, faults[0].Message)
	}
	return a, nil
}

// sameInputs compares the sizes that a model ran with to those it is counted with:
// sizes that the file leaves open are told to both commands.
func sameInputs(g graph.Graph, cell emulator.Measurement) error {
	for _, input := range g.Inputs {
		at := slices.IndexFunc(cell.Inputs, func(one emulator.Input) bool { return one.Name == input.Name })
		if at < 0 {
			continue
		}
		ran := graph.Product(cell.Inputs[at].Shape...)
		if one := graph.Product(input.Shape...); ran != one && ran != graph.Product(one, int64(cell.Batch)) {
			return fmt.Errorf("%s ran as %v in a batch of %d, and is %v for a sample here: give both commands the same --dimension", input.Name, cell.Inputs[at].Shape, cell.Batch, input.Shape)
		}
	}
	return nil
}

// architectureOf is what is kept of a model.
func architectureOf(g graph.Graph) emu.Architecture {
	return emu.Architecture{Key: g.Key(), Graph: emu.Anonymous(g), ActivationBytes: g.PeakActivations(1), StoredBytes: g.StoredBytes()}
}
