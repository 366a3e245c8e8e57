package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// Variant is a trained model in one precision, run by one execution provider: empty, the CPU's.
type Variant struct {
	Precision    string
	Provider     string
	Architecture emu.Architecture
	// Value is what it is worth on so many samples of validation data.
	Value   float64
	Samples int
}

// Tolerance is what a precision may cost.
type Tolerance struct {
	// Minimize says that less of the value is better.
	Minimize bool
	// Loss is which share of the first variant's value may be lost.
	Loss float64
}

// ComparedPrecision is what a precision comes to on a device, with an execution provider.
type ComparedPrecision struct {
	Precision string  `json:"precision,omitempty"`
	Provider  string  `json:"provider,omitempty" doc:"the execution provider; absent where one is looked at"`
	Value     float64 `json:"value" doc:"what the model is worth in it, by the script's own function"`
	Samples   int     `json:"samples" doc:"samples of validation data on which that was measured"`
	// Lost is the share of the first one's value that it lost; negative if it gained.
	Lost   float64 `json:"lost" doc:"share of the value in fp32 that it lost; negative if it gained"`
	Chosen bool    `json:"chosen,omitempty"`
	Why    string  `json:"why" doc:"why it is recommended, or not"`
	// Measured is the best that was measured of it, nil where nothing was.
	Measured *MeasuredPrecision `json:"measured,omitempty" doc:"the best that was measured of it on the device; absent where nothing was"`

	found Deployment
}

// MeasuredPrecision is what an inference in a precision took.
type MeasuredPrecision struct {
	Configuration    tuning.Configuration `json:"configuration"`
	Feasible         bool                 `json:"feasible"`
	LatencySeconds   Band                 `json:"latency_seconds"`
	SamplesPerSecond float64              `json:"samples_per_second"`
	JoulesPerSample  Band                 `json:"joules_per_sample"`
	EnergyMethod     string               `json:"energy_method"`
	MemoryBytes      int64                `json:"memory_bytes"`
}

// String is what the precision is worth and takes, and why it is recommended, or not.
func (c ComparedPrecision) String() string {
	var parts []string
	if c.Samples > 0 {
		parts = append(parts, fmt.Sprintf("is worth %.4g on %d samples", c.Value, c.Samples))
	}
	if c.Measured != nil {
		band := c.Measured.LatencySeconds
		parts = append(parts, fmt.Sprintf("takes %.3g ms (%.3g to %.3g)", 1e3*band.Value, 1e3*band.Low, 1e3*band.High))
	}
	text := strings.TrimSpace(c.name() + " " + strings.Join(parts, " and "))
	if c.Chosen {
		return text + ", recommended: " + c.Why
	}
	return text + ", not recommended: " + c.Why
}

func (c ComparedPrecision) name() string {
	return strings.Join(slices.DeleteFunc([]string{c.Precision, c.Provider}, func(part string) bool { return part == "" }), " with ")
}

// Compare is the answer for the model in the precision, and by the execution provider of the
// settings, that is best on the target. The first variant is it as it was trained. Another one
// takes its place only if it keeps enough of the value, and measurements of both on the device
// show that it is better by more than they vary: estimates rank neither.
func Compare(variants []Variant, target Target, known []emu.Architecture, settings Settings, tolerance Tolerance) (Deployment, error) {
	variants = settings.provided(variants)
	first := variants[0]
	best, err := Find(first.Architecture, target, known, settings)
	if err != nil || len(variants) == 1 {
		return best, err
	}
	target.Ran = true
	chosen, list := 0, make([]ComparedPrecision, len(variants))
	for i, one := range variants {
		target.Provider = one.Provider
		found, err := Find(one.Architecture, target, known, settings)
		if err != nil {
			return best, err
		}
		list[i] = one.as(found, first.Value, tolerance)
		if i == 0 {
			list[i].Why = "no other is better"
			continue
		}
		var better bool
		if one.Provider != "" && !slices.Contains(target.Providers, one.Provider) {
			list[i].Measured, list[i].Why = nil, "no machine of the device says that its ONNX Runtime can use "+one.Provider+": tandem doctor tells there why"
		} else if better, list[i].Why = list[i].beats(list[chosen], settings, tolerance); better {
			if chosen == 0 {
				list[0].Why = list[i].name() + " is better"
			} else {
				list[chosen].Why += "; " + list[i].name() + " is better still"
			}
			chosen = i
		}
	}
	if chosen > 0 {
		best = list[chosen].found
	}
	list[chosen].Chosen = true
	best.with(func(c *tuning.Configuration) { c.Precision = variants[chosen].Precision })
	best.Precisions = list
	return best, nil
}

// as is the variant as it was found, without a reason.
func (v Variant) as(found Deployment, value float64, tolerance Tolerance) ComparedPrecision {
	found.with(func(c *tuning.Configuration) { c.Precision = v.Precision })
	c := ComparedPrecision{
		Precision: v.Precision, Provider: found.Configuration.Provider, Value: v.Value, Samples: v.Samples, Lost: lost(value, v.Value, tolerance.Minimize), found: found,
	}
	if found.Runs() {
		c.Measured = &MeasuredPrecision{
			found.Configuration, found.Feasible, found.LatencySeconds, found.SamplesPerSecond, found.JoulesPerSample, found.EnergyMethod, found.MemoryBytes,
		}
	}
	return c
}

// rounding is what shares that are the same may differ by.
const rounding = 1e-9

// lost is the share of the value that is lost.
func lost(before, after float64, minimize bool) float64 {
	if minimize {
		before, after = -before, -after
	}
	switch {
	case before == after:
		return 0
	case before == 0: // nothing is a share of it
		return math.Copysign(1, -after)
	}
	return (before - after) / math.Abs(before)
}

// beats reports whether the precision takes the place of the other one, and why.
func (c ComparedPrecision) beats(other ComparedPrecision, settings Settings, tolerance Tolerance) (bool, string) {
	ranked := "precisions"
	if c.Provider != other.Provider {
		ranked = "execution providers"
	}
	switch {
	case c.Lost > tolerance.Loss+rounding:
		return false, fmt.Sprintf("it loses %.3g%% of the value, and may lose %.3g%%", 100*c.Lost, 100*tolerance.Loss)
	case c.Measured == nil:
		return false, "it was not measured here, and estimates do not rank " + ranked
	case other.Measured == nil:
		return false, other.name() + " was not measured here, and estimates do not rank " + ranked
	case !c.Measured.Feasible:
		return false, "it does not keep to the constraints"
	case !other.Measured.Feasible:
		return true, "it keeps to the constraints, and " + other.name() + " does not"
	}
	own, its := c.found.worth(settings), other.found.worth(settings)
	if !(own > 0 && its > 0) {
		return false, string(settings.Objective) + " is not known"
	}
	gain, noise := its/own, c.Measured.LatencySeconds.above()*other.Measured.LatencySeconds.below()
	if settings.Objective == tuning.Energy && (c.found.EnergyEstimated() || other.found.EnergyEstimated()) {
		gain = min(gain, other.found.coreSeconds()/c.found.coreSeconds())
	}
	word := map[tuning.Metric]string{tuning.Throughput: "throughput", tuning.Energy: "energy"}[settings.Objective]
	text := fmt.Sprintf("its %s is %.3g times as good as that of %s", cmp.Or(word, "latency"), gain, other.name())
	if gain > noise {
		return true, text
	}
	return false, text + fmt.Sprintf(", and measurements vary by a factor of %.3g", noise)
}

// worth is what the answer is chosen by, less being better; 0 where it is not known.
func (d Deployment) worth(settings Settings) float64 {
	load := d.Batching
	if load != nil && (load.MeanSeconds <= 0 || load.Streams > 0) {
		load = nil
	}
	switch {
	case settings.Objective.Maximize():
		return 1 / d.SamplesPerSecond
	case settings.Objective == tuning.Energy && load != nil && load.JoulesPerSample > 0:
		return load.JoulesPerSample
	case settings.Objective == tuning.Energy:
		return d.JoulesPerSample.Value
	case load != nil:
		return load.MeanSeconds
	}
	return d.LatencySeconds.Value
}

// coreSeconds are those of a sample: joules that no meter told are too unsure to count
// for more.
func (d Deployment) coreSeconds() float64 {
	return float64(max(1, d.Configuration.Cores)) / d.SamplesPerSecond
}

// above and below are by which factor the ends of the band differ from the value.
func (b Band) above() float64 { return max(1, b.High/b.Value) }

func (b Band) below() float64 {
	if !(b.Low > 0) {
		return math.Inf(1)
	}
	return max(1, b.Value/b.Low)
}
