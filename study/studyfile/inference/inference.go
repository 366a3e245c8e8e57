// Package inference reads the section inference of study files.
package inference

import (
	"errors"
	"strings"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
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
	leastMinutes = 0.01
	mostMinutes  = 1e6
	mostClocks   = 64
	mostMHz      = 1e5
)

// Read reads the section; nil where there is none.
func Read(s tree.Section) *definition.Inference {
	n, at := s.Get("inference")
	if n == nil {
		return nil
	}
	result := &definition.Inference{BatchSize: definition.BatchRange{Low: 1, High: 1}, Objective: definition.InferenceObjective{Metric: tuning.Latency}}
	known, ok := s.Open(at, n, "devices", "batch_size", "cores", "memory_mib", "budget_minutes", "clocks", "objective", "scenario", "precision", "accuracy_loss", "providers")
	if !ok {
		return result
	}
	result.Devices = readDevices(known)
	readScenario(known, result)
	readBounds(known, "batch_size", deployment.MaxBatch, &result.BatchSize)
	if n, _ := known.Get("cores"); n != nil {
		result.Cores = &definition.BatchRange{Low: 1, High: mostCores}
		readBounds(known, "cores", mostCores, result.Cores)
	}
	known.Whole("memory_mib", 1, maxMemoryMiB, &result.MemoryMiB)
	known.Number("budget_minutes", leastMinutes, mostMinutes, &result.BudgetMinutes)
	readClocks(known, result)
	if objective, at := known.Get("objective"); objective != nil {
		readObjective(s.Decoder, at, objective, &result.Objective)
	}
	readPrecision(known, result)
	if n, _ := known.Get("providers"); n != nil && n.Raw == "auto" {
		result.Providers = emu.Providers()
	} else {
		result.Providers = readNames(known, "providers", emu.Providers())
	}
	return result
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

// readObjective reads a metric, or a mapping with constraints.
func readObjective(d *tree.Decoder, at string, n *tree.Node, target *definition.InferenceObjective) {
	if n.Kind != tree.Mapping {
		readMetric(d, at, n, target)
		return
	}
	known, ok := d.Open(at, n, "metric", "constraint", "constraints")
	if !ok {
		return
	}
	if metric, at := known.Get("metric"); metric != nil {
		readMetric(d, at, metric, target)
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
			d.TextOf(paths[i], item, 1024, &written)
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

func readMetric(d *tree.Decoder, at string, n *tree.Node, target *definition.InferenceObjective) {
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
		d.Fault(at, n, "must be latency, throughput or energy (latency_seconds, samples_per_second or joules_per_sample)")
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
