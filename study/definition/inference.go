package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// Inference is the inference section: where the models will run, and what is
// wanted there.
type Inference struct {
	// Devices are where the models will run. Objectives are about the first one.
	Devices []InferenceDevice `json:"devices"`
	// BatchSize bounds the batch that is searched.
	BatchSize BatchRange `json:"batch_size"`
	// Cores bounds the cores; a device with fewer has all of its own. Nil: all may be used.
	Cores *BatchRange `json:"cores,omitempty"`
	// MemoryMiB is what weights and activations may take at most; 0: the device's memory.
	MemoryMiB int `json:"memory_mib,omitempty"`
	// BudgetMinutes is how long inferences may be measured for the study; 0: as long as there
	// is something to learn.
	BudgetMinutes float64 `json:"budget_minutes,omitempty"`
	// Clocks are the clocks to search, in MHz; none: all that a device has. Unpinned: as a
	// device is, no clock is set.
	Clocks   []float64 `json:"clocks,omitempty"`
	Unpinned bool      `json:"unpinned,omitempty"`
	// Objective is what the best deployment is best in, and keeps to what.
	Objective InferenceObjective `json:"objective"`
	// Scenario is how requests come; nil: one after the other.
	Scenario *Scenario `json:"scenario,omitempty"`
	// Precision are those in which a trained model is compared, fp32 first; empty: it is
	// deployed as it was trained.
	Precision []string `json:"precision,omitempty"`
	// AccuracyLoss is which share of its value a model may lose by another precision; nil:
	// [DefaultAccuracyLoss].
	AccuracyLoss *float64 `json:"accuracy_loss,omitempty"`
	// Providers are the execution providers that are compared, the CPU's own first; empty: that
	// one runs the model.
	Providers []string `json:"providers,omitempty"`
}

// DefaultAccuracyLoss is MLPerf Inference's: 99% of the value in fp32 has to stay.
const DefaultAccuracyLoss = 0.01

// WantedAt are the precisions in which the model is wanted after a run at the rung: the
// last, since models that win are trained there.
func (i *Inference) WantedAt(rung int, ladder []budget.Rung) []string {
	if i == nil || rung < len(ladder)-1 {
		return nil
	}
	return i.Precision
}

// MayLose is AccuracyLoss or its default.
func (i Inference) MayLose() float64 {
	if i.AccuracyLoss == nil {
		return DefaultAccuracyLoss
	}
	return *i.AccuracyLoss
}

// InferenceDevice is a name of the catalogue, "this-machine" for the worker's own,
// "board/" and a board's name, or a device that the study file describes.
type InferenceDevice struct {
	Name string
	Own  *device.Device
}

// MarshalJSON writes the name, or the description.
func (d InferenceDevice) MarshalJSON() ([]byte, error) {
	if d.Own != nil {
		return json.Marshal(d.Own)
	}
	return json.Marshal(d.Name)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *InferenceDevice) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, &d.Name)
	}
	err := json.Unmarshal(data, &d.Own)
	if err == nil {
		d.Name = d.Own.Name
	}
	return err
}

// Scenario is how requests come, by the names of MLPerf Inference: one of these.
type Scenario struct {
	Server      *ServerScenario      `json:"server,omitempty"`
	MultiStream *MultiStreamScenario `json:"multi-stream,omitempty"`
}

// ServerScenario is requests of one sample that come independently of each other.
type ServerScenario struct {
	// Rate is how many come in a second, P99MS what the 99th percentile of waiting and
	// inference may be in milliseconds.
	Rate  float64 `json:"rate"`
	P99MS float64 `json:"p99_ms"`
}

// MultiStreamScenario is requests of so many samples, one after the other.
type MultiStreamScenario struct {
	Streams int `json:"streams"`
}

// BatchRange are the batch sizes, or the numbers of cores, that are searched.
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

// Names are the devices' names.
func (i Inference) Names() (names []string) {
	for _, one := range i.Devices {
		names = append(names, one.Name)
	}
	return names
}

// Own are the devices that the study file describes.
func (i Inference) Own() (own []device.Device) {
	for _, one := range i.Devices {
		if one.Own != nil {
			own = append(own, *one.Own)
		}
	}
	return own
}

// plan says for where and for what deployments are searched.
func (i *Inference) plan() []string {
	if i == nil {
		return nil
	}
	text := "Deployed on " + strings.Join(i.Names(), ", ") + ", best in " + string(i.Objective.Metric)
	switch load, _ := i.Settings(); { // what cannot be read here is a later version's
	case load.Load == nil:
	case load.Load.Streams > 0:
		text += fmt.Sprintf(", for requests of %d samples", load.Load.Streams)
	default:
		text += fmt.Sprintf(", for %g requests/s with a p99 of at most %g ms", load.Load.Rate, 1e3*load.Load.P99Seconds)
	}
	if i.BudgetMinutes > 0 {
		text += fmt.Sprintf(", with at most %g minutes of measuring", i.BudgetMinutes)
	}
	if len(i.Precision) > 0 {
		text += fmt.Sprintf(", compared in %s with a loss of at most %g%%", strings.Join(i.Precision, ", "), 100*i.MayLose())
	}
	if len(i.Providers) > 0 {
		text += ", by the execution providers " + strings.Join(i.Providers, ", ")
	}
	return []string{text + "."}
}

// Settings are what the search for deployments takes. A checked definition's
// constraints can be read.
func (i Inference) Settings() (deployment.Settings, error) {
	settings := deployment.Settings{BatchLow: i.BatchSize.Low, BatchHigh: i.BatchSize.High, Objective: i.Objective.Metric}
	settings.MemoryBytes, settings.Unpinned, settings.Providers = int64(i.MemoryMiB)<<20, i.Unpinned, i.Providers
	for _, clock := range i.Clocks {
		settings.ClocksHertz = append(settings.ClocksHertz, clock*1e6)
	}
	if i.Cores != nil {
		settings.CoresLow, settings.CoresHigh = i.Cores.Low, i.Cores.High
	}
	if i.Scenario != nil && i.Scenario.Server != nil {
		settings.Load = &deployment.Load{Rate: i.Scenario.Server.Rate, P99Seconds: i.Scenario.Server.P99MS / 1000}
	} else if i.Scenario != nil && i.Scenario.MultiStream != nil {
		settings.Load = &deployment.Load{Streams: i.Scenario.MultiStream.Streams}
	}
	for _, text := range i.Objective.Constraints {
		constraint, err := tuning.ParseConstraint(text)
		if err != nil {
			return settings, err
		}
		settings.Constraints = append(settings.Constraints, constraint)
	}
	return settings, nil
}
