package definition

import (
	"errors"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/problem"
)

// maxDevices bounds the devices of a study.
const maxDevices = 32

// Inference is the inference section: where the models will run, and what is
// wanted there.
type Inference struct {
	// Devices are names of the catalogue, or "this-machine" for the worker's
	// own. Objectives are about the first one.
	Devices []string `json:"devices"`
	// BatchSize bounds the batch that is searched.
	BatchSize BatchRange `json:"batch_size"`
	// Objective is what the best deployment is best in, and keeps to what.
	Objective InferenceObjective `json:"objective"`
}

// BatchRange are the batch sizes that are searched.
type BatchRange struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// InferenceObjective is what a deployment is chosen by.
type InferenceObjective struct {
	Metric tuning.Metric `json:"metric"`
	// Constraints are as they were written, such as "latency_ms <= 50".
	Constraints []string `json:"constraints,omitempty"`
}

// Settings are what the search for deployments takes. A checked definition's
// constraints can be read.
func (i Inference) Settings() (deployment.Settings, error) {
	settings := deployment.Settings{BatchLow: i.BatchSize.Low, BatchHigh: i.BatchSize.High, Objective: i.Objective.Metric}
	for _, text := range i.Objective.Constraints {
		constraint, err := tuning.ParseConstraint(text)
		if err != nil {
			return settings, err
		}
		settings.Constraints = append(settings.Constraints, constraint)
	}
	return settings, nil
}

// EdgeNames are the numbers that the server knows of a trial's model on the
// study's first device, if the study has an inference section: of one batch the
// latency, of the process the memory, and of one sample the rest.
func EdgeNames() []string {
	return []string{"edge.joules_per_sample", "edge.latency_ms", "edge.memory_mib", "edge.samples_per_second", "inference_joules", "inference_seconds"}
}

// inference reads the section; nil where there is none.
func (d *decoder) inference(s section) *Inference {
	n, at := s.get("inference")
	if n == nil {
		return nil
	}
	result := &Inference{BatchSize: BatchRange{1, 1}, Objective: InferenceObjective{Metric: tuning.Latency}}
	known, ok := d.section(at, n, "devices", "batch_size", "objective")
	if !ok {
		return result
	}
	result.Devices = d.devices(known)
	d.batchSize(known, &result.BatchSize)
	if objective, at := known.get("objective"); objective != nil {
		d.inferenceObjective(at, objective, &result.Objective)
	}
	return result
}

func (d *decoder) devices(s section) []string {
	const wanted = `where the model will run, such as [raspberry-pi-4]: "tandem edge devices" lists the names`
	n, at := s.need("devices", wanted)
	if n == nil {
		return nil
	}
	items, paths := elements(at, n)
	if len(items) == 0 || len(items) > maxDevices {
		d.fault(at, n, "must name 1 to %d devices", maxDevices)
		return nil
	}
	catalogue, err := device.Catalogue()
	if err != nil {
		d.fault(at, n, "cannot be checked: %v", err)
		return nil
	}
	var names []string
	for i, item := range items {
		var name string
		before := len(d.faults)
		d.textOf(paths[i], item, maxKey, &name)
		if len(d.faults) > before {
			continue
		}
		if _, err := device.Find(catalogue, name); err != nil && name != device.ThisMachine {
			d.fault(paths[i], item, "%s", message(err))
		} else if slices.Contains(names, name) {
			d.fault(paths[i], item, "is there already")
		}
		names = append(names, name)
	}
	return names
}

// batchSize reads a number or a range.
func (d *decoder) batchSize(s section, target *BatchRange) {
	n, at := s.get("batch_size")
	if n == nil {
		return
	}
	if n.kind != mapping {
		d.wholeOf(at, n, 1, deployment.MaxBatch, &target.Low)
		target.High = target.Low
		return
	}
	known, ok := d.section(at, n, "low", "high")
	if !ok {
		return
	}
	before := len(d.faults)
	target.High = deployment.MaxBatch
	known.whole("low", 1, deployment.MaxBatch, &target.Low)
	known.whole("high", 1, deployment.MaxBatch, &target.High)
	if len(d.faults) == before && target.High < target.Low {
		d.fault(at, n, "must have a high that is at least low")
	}
}

// inferenceObjective reads a metric, or a mapping with constraints.
func (d *decoder) inferenceObjective(at string, n *node, target *InferenceObjective) {
	if n.kind != mapping {
		d.inferenceMetric(at, n, target)
		return
	}
	known, ok := d.section(at, n, "metric", "constraint", "constraints")
	if !ok {
		return
	}
	if metric, at := known.get("metric"); metric != nil {
		d.inferenceMetric(at, metric, target)
	}
	for _, field := range []string{"constraint", "constraints"} {
		given, at := known.get(field)
		if given == nil {
			continue
		}
		items, paths := elements(at, given)
		for i, item := range items {
			var written string
			before := len(d.faults)
			d.textOf(paths[i], item, maxText, &written)
			if len(d.faults) > before {
				continue
			}
			constraint, err := tuning.ParseConstraint(written)
			switch {
			case err != nil:
				d.fault(paths[i], item, "%s", message(err))
			case constraint.Metric == tuning.Cost:
				d.fault(paths[i], item, "cannot be about cost, as prices are not known")
			}
			target.Constraints = append(target.Constraints, written)
		}
	}
}

func (d *decoder) inferenceMetric(at string, n *node, target *InferenceObjective) {
	var written string
	before := len(d.faults)
	d.textOf(at, n, maxKey, &written)
	if len(d.faults) > before {
		return
	}
	names := map[string]tuning.Metric{
		"latency": tuning.Latency, "throughput": tuning.Throughput, "energy": tuning.Energy,
		string(tuning.Latency): tuning.Latency, string(tuning.Throughput): tuning.Throughput, string(tuning.Energy): tuning.Energy,
	}
	metric, found := names[written]
	if !found {
		d.fault(at, n, "must be latency_seconds, samples_per_second or joules_per_sample")
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
