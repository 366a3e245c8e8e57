// Package export writes what is known of a study for other programs: its trials as a
// table in CSV, or all of it as JSON. Neither is ever whole in memory.
package export

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// eventPage is how many events are in memory at once.
const eventPage = 1000

// Studies are the use cases that an export reads by.
type Studies interface {
	EachTrial(ctx context.Context, ref string, visit func(protocol.RankedTrial) error) error
	Recommendation(ctx context.Context, ref string) (protocol.Recommendation, error)
	Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error)
}

// eachTrial visits the study's trials by number.
func eachTrial(ctx context.Context, studies Studies, study string, visit func(protocol.RankedTrial) error) error {
	return studies.EachTrial(ctx, study, func(one protocol.RankedTrial) error {
		if one.Results == nil {
			one.Results = []trial.Result{} // [] in JSON, not null
		}
		return visit(one)
	})
}

// CSV writes the table of trials, one a line, with a line of names before it.
func CSV(ctx context.Context, studies Studies, view protocol.StudyView, out io.Writer) error {
	metrics := map[string]bool{} // of the newest reports
	err := eachTrial(ctx, studies, view.ID, func(one protocol.RankedTrial) error {
		for name := range one.Last {
			metrics[name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	columns := columnsOf(view.Definition, view.Progress.Cost != nil, slices.Sorted(maps.Keys(metrics)))
	cells := make([]string, len(columns))
	for at, column := range columns {
		cells[at] = text(column.name)
	}
	table := csv.NewWriter(out)
	if err := table.Write(cells); err != nil {
		return err
	}
	err = eachTrial(ctx, studies, view.ID, func(one protocol.RankedTrial) error {
		l := lineOf(one)
		for at, column := range columns {
			cells[at] = written(column.cell(l))
		}
		return table.Write(cells)
	})
	table.Flush()
	if err != nil {
		return err
	}
	return table.Error()
}

func valueCell(value space.Value) string {
	if words, ok := value.Text(); ok {
		return text(words)
	}
	return value.String()
}

// number is a measured value as JSON spells it, without quotes.
func number(value trial.Float) string {
	encoded, err := value.MarshalJSON()
	if err != nil {
		return ""
	}
	return strings.Trim(string(encoded), `"`)
}

// text makes sure that a spreadsheet does not take text for a formula.
func text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// JSON writes {"study", "recommendation", "trials", "events"}; every
// report is the data of an event.
func JSON(ctx context.Context, studies Studies, view protocol.StudyView, out io.Writer) error {
	answer, err := studies.Recommendation(ctx, view.ID)
	if err != nil {
		return err
	}
	document := jsonWriter{out: out}
	document.raw(`{"study":`)
	document.value(view)
	document.raw(`,"recommendation":`)
	document.value(answer)
	document.raw(`,"trials":[`)
	separator := ""
	err = eachTrial(ctx, studies, view.ID, func(one protocol.RankedTrial) error {
		document.raw(separator)
		document.value(one)
		separator = ",\n"
		return document.err
	})
	if err != nil {
		return err
	}
	document.raw(`],"events":[`)
	separator = ""
	for after := int64(0); ; {
		events, err := studies.Events(ctx, view.ID, after, eventPage)
		if err != nil {
			return err
		}
		for _, event := range events {
			document.raw(separator)
			document.value(event)
			separator, after = ",\n", event.Sequence
		}
		if len(events) == 0 || document.err != nil {
			break
		}
	}
	document.raw("]}\n")
	return document.err
}

// jsonWriter writes a document in pieces and keeps the first error.
type jsonWriter struct {
	out io.Writer
	err error
}

func (j *jsonWriter) raw(piece string) {
	if j.err == nil {
		_, j.err = io.WriteString(j.out, piece)
	}
}

func (j *jsonWriter) value(value any) {
	encoded, err := json.Marshal(value)
	if j.err == nil {
		j.err = err
	}
	j.raw(string(encoded))
}
