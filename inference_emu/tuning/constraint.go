package tuning

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Constraint is a bound on a metric, in the metric's unit.
type Constraint struct {
	Metric Metric `json:"metric"`
	// AtLeast says that the bound is a lower one.
	AtLeast bool    `json:"at_least"`
	Bound   float64 `json:"bound"`
	// Text is the constraint as it was written.
	Text string `json:"text"`
}

// maxConstraintBytes bounds what is parsed.
const maxConstraintBytes = 200

// unit is a name under which a metric may be bounded, and its size in the
// metric's own unit.
type unit struct {
	name   string
	metric Metric
	size   float64
}

func units() []unit {
	return []unit{
		{"latency_seconds", Latency, 1}, {"latency_ms", Latency, 1e-3},
		{"samples_per_second", Throughput, 1},
		{"joules_per_sample", Energy, 1}, {"millijoules_per_sample", Energy, 1e-3},
		{"memory_bytes", Memory, 1}, {"memory_mib", Memory, 1 << 20},
	}
}

var constraintForm = regexp.MustCompile(`^\s*([a-z_]+)\s*(<=|>=)\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*$`)

// ParseConstraint reads a constraint such as "latency_ms <= 50". The error is
// [problem.Invalid] and says what would be right.
func ParseConstraint(text string) (Constraint, error) {
	const form = `must be a metric, <= or >=, and a number, such as "latency_ms <= 50"`
	if len(text) > maxConstraintBytes {
		return Constraint{}, invalid("constraint", text[:40]+"...", form)
	}
	parts := constraintForm.FindStringSubmatch(text)
	if parts == nil {
		return Constraint{}, invalid("constraint", text, form)
	}
	at := slices.IndexFunc(units(), func(u unit) bool { return u.name == parts[1] })
	if at < 0 {
		var names []string
		for _, u := range units() {
			names = append(names, u.name)
		}
		return Constraint{}, invalid("constraint", text, "has no known metric: write one of "+strings.Join(names, ", "))
	}
	bound, err := strconv.ParseFloat(parts[3], 64)
	u := units()[at]
	bound *= u.size
	if err != nil || !(bound > 0) || math.IsInf(bound, 0) {
		return Constraint{}, invalid("constraint", text, "needs a number above 0")
	}
	atLeast := parts[2] == ">="
	if atLeast != u.metric.Maximize() {
		wanted := "<="
		if u.metric.Maximize() {
			wanted = ">="
		}
		return Constraint{}, invalid("constraint", text, fmt.Sprintf("bounds %s from its good side: write %s", u.name, wanted))
	}
	return Constraint{Metric: u.metric, AtLeast: atLeast, Bound: bound, Text: strings.TrimSpace(text)}, nil
}

// String is the constraint as it was written, or in the metric's unit.
func (c Constraint) String() string {
	if c.Text != "" {
		return c.Text
	}
	sign := "<="
	if c.AtLeast {
		sign = ">="
	}
	return fmt.Sprintf("%s %s %g", c.Metric, sign, c.Bound)
}

// shown is a value in the unit in which the bound was written.
func (c Constraint) shown(value float64) string {
	for _, u := range units() {
		if parts := constraintForm.FindStringSubmatch(c.Text); parts != nil && parts[1] == u.name {
			return fmt.Sprintf("%s %.4g", u.name, value/u.size)
		}
	}
	return fmt.Sprintf("%s %.4g", c.Metric, value)
}

// missed is the logarithm of the factor by which a value misses the bound; 0
// where it keeps to it.
func (c Constraint) missed(value float64) float64 {
	distance := math.Log(value / c.Bound)
	if c.AtLeast {
		distance = -distance
	}
	return max(distance, 0)
}

func invalid(path, value, message string) error {
	return problem.WithFields("the inference cannot be tuned", []problem.Field{{Path: path, Message: message, Value: value}})
}
