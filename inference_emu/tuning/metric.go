package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Metric is a number of a configuration and its outcome.
type Metric string

// The metrics. Only Throughput is better the larger it is.
const (
	Latency    Metric = "latency_seconds"    // of one batch
	Throughput Metric = "samples_per_second" // one batch after the other
	Energy     Metric = "joules_per_sample"
	Memory     Metric = "memory_bytes"
)

// Metrics lists all of them.
func Metrics() []Metric { return []Metric{Latency, Throughput, Energy, Memory} }

// Maximize reports whether more of it is better.
func (m Metric) Maximize() bool { return m == Throughput }

func metricNames() string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// Value is the metric of a configuration's outcome; an error says that it is not
// known.
func (m Metric) Value(c Configuration, o Outcome) (float64, error) {
	batch := float64(max(c.BatchSize, 1))
	value := 0.0
	switch m {
	case Latency:
		value = o.LatencySeconds
	case Throughput:
		value = batch / o.LatencySeconds
	case Energy:
		value = o.Joules / batch
	case Memory:
		value = float64(o.MemoryBytes)
	}
	if !(value > 0) {
		return 0, fmt.Errorf("%s is not known", m)
	}
	return value, nil
}

// worst is the metric at the bad end of the outcome's band, or the value itself
// where no band is known.
func (m Metric) worst(c Configuration, o Outcome) (float64, error) {
	if o.LatencySecondsHigh > 0 {
		o.LatencySeconds = o.LatencySecondsHigh
	}
	if o.JoulesHigh > 0 {
		o.Joules = o.JoulesHigh
	}
	return m.Value(c, o)
}

// score is what is minimized: the metric, with a minus where more of it is better.
func (m Metric) score(c Configuration, o Outcome) (float64, error) {
	value, err := m.Value(c, o)
	if m.Maximize() {
		value = -value
	}
	return value, err
}

func (m Metric) faults(path string) []problem.Field {
	if !slices.Contains(Metrics(), m) {
		return []problem.Field{{Path: path, Message: "must be one of " + metricNames(), Value: string(m)}}
	}
	return nil
}
