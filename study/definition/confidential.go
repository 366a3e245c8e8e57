package definition

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
)

// Confidential is what may leave the machines that a study's key goes to.
type Confidential struct {
	// Policy is the id of the policy by which a broker releases the key.
	Policy string `json:"policy"`
	// Metrics are all that scripts may report, by name.
	Metrics map[string]Told `json:"metrics"`
	// Log is what is kept of a script's output.
	Log string `json:"log"`
}

// What is kept of a script's output: nothing, or of a failure the end, encrypted to the
// study's recipients.
const (
	LogNone = "none"
	LogTail = "tail-on-failure"
)

// Told is how precisely a metric is told: as a multiple of Round, from Low to High.
type Told struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Round float64 `json:"round"`
}

// MostSteps bounds the multiples, so that each is one float.
const MostSteps = 1e9

// Of is the value as it may be told. What was told before stays the same.
func (t Told) Of(value trial.Float) trial.Float {
	if value.IsNaN() {
		return trial.Float(math.NaN())
	}
	steps := math.Round(min(max(float64(value), t.Low), t.High)/t.Round) + 0 // no -0
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(steps*t.Round, 'g', 12, 64), 64)
	return trial.Float(rounded)
}

// Rounded are the metrics as they may be told, or why they may not.
func (c *Confidential) Rounded(metrics map[string]trial.Float) (map[string]trial.Float, error) {
	if c == nil {
		return metrics, nil
	}
	told := make(map[string]trial.Float, len(metrics))
	for name, value := range metrics {
		one, declared := c.Metrics[name]
		if !declared {
			return nil, problem.New(problem.Invalid, "metric_not_declared: %q is not in confidential.metrics: report only %v", name, slices.Sorted(maps.Keys(c.Metrics)))
		}
		told[name] = one.Of(value)
	}
	return told, nil
}

// Faults are what a report has that may not be told. No word of it is repeated.
func (c *Confidential) Faults(metrics map[string]trial.Float) (faults []problem.Field) {
	if c == nil {
		return nil
	}
	for name, value := range metrics {
		switch one, declared := c.Metrics[name]; {
		case !declared:
			faults = append(faults, problem.Field{Path: "metrics", Message: "metric_not_declared: one is not in confidential.metrics of the study, and is not kept"})
		case one.Of(value) != value && !value.IsNaN():
			faults = append(faults, problem.Field{Path: "metrics." + name, Message: "metric_too_precise: must be rounded as confidential.metrics of the study says"})
		}
	}
	return faults
}

var armoured = regexp.MustCompile(`^-----BEGIN AGE ENCRYPTED FILE-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END AGE ENCRYPTED FILE-----\n$`)

// Keeps reports whether the text may stand in a trial's log: none that anybody can read.
func (c *Confidential) Keeps(text string) bool { return c.Log == LogTail && armoured.MatchString(text) }

// Bits is how much a report's metrics can tell at most.
func (c *Confidential) Bits() (bits float64) {
	for _, one := range c.Metrics {
		bits += math.Log2((one.High-one.Low)/one.Round + 3) // NaN and silence are two more
	}
	return bits
}

// PolicyOf is the id of the policy that the study's machines have to meet; empty: none.
func (d *Definition) PolicyOf() string {
	if d.Confidential == nil {
		return ""
	}
	return d.Confidential.Policy
}
