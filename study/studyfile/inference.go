package studyfile

import (
	"errors"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxDevices bounds the devices of a study, and the others what is asked of them.
const (
	maxDevices   = 32
	mostCores    = 1024
	maxMemoryMiB = 1 << 20
)

// readInference reads the section; nil where there is none.
func readInference(s tree.Section) *definition.Inference {
	n, at := s.Get("inference")
	if n == nil {
		return nil
	}
	result := &definition.Inference{BatchSize: definition.BatchRange{Low: 1, High: 1}, Objective: definition.InferenceObjective{Metric: tuning.Latency}}
	known, ok := s.Open(at, n, "devices", "batch_size", "cores", "memory_mib", "objective")
	if !ok {
		return result
	}
	result.Devices = readDevices(known)
	readBounds(known, "batch_size", deployment.MaxBatch, &result.BatchSize)
	if n, _ := known.Get("cores"); n != nil {
		result.Cores = &definition.BatchRange{Low: 1, High: mostCores}
		readBounds(known, "cores", mostCores, result.Cores)
	}
	known.Whole("memory_mib", 1, maxMemoryMiB, &result.MemoryMiB)
	if objective, at := known.Get("objective"); objective != nil {
		readInferenceObjective(s.Decoder, at, objective, &result.Objective)
	}
	return result
}

func readDevices(s tree.Section) []string {
	const wanted = `where the model will run, such as [raspberry-pi-4]: "tandem edge devices" lists the names`
	n, at := s.Need("devices", wanted)
	if n == nil {
		return nil
	}
	items, paths := tree.Elements(at, n)
	if len(items) == 0 || len(items) > maxDevices {
		s.Fault(at, n, "must name 1 to %d devices", maxDevices)
		return nil
	}
	catalogue, err := device.Catalogue()
	if err != nil {
		s.Fault(at, n, "cannot be checked: %v", err)
		return nil
	}
	var names []string
	for i, item := range items {
		var name string
		before := len(s.Faults)
		s.TextOf(paths[i], item, tree.MaxKey, &name)
		if len(s.Faults) > before {
			continue
		}
		if own, board := strings.CutPrefix(name, device.BoardPrefix); board {
			if !device.IsName(own) {
				s.Fault(paths[i], item, "must have small letters, digits and single hyphens after %s, as the board's --device has", device.BoardPrefix)
			}
		} else if _, err := device.Find(catalogue, name); err != nil && name != device.ThisMachine {
			s.Fault(paths[i], item, "%s; tandem edge agent makes a board of yours one, %sNAME", message(err), device.BoardPrefix)
		} else if slices.Contains(names, name) {
			s.Fault(paths[i], item, "is there already")
		}
		names = append(names, name)
	}
	return names
}

// readBounds reads a number or a range.
func readBounds(s tree.Section, field string, most int, target *definition.BatchRange) {
	n, at := s.Get(field)
	if n == nil {
		return
	}
	if n.Kind != tree.Mapping {
		s.WholeOf(at, n, 1, most, &target.Low)
		target.High = target.Low
		return
	}
	known, ok := s.Open(at, n, "low", "high")
	if !ok {
		return
	}
	before := len(s.Faults)
	target.High = most
	known.Whole("low", 1, most, &target.Low)
	known.Whole("high", 1, most, &target.High)
	if len(s.Faults) == before && target.High < target.Low {
		s.Fault(at, n, "must have a high that is at least low")
	}
}

// readInferenceObjective reads a metric, or a mapping with constraints.
func readInferenceObjective(d *tree.Decoder, at string, n *tree.Node, target *definition.InferenceObjective) {
	if n.Kind != tree.Mapping {
		readInferenceMetric(d, at, n, target)
		return
	}
	known, ok := d.Open(at, n, "metric", "constraint", "constraints")
	if !ok {
		return
	}
	if metric, at := known.Get("metric"); metric != nil {
		readInferenceMetric(d, at, metric, target)
	}
	for _, field := range []string{"constraint", "constraints"} {
		given, at := known.Get(field)
		if given == nil {
			continue
		}
		items, paths := tree.Elements(at, given)
		for i, item := range items {
			var written string
			before := len(d.Faults)
			d.TextOf(paths[i], item, maxText, &written)
			if len(d.Faults) > before {
				continue
			}
			if _, err := tuning.ParseConstraint(written); err != nil {
				d.Fault(paths[i], item, "%s", message(err))
			}
			target.Constraints = append(target.Constraints, written)
		}
	}
}

func readInferenceMetric(d *tree.Decoder, at string, n *tree.Node, target *definition.InferenceObjective) {
	var written string
	before := len(d.Faults)
	d.TextOf(at, n, tree.MaxKey, &written)
	if len(d.Faults) > before {
		return
	}
	names := map[string]tuning.Metric{
		"latency": tuning.Latency, "throughput": tuning.Throughput, "energy": tuning.Energy,
		string(tuning.Latency): tuning.Latency, string(tuning.Throughput): tuning.Throughput, string(tuning.Energy): tuning.Energy,
	}
	metric, found := names[written]
	if !found {
		d.Fault(at, n, "must be latency_seconds, samples_per_second or joules_per_sample")
		return
	}
	target.Metric = metric
}

// message is what is wrong, as the end of a sentence.
func message(err error) string {
	var told *problem.Error
	if errors.As(err, &told) && len(told.Fields) > 0 {
		return told.Fields[0].Message
	}
	return strings.TrimSpace(err.Error())
}
