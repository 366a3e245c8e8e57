package edgecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/board"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/format"
)

// calibrateFlags are the flags of "tandem edge calibrate".
type calibrateFlags struct {
	deviceFiles []string
	dimensions  map[string]string
	output      string
	server      term.Connection
	upload      bool
	force       bool
	json        bool
}

func calibrateCommand() *cobra.Command {
	var flags calibrateFlags
	command := &cobra.Command{
		Use:   "calibrate DEVICE MODEL.onnx=RUN.json...",
		Short: "Fit the estimates of a device to a few measurements on it",
		Long: `Fit the estimates of a device to what inferences really took there. Copy a few
models to the device, run "tandem edge run MODEL.onnx --batch 1,8 --threads 1,4
--json > RUN.json" on it, and give the files here: 10 to 20 measurements bring
the median error to a few percent on most devices (docs/benchmarks/edgetune.md).

It says how far the estimates were off without the measurements, and with all but
those of one model for that model. Runs on another processor than the device's are
refused, and measurements that make it worse. --output writes them for "tandem edge deploy
--calibration"; --upload gives them to a server, whose studies then use them.`,
		Example: `  tandem edge calibrate raspberry-pi-4 lenet.onnx=lenet.json mobilenet.onnx=mobilenet.json --output pi.json
  tandem edge calibrate raspberry-pi-4 lenet.onnx=lenet.json --upload --server http://127.0.0.1:7171`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return term.Misuse("name a device, and models with their runs: tandem edge calibrate DEVICE MODEL.onnx=RUN.json")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return flags.run(command, args[0], args[1:])
		},
	}
	set := command.Flags()
	set.StringArrayVar(&flags.deviceFiles, "device-file", nil, "YAML `file` that describes a device of your own; may be repeated")
	set.StringToStringVar(&flags.dimensions, "dimension", nil, "sizes of dimensions that the models leave open, as `name=size`")
	set.StringVar(&flags.output, "output", "", "`file` to write the measurements to")
	set.BoolVar(&flags.upload, "upload", false, "give the measurements to the server (needs an admin's token)")
	set.BoolVar(&flags.force, "force", false, "take measurements too that make estimates worse, or whose file names another processor than the device's")
	set.BoolVar(&flags.json, "json", false, "print JSON for scripts")
	term.AddConnectionFlags(command, &flags.server)
	return command
}

// calibrated is what "tandem edge calibrate --json" prints.
type calibrated struct {
	Device       string `json:"device"`
	Models       int    `json:"models"`
	Measurements int    `json:"measurements"`
	// Before and After are errors of the latency, |estimate / measured - 1|,
	// without the measurements and with those of the other models; After is absent
	// with one model.
	Before calibrationError  `json:"before"`
	After  *calibrationError `json:"after,omitempty"`
	// Helps says that with the measurements of the others a model's errors are smaller
	// in the mean of their logarithms, or that this cannot be judged.
	Helps bool `json:"helps"`
	// EnergyMethods are the ways in which the runs' joules were obtained.
	EnergyMethods []string `json:"energy_methods"`
}

type calibrationError struct {
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
}

func (f *calibrateFlags) run(command *cobra.Command, name string, files []string) error {
	devices, err := knownDevices(f.deviceFiles)
	if err != nil {
		return err
	}
	on, err := findDevice(devices, name)
	if err != nil {
		return err
	}
	var all []emu.Architecture
	for _, pair := range files {
		one, err := f.read(pair, on)
		if err != nil {
			return err
		}
		all = together(all, one)
	}
	rates := deployment.Rates(on)
	answer, err := judge(rates, all)
	if err != nil {
		return err
	}
	answer.EnergyMethods = energyMethods(all)
	if err := f.keep(command, answer, all); err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(command.OutOrStdout(), answer)
	}
	out := command.OutOrStdout()
	printCalibrated(out, answer)
	switch {
	case f.output != "":
		fmt.Fprintf(out, "Written to %s: tandem edge deploy MODEL.onnx --device %s --calibration %s\n", format.Plain(f.output), answer.Device, format.Plain(f.output))
	case !f.upload:
		fmt.Fprintln(out, "Nothing was kept: --output writes the measurements to a file, --upload gives them to a server.")
	}
	if f.upload {
		fmt.Fprintf(out, "The server has them: studies with %s among their devices use them from now on. Values that trials have already stay as they were.\n", answer.Device)
	}
	return nil
}

// keep writes and uploads the measurements, if they help.
func (f *calibrateFlags) keep(command *cobra.Command, answer calibrated, all []emu.Architecture) error {
	if !answer.Helps && !f.force && (f.output != "" || f.upload) {
		printCalibrated(command.ErrOrStderr(), answer)
		return errors.New("nothing was kept: these measurements make estimates of other models worse. Measure more models, such as those that you will deploy, or keep them all the same with --force")
	}
	if f.output != "" {
		content, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.output, append(content, '\n'), 0o644); err != nil {
			return err
		}
	}
	if !f.upload {
		return nil
	}
	client, err := f.server.Open()
	if err != nil {
		return err
	}
	_, err = client.ImportArchitectures(command.Context(), all)
	return err
}

// together adds an architecture. What was measured of it in several files is one
// model's: what was measured last of a batch and a number of threads stays.
func together(all []emu.Architecture, one emu.Architecture) []emu.Architecture {
	if at := slices.IndexFunc(all, func(known emu.Architecture) bool { return known.Key == one.Key }); at >= 0 {
		all[at] = all[at].With(one.Runs)
		return all
	}
	return append(all, one)
}

// energyMethods are the ways in which the joules were obtained.
func energyMethods(all []emu.Architecture) []string {
	methods := []string{}
	for _, one := range all {
		for _, run := range one.Runs {
			if run.EnergyMethod != "" && !slices.Contains(methods, run.EnergyMethod) {
				methods = append(methods, run.EnergyMethod)
			}
		}
	}
	return methods
}

// read makes an architecture with runs of a model and what "tandem edge run
// --json" printed on the device.
func (f *calibrateFlags) read(pair string, on device.Device) (emu.Architecture, error) {
	model, runs, found := strings.Cut(pair, "=")
	if !found {
		return emu.Architecture{}, term.Misuse("%q is no pair of a model and its runs: write MODEL.onnx=RUN.json", pair)
	}
	g, err := readModel(model, f.dimensions)
	if err != nil {
		return emu.Architecture{}, err
	}
	content, err := os.ReadFile(filepath.Clean(runs))
	if err != nil {
		return emu.Architecture{}, term.Misuse("%w", err)
	}
	var ran edgeRun
	if err := json.Unmarshal(content, &ran); err != nil {
		return emu.Architecture{}, term.Misuse("%s: %w: it has to be what \"tandem edge run --json\" printed", runs, err)
	}
	if len(ran.Cells) == 0 {
		return emu.Architecture{}, term.Misuse("%s has no measurement: it has to be what \"tandem edge run --json\" printed", runs)
	}
	if ran.Environment.CPUModel != "" && !f.force && !on.MayBe(ran.Environment.CPUModel) {
		return emu.Architecture{}, term.Misuse("%s: environment.cpu_model is %q, and the processor of %s is %q: run \"tandem edge run\" on the device itself, name the device that ran, or take them all the same with --force", runs, ran.Environment.CPUModel, on.Name, on.Processor.Value)
	}
	if info, err := os.Stat(filepath.Clean(model)); err == nil && ran.ModelBytes > 0 && info.Size() != ran.ModelBytes {
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
	return emu.Architecture{Key: g.Key(), Graph: emu.Anonymous(g), ActivationBytes: g.PeakActivations(1), StoredBytes: g.Cost(1).StoredBytes}
}

// judge says how far estimates are from the measurements.
func judge(rates estimate.Device, all []emu.Architecture) (calibrated, error) {
	answer := calibrated{Device: rates.Name, Models: len(all)}
	knowledge, err := estimate.Known()
	if err != nil {
		return answer, err
	}
	var measurements []estimate.Measurement
	for _, one := range all {
		measurements = append(measurements, measurementsOf(one)...)
	}
	before, after := estimate.LeftOut(rates, measurements, knowledge, len(measurements), nil)
	answer.Measurements, answer.Helps = len(measurements), estimate.Helps(before, after)
	answer.Before = errorOf(before)
	if len(after) > 0 {
		e := errorOf(after)
		answer.After = &e
	}
	return answer, nil
}

func measurementsOf(a emu.Architecture) []estimate.Measurement {
	var list []estimate.Measurement
	workload := estimate.Summarize(a.Graph)
	for _, run := range a.Runs {
		list = append(list, estimate.Measurement{
			Workload: workload, Configuration: estimate.Configuration{Batch: run.Batch, Cores: run.Threads}, Seconds: run.Seconds, Joules: run.Joules,
		})
	}
	return list
}

// errorOf is of logarithms of estimate over measurement.
func errorOf(logarithms []float64) calibrationError {
	var errors []float64
	for _, one := range logarithms {
		errors = append(errors, math.Abs(math.Expm1(one)))
	}
	slices.SortFunc(errors, func(a, b float64) int { return cmp.Compare(a, b) })
	at := func(part float64) float64 { return errors[min(len(errors)-1, int(part*float64(len(errors))))] }
	return calibrationError{Median: at(0.5), P90: at(0.9)}
}

func printCalibrated(out io.Writer, c calibrated) {
	fmt.Fprintf(out, "%s: %s of %s\n", c.Device, format.Count(c.Measurements, "measurement"), format.Count(c.Models, "model"))
	rows := [][]string{{"without them", shownError(c.Before.Median), shownError(c.Before.P90)}}
	if c.After != nil {
		rows = append(rows, []string{"with those of the other models", shownError(c.After.Median), shownError(c.After.P90)})
	}
	_ = term.Table(out, []string{"LATENCY, ESTIMATED", "MEDIAN ERROR", "90TH PERCENTILE"}, rows) // as the lines around it
	if c.After == nil {
		fmt.Fprintln(out, "With one model it cannot be said how far others are off: give two or more.")
	}
	if !c.Helps {
		fmt.Fprintln(out, "These measurements make estimates of other models worse: studies do not use them.")
	}
	for _, method := range c.EnergyMethods {
		if strings.HasPrefix(method, "estimate") && c.Device != device.ThisMachine {
			fmt.Fprintf(out, "The joules are not used, as no meter told them (%s): energy stays estimated from the device's own watts.\n", format.Plain(method))
		}
	}
}

func shownError(e float64) string { return fmt.Sprintf("%.1f %%", 100*e) }
