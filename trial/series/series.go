// Package series holds what was sampled of a trial, about once a second, while it ran
// under one lease: columns of numbers, of a bounded length.
package series

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// Most is how many samples a lease has: when there are more, neighbours are merged.
	Most = 1024
	// mostColumns bounds the metrics: those of a profile, and the machine's power.
	mostColumns = trial.MaxProfileValues + 1
	// digits of each value are kept.
	digits = 4
	// mostBytes bounds what is unpacked.
	mostBytes = 4 << 20
	// Watts is the power of the whole machine.
	Watts = "machine.watts"
)

// Series are the samples of one lease, in order and without gaps. The lists have the same
// length; NaN in a column says that the sample lacks the metric.
type Series struct {
	Begin time.Time `json:"begin" doc:"when the first sample begins, by the worker's clock"`
	// Method is how the watts were obtained.
	Method  string                   `json:"energy_method,omitempty" maxLength:"256" doc:"how machine.watts were obtained"`
	Seconds []trial.Float            `json:"seconds" doc:"how long each sample lasts"`
	Epochs  []int                    `json:"epochs" doc:"the epoch in which each sample ends"`
	Metrics map[string][]trial.Float `json:"metrics" doc:"per second, or the mean of a state, by metric"`
}

// Add appends a sample. The longer the series, the longer its samples become: values are
// then means over time.
func (s *Series) Add(seconds float64, epoch int, values map[string]trial.Float) {
	if s.Metrics == nil {
		s.Metrics = map[string][]trial.Float{}
	}
	s.Seconds, s.Epochs = append(s.Seconds, trial.Float(seconds)), append(s.Epochs, epoch)
	n := len(s.Seconds)
	for name := range values {
		if s.Metrics[name] == nil && len(s.Metrics) < mostColumns {
			s.Metrics[name] = absent(n - 1)
		}
	}
	for name, column := range s.Metrics {
		value, has := values[name]
		if !has {
			value = trial.Float(math.NaN())
		}
		s.Metrics[name] = append(column, value)
	}
	switch {
	case n > Most:
		s.halve()
	case n > 1 && epoch == s.Epochs[n-2] && s.Seconds[n-2] < s.span():
		s.merge(n-2, n-2, n-1)
		s.cut(n - 1)
	}
}

func absent(n int) []trial.Float {
	column := make([]trial.Float, n, Most+1)
	for at := range column {
		column[at] = trial.Float(math.NaN())
	}
	return column
}

// span is what a new sample has to last in a series of merged ones: about as long as the
// first, which is the longest.
func (s *Series) span() trial.Float {
	if n := len(s.Seconds); n <= Most/2 {
		return 0
	}
	return 0.9 * s.Seconds[0]
}

// halve merges each two neighbours.
func (s *Series) halve() {
	n := len(s.Seconds)
	for at := range n / 2 {
		s.merge(at, 2*at, 2*at+1)
	}
	if n%2 == 1 {
		s.merge(n/2, n-1, n-1)
	}
	s.cut((n + 1) / 2)
}

// merge puts the mean of two samples, or one sample, into a place.
func (s *Series) merge(to, first, second int) {
	a, b := s.Seconds[first], s.Seconds[second]
	for _, column := range s.Metrics {
		switch x, y := column[first], column[second]; {
		case x.IsNaN() || first == second:
			column[to] = y
		case y.IsNaN():
			column[to] = x
		default:
			column[to] = (x*a + y*b) / (a + b)
		}
	}
	s.Epochs[to] = s.Epochs[second]
	if s.Seconds[to] = a + b; first == second {
		s.Seconds[to] = a
	}
}

func (s *Series) cut(n int) {
	s.Seconds, s.Epochs = s.Seconds[:n], s.Epochs[:n]
	for name, column := range s.Metrics {
		s.Metrics[name] = column[:n]
	}
}

// Total is how long all samples last, in seconds.
func (s *Series) Total() (sum trial.Float) {
	for _, seconds := range s.Seconds {
		sum += seconds
	}
	return sum
}

// Encode packs the series: JSON with four digits of each value, compressed.
func (s *Series) Encode() ([]byte, error) {
	short := *s
	short.Seconds, short.Metrics = shortened(s.Seconds), map[string][]trial.Float{}
	for name, column := range s.Metrics {
		short.Metrics[name] = shortened(column)
	}
	var packed bytes.Buffer
	out := gzip.NewWriter(&packed)
	if err := json.NewEncoder(out).Encode(short); err != nil {
		return nil, err
	}
	err := out.Close()
	return packed.Bytes(), err
}

func shortened(column []trial.Float) []trial.Float {
	list := make([]trial.Float, len(column))
	for at, value := range column {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(float64(value), 'g', digits, 64), 64) // it was written a moment ago
		list[at] = trial.Float(short)
	}
	return list
}

// Decode unpacks a series, and refuses what Encode does not make.
func Decode(packed []byte) (s Series, err error) {
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return s, problem.New(problem.Invalid, "data: the samples must be JSON compressed by gzip: %w", err)
	}
	fields := json.NewDecoder(io.LimitReader(in, mostBytes))
	fields.DisallowUnknownFields()
	if err := fields.Decode(&s); err != nil {
		return s, problem.New(problem.Invalid, "data: the samples must be JSON of at most %d bytes: %w", mostBytes, err)
	}
	n := len(s.Seconds)
	if n == 0 || n > Most || len(s.Epochs) != n || len(s.Metrics) > mostColumns || len(s.Method) > 256 {
		return s, problem.New(problem.Invalid, "data: %d samples of %d metrics and %d epochs: there must be 1 to %d samples with an epoch each, of at most %d metrics", n, len(s.Metrics), len(s.Epochs), Most, mostColumns)
	}
	for at, seconds := range s.Seconds {
		if !(seconds >= 0 && seconds <= 1e9) || s.Epochs[at] < 0 {
			return s, problem.New(problem.Invalid, "data: sample %d lasts %v s in epoch %d: neither may be below 0", at, float64(seconds), s.Epochs[at])
		}
	}
	for name, column := range s.Metrics {
		if name == "" || len(name) > 64 || len(column) != n {
			return s, problem.New(problem.Invalid, "data: metric %.70q has %d values: a name has 1 to 64 bytes, and there is a value for each of %d samples", name, len(column), n)
		}
	}
	return s, nil
}
