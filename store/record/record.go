// Package record says what a stored thing looks like, for every store alike:
// how domain values become text and come back, what a trial's log keeps, and
// in which words a store refuses.
//
// Its one invariant: what was written is what is read, to the nanosecond and
// to the last bit of a float, NaN, infinities and negative zero included. It
// knows neither SQL nor any particular store.
package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// layout has a fixed width, so that the text of times in UTC sorts as they do.
const layout = "2006-01-02T15:04:05.000000000Z07:00"

// UTC returns the time as a store keeps it: in UTC and without the reading of
// a monotonic clock, which means nothing in another process.
func UTC(t time.Time) time.Time { return t.Round(0).UTC() }

// UTCOrNil is UTC for a time that may be absent. The result is a copy.
func UTCOrNil(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	stored := UTC(*t)
	return &stored
}

// FormatTime returns the time as text whose order is the order of time.
func FormatTime(t time.Time) string { return UTC(t).Format(layout) }

// ParseTime reads what FormatTime wrote.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("a stored time is damaged: %w", err)
	}
	return t, nil
}

// ParseTimeOrNil is ParseTime for a time that may be absent.
func ParseTimeOrNil(text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // no time is a value here
	}
	at, err := ParseTime(*text)
	return &at, err
}

// FormatDefinition returns a study's definition as a JSON document.
func FormatDefinition(d definition.Definition) (string, error) {
	return format("the definition of study "+d.Name, d)
}

// ParseDefinition reads what FormatDefinition wrote.
func ParseDefinition(text string) (definition.Definition, error) {
	return definition.Stored([]byte(text))
}

// FormatTrial returns the trial as a JSON document.
func FormatTrial(t trial.Trial) (string, error) {
	t.Created, t.Started, t.Finished = UTC(t.Created), UTCOrNil(t.Started), UTCOrNil(t.Finished)
	t.Preempted = UTCOrNil(t.Preempted)
	t.Results = slices.Clone(t.Results)
	for i, result := range t.Results {
		t.Results[i].At = UTCOrNil(result.At)
	}
	return format("trial "+string(t.ID), t)
}

// ParseTrial reads what FormatTrial wrote.
func ParseTrial(text string) (trial.Trial, error) { return parse[trial.Trial](text) }

// FormatReport returns the report as a JSON document.
func FormatReport(r trial.Report) (string, error) {
	r.At = UTC(r.At)
	return format("a report of trial "+string(r.Trial), r)
}

// ParseReport reads what FormatReport wrote.
func ParseReport(text string) (trial.Report, error) { return parse[trial.Report](text) }

// FormatRecord returns a record of the ground truth as a JSON document.
func FormatRecord(r similarity.Record) (string, error) {
	r.Updated = UTC(r.Updated)
	return format("a record of machine "+r.Machine, r)
}

// ParseRecord reads what FormatRecord wrote.
func ParseRecord(text string) (similarity.Record, error) { return parse[similarity.Record](text) }

// FormatArchitecture returns an architecture as a JSON document.
func FormatArchitecture(a emu.Architecture) (string, error) {
	a.Seen = UTC(a.Seen)
	a.Runs = slices.Clone(a.Runs)
	for i, run := range a.Runs {
		a.Runs[i].At = UTC(run.At)
	}
	return format("the architecture "+a.Key, a)
}

// ParseArchitecture reads what FormatArchitecture wrote.
func ParseArchitecture(text string) (emu.Architecture, error) { return parse[emu.Architecture](text) }

// RawOrNil returns the text as raw JSON, nil when there is none.
func RawOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// format fails only for values the domain has no use for, such as a
// configuration with NaN in it: writing them is a defect of the caller.
func format(what string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", problem.New(problem.Internal, "%s cannot be stored: %w", what, err)
	}
	return string(text), nil
}

func parse[T any](text string) (T, error) {
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, fmt.Errorf("a stored %T is damaged: %w", value, err)
	}
	return value, nil
}
