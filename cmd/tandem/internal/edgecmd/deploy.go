package edgecmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// deployFlags are the flags of "tandem edge deploy".
type deployFlags struct {
	devices     []string
	deviceFiles []string
	measured    []string
	low, high   int
	objective   string
	constraints []string
	dimensions  map[string]string
	rate        string
	p99         time.Duration
	streams     int
	program     bool
	json        bool
}

func deployCommand() *cobra.Command {
	var flags deployFlags
	command := &cobra.Command{
		Use:   "deploy MODEL.onnx",
		Short: "Find the best batch, cores and clock for a model on each device",
		Long: `Find the best batch, number of cores and clock for a model on each device, and
say what an inference then takes, with a band around every estimate.

Nothing is run. The estimates stand on what a device is made of, and on what
"tandem edge run --json" printed there, by --measured: without any, the band is a
factor of three to ten to either side. 10 to 20 measurements of a few models bring
the median error to a few percent on most devices (docs/benchmarks/edgetune.md).
Those that make estimates of other models worse are left out. What is measured of
the model itself goes before every estimate. Runs by other execution providers than
cpu count for the model itself only: estimates are of cpu.

The latency is that of a batch, so that the smallest batch has the least: for
larger ones ask for throughput or energy, with --constraint 'latency_ms <= 50'. If
no device keeps to the constraints, the exit code is 1.`,
		Example: `  tandem edge deploy model.onnx
  tandem edge deploy model.onnx --device raspberry-pi-4 --batch-high 16 --objective energy --constraint 'latency_ms <= 50'
  tandem edge deploy model.onnx --device raspberry-pi-4 --program > infer.py
  tandem edge deploy model.onnx --device raspberry-pi-4 --batch-high 32 --rate 20/s --p99 500ms
  tandem edge deploy model.onnx --device my-board --device-file my-board.yaml --measured other.onnx=run.json`,
		Args: term.Arguments(1, "a file with an ONNX model"),
		RunE: func(command *cobra.Command, args []string) error {
			if set := command.Flags(); set.Changed("batch-high") && flags.high < flags.low {
				return term.Misuse("--batch-low %d --batch-high %d: the smallest batch is larger than the largest", flags.low, flags.high)
			}
			return flags.run(command.OutOrStdout(), args[0])
		},
	}
	set := command.Flags()
	set.StringSliceVar(&flags.devices, "device", nil, "device to deploy on (repeatable; default: all that are known)")
	set.StringArrayVar(&flags.deviceFiles, "device-file", nil, "YAML `file` that describes a device of your own; may be repeated")
	set.StringArrayVar(&flags.measured, "measured", nil, "a model that was measured on the one device, and the file with its runs, as `MODEL.onnx=RUN.json`; may be repeated")
	set.IntVar(&flags.low, "batch-low", 1, "smallest batch")
	set.IntVar(&flags.high, "batch-high", 1, fmt.Sprintf("largest batch, at most %d", deployment.MaxBatch))
	set.StringVar(&flags.objective, "objective", "latency", "latency, throughput or energy")
	set.StringArrayVar(&flags.constraints, "constraint", nil, "what to keep to, such as 'latency_ms <= 50'; may be repeated")
	set.StringToStringVar(&flags.dimensions, "dimension", nil, "sizes of dimensions that the file leaves open, as `name=size`")
	set.StringVar(&flags.rate, "rate", "", "requests of one sample that come in a second, independently, such as 20/s; with --p99")
	set.DurationVar(&flags.p99, "p99", 0, "what the 99th percentile of waiting and inference may be, such as 500ms")
	set.IntVar(&flags.streams, "streams", 0, "samples of a request, where requests come one after the other")
	set.BoolVar(&flags.program, "program", false, "print the program that runs the model so, for one device")
	set.BoolVar(&flags.json, "json", false, "print JSON for scripts")
	return command
}

func (f *deployFlags) run(out io.Writer, path string) error {
	settings, err := f.settings()
	if err != nil {
		return err
	}
	g, err := readModel(path, f.dimensions)
	if err != nil {
		return err
	}
	if fixed := g.FixedBatch; (f.low > 1 || f.high > 1) && fixed > 0 && (fixed < int64(settings.BatchLow) || fixed > int64(settings.BatchHigh)) {
		return term.Misuse("--batch-low %d --batch-high %d: %s takes %d at a time: export it with an open first dimension, or leave these flags out", settings.BatchLow, settings.BatchHigh, path, fixed)
	}
	a := architectureOf(g)
	targets, err := f.targets()
	if err != nil {
		return err
	}
	if (f.program || len(f.measured) > 0) && len(targets) != 1 {
		return term.Misuse("--program and --measured are for one device: name it with --device")
	}
	var known []emu.Architecture
	for _, pair := range f.measured {
		one, err := readMeasured(pair, f.dimensions, targets[0].Device)
		if err != nil {
			return err
		}
		known = append(known, one)
		for _, run := range one.Runs {
			if run.Provider != "" && !slices.Contains(targets[0].Providers, run.Provider) {
				targets[0].Providers = append(targets[0].Providers, run.Provider)
			}
		}
	}
	if len(known) > 0 && len(targets[0].Providers) > 0 {
		settings.Providers = append([]string{emu.CPU}, targets[0].Providers...)
	}
	found := make([]deployment.Deployment, 0, len(targets))
	for _, target := range targets {
		one, err := deployment.Compare([]deployment.Variant{{Architecture: a}}, target, known, settings, deployment.Tolerance{})
		if err != nil {
			return fmt.Errorf("device %s: %w", target.Device.Name, err)
		}
		found = append(found, one)
	}
	switch {
	case f.program && !found[0].Runs():
		return fmt.Errorf("there is no program: %s: %s", found[0].Device, strings.Join(found[0].Unmet, "; "))
	case f.program:
		_, err = io.WriteString(out, found[0].Code)
	default:
		err = term.PrintAnswer(out, f.json, found, show.PrintDeployments)
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(one deployment.Deployment) bool { return one.Feasible }) {
		return errors.New("no device keeps to the constraints: loosen one, or name other devices or batches")
	}
	return nil
}

func (f *deployFlags) settings() (deployment.Settings, error) {
	s := deployment.Settings{BatchLow: f.low, BatchHigh: max(f.low, f.high)}
	if s.BatchLow < 1 || s.BatchHigh > deployment.MaxBatch {
		return s, term.Misuse("--batch-low %d --batch-high %d: batches are from 1 to %d", f.low, f.high, deployment.MaxBatch)
	}
	metrics := map[string]tuning.Metric{"latency": tuning.Latency, "throughput": tuning.Throughput, "energy": tuning.Energy}
	metric, known := metrics[f.objective]
	if !known {
		return s, term.Misuse("--objective %q: it is latency, throughput or energy", f.objective)
	}
	s.Objective = metric
	if f.streams < 0 || f.streams > deployment.MaxStreams || f.streams > 0 && (f.rate != "" || f.p99 != 0 || metric == tuning.Throughput) {
		return s, term.Misuse("--streams %d: give 1 to %d samples without --rate and --p99, for latency or energy", f.streams, deployment.MaxStreams)
	}
	if f.streams > 0 {
		s.Load = &deployment.Load{Streams: f.streams}
	}
	if f.rate != "" || f.p99 != 0 {
		rate, err := ratePerSecond(f.rate)
		if err != nil || f.p99 <= 0 || metric == tuning.Throughput {
			return s, term.Misuse("--rate %q --p99 %s --objective %s: a load is both, such as --rate 20/s --p99 500ms, for latency or energy", f.rate, f.p99, f.objective)
		}
		s.Load = &deployment.Load{Rate: rate, P99Seconds: f.p99.Seconds()}
	}
	for _, text := range f.constraints {
		constraint, err := tuning.ParseConstraint(text)
		if err != nil {
			return s, term.Misuse("--constraint: %w", err)
		}
		s.Constraints = append(s.Constraints, constraint)
	}
	return s, nil
}

// ratePerSecond reads requests a second, such as 200/s.
func ratePerSecond(text string) (float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "/s"), 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return 0, errors.New("it is not a number above 0, such as 200/s")
	}
	return rate, nil
}

// targets are the devices to deploy on.
func (f *deployFlags) targets() ([]deployment.Target, error) {
	devices, err := knownDevices(f.deviceFiles)
	if err != nil {
		return nil, err
	}
	if len(f.devices) > 0 {
		var chosen []device.Device
		for _, name := range f.devices {
			one, err := findDevice(devices, name)
			if err != nil {
				return nil, err
			}
			chosen = append(chosen, one)
		}
		devices = chosen
	}
	var targets []deployment.Target
	for _, one := range devices {
		targets = append(targets, deployment.Target{Device: one, Machine: one.Name, Judged: true})
	}
	return targets, nil
}
