package edgecmd

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
)

// edgeRunFlags are the flags of "tandem edge run".
type edgeRunFlags struct {
	batches, threads []int
	providers        []string
	cores            int
	memory           byteSize
	modelSize        byteSize
	dimensions       map[string]int64
	job              emulator.Job
	library          onnxruntime.Options
	meter            string
	json             bool
}

func runCommand() *cobra.Command {
	flags := edgeRunFlags{memory: emulator.DefaultMemoryBytes, modelSize: emulator.DefaultModelBytes}
	command := &cobra.Command{
		Use:   "run MODEL.onnx",
		Short: "Run a model on this machine, within limits, and say how long it takes",
		Long: `Run an ONNX model on this machine with ONNX Runtime, once and again with each
batch size and number of threads, and say what a run takes: percentiles of the
latency, throughput, memory and joules a sample.

The file need not be trusted: it is read by a process that can open no file and
no connection, start nothing, and take no more memory and time than it is given.
Inputs are made up from what the model declares.`,
		Example: `  tandem edge run model.onnx
  tandem edge run model.onnx --batch 1,8,32 --threads 1,2 --memory 512MiB
  tandem edge run text.onnx --dimension sequence=128 --int-range 30000
  tandem edge run model.onnx --meter command:./plug
  tandem edge run model.onnx --provider all
  tandem edge run model.onnx --batch 1,2,4,8,16 --json > run.json`,
		Args: term.Arguments(1, "a file with an ONNX model"),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.run(command, args[0])
		},
	}
	set := command.Flags()
	set.IntSliceVar(&flags.batches, "batch", []int{1}, fmt.Sprintf("batch sizes to measure, 1 to %d", emulator.MaxBatch))
	set.IntSliceVar(&flags.threads, "threads", []int{1}, "numbers of threads to measure")
	set.StringSliceVar(&flags.providers, "provider", []string{emu.CPU}, "execution providers to measure with: "+strings.Join(emu.Providers(), ", ")+", or all that can be used here")
	set.IntVar(&flags.cores, "cores", 0, "logical cores the threads share (0: one for each thread)")
	set.Var(&flags.memory, "memory", "memory the model may take beyond the loaded library")
	set.Var(&flags.modelSize, "model-size", "how large the file may be")
	set.Float64Var(&flags.job.Precision.Seconds, "seconds", emulator.DefaultSeconds, "how long each setting is measured at most")
	set.Float64Var(&flags.job.Precision.RelativeWidth, "width", emulator.DefaultRelativeWidth, "measure until the 95% interval of the median is this narrow, as a part of the median")
	set.IntVar(&flags.job.Precision.MinRuns, "min-runs", emulator.DefaultMinRuns, "how many runs are measured at least")
	set.StringToInt64Var(&flags.dimensions, "dimension", nil, "size of an open dimension, by NAME=SIZE or INPUT:AXIS=SIZE (default 1)")
	set.StringVar(&flags.job.Inputs.BatchDimension, "batch-dim", "", "name of the open dimension that is the batch (default: as its name says, else the first)")
	set.Int64Var(&flags.job.Inputs.IntegersBelow, "int-range", 2, "integers made up for inputs are from 0 to one less: the length of a table they are looked up in")
	set.DurationVar(&flags.job.Limits.Wall, "timeout", 0, "how long all may take together (0: twice the --seconds of each setting, and 10s for each and 30s)")
	set.Float64Var(&flags.job.WattsPerCore, "watts-per-core", 0, "power of a busy core, for energy estimates where there is no meter")
	set.StringVar(&flags.library.Named, "onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in (default: $"+onnxruntime.Variable+", else looked for)")
	AddMeterFlag(command, &flags.meter)
	set.BoolVar(&flags.json, "json", false, "print JSON for scripts")
	return command
}

// emulationProcessCommand is the process that looks at the model. People have no
// use for it.
func emulationProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use:    emulator.Subcommand()[1],
		Hidden: true,
		Args:   term.Arguments(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if code := emulator.Process(); code != 0 {
				return term.Ended{Code: code}
			}
			return nil
		},
	}
}

// edgeRun is what "tandem edge run --json" prints.
type edgeRun struct {
	Model string `json:"model"`
	emulator.Result
}

func (f *edgeRunFlags) run(command *cobra.Command, path string) error {
	job := f.job
	file, err := os.Open(path)
	if err != nil {
		return term.Misuse("%w", err)
	}
	defer file.Close()
	if job.Library, err = onnxruntime.Find(command.Context(), f.library); err != nil {
		return err
	}
	job.Model, job.Inputs.Dimensions = file, f.dimensions
	job.Limits.MemoryBytes, job.Limits.ModelBytes = int64(f.memory), int64(f.modelSize)
	if slices.Contains(f.providers, "all") {
		usable, lacking := emulator.Providers(command.Context(), job.Library)
		f.providers = append([]string{emu.CPU}, usable...)
		for _, one := range lacking {
			fmt.Fprintln(command.ErrOrStderr(), format.Plain("not measured with "+one))
		}
	}
	job.Cells = f.cells()
	meter, ended, err := OpenMeter(f.meter)
	if err != nil {
		return err
	}
	defer ended()
	job.Meter = meter
	done := 0
	job.Progress = func(m emulator.Measurement) {
		done++
		fmt.Fprintf(command.ErrOrStderr(), "%d/%d  batch %d, %s, %s: %s a run\n", done, len(job.Cells), m.Batch, format.Count(m.Threads, "thread"), cmp.Or(m.Provider, emu.CPU), show.Span(m.Latency.P50))
	}
	result, failed := emulator.Run(command.Context(), job)
	if failed != nil && len(result.Cells) == 0 {
		return whyNot(path, f.dimensions, failed)
	}
	if err := term.PrintAnswer(command.OutOrStdout(), f.json, edgeRun{path, result}, printEdgeRun); err != nil {
		return err
	}
	return failed
}

// whyNot adds to the runtime's words what the file itself says about a failure.
func whyNot(path string, dimensions map[string]int64, failed error) error {
	g, err := readGraph(path, onnx.Options{Dimensions: dimensions})
	var open *problem.Error
	switch {
	case errors.As(err, &open) && len(open.Fields) > 0:
		return fmt.Errorf("%w; it was run with 1 for each size that the file leaves open, --dimension gives others: %s", failed, oneLine(*open))
	case err == nil && g.WeightsOutside:
		return fmt.Errorf("%w; weights of %s are in another file, which is not read: save them in it, in Python onnx.save_model(onnx.load(old), new, save_as_external_data=False)", failed, path)
	}
	return failed
}

// cells are all combinations of a provider, a number of threads and a batch size, each once.
func (f *edgeRunFlags) cells() (cells []emulator.Cell) {
	for _, provider := range f.providers {
		if provider == emu.CPU {
			provider = ""
		}
		for _, threads := range f.threads {
			for _, batch := range f.batches {
				cell := emulator.Cell{Batch: batch, Threads: threads, Cores: f.cores, Provider: provider}
				if !slices.Contains(cells, cell) {
					cells = append(cells, cell)
				}
			}
		}
	}
	return cells
}

// byteSize is a flag such as 512MiB.
type byteSize int64

// sizeUnits are from the largest to the smallest.
func sizeUnits() []string { return []string{"GiB", "MiB", "KiB", "B"} }

// String is the flag's value as it is written.
func (s byteSize) String() string {
	for at, unit := range sizeUnits() {
		if size := int64(1) << (10 * (len(sizeUnits()) - 1 - at)); int64(s) >= size && int64(s)%size == 0 {
			return strconv.FormatInt(int64(s)/size, 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Set reads the flag's value.
func (s *byteSize) Set(text string) error {
	number, size := text, int64(1)
	for at, unit := range sizeUnits() {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			number, size = rest, int64(1)<<(10*(len(sizeUnits())-1-at))
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !(value > 0) || value*float64(size) >= math.MaxInt64/4 {
		return fmt.Errorf("must be a size such as 512MiB or 2GiB")
	}
	*s = byteSize(value * float64(size))
	return nil
}

// Type is what the help calls it.
func (s *byteSize) Type() string { return "size" }
