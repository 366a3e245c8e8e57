package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// exportPage is how many events are in memory at once.
const exportPage = 1000

type exportInput struct {
	StudyRef
	Format string `query:"format" enum:"csv,parquet,json" default:"csv" doc:"csv and parquet: a line a trial; json: the study, its trials and its whole history"`
}

// describeExport says what both formats hold.
func describeExport(operation *huma.Operation, registry huma.Registry) {
	operation.Responses["200"] = &huma.Response{Description: "The trials as CSV or Parquet, or everything as JSON", Content: map[string]*huma.MediaType{
		"text/csv":                       {Schema: &huma.Schema{Type: huma.TypeString}},
		"application/vnd.apache.parquet": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{"study", "recommendation", "trials", "events"}, Properties: map[string]*huma.Schema{
			"study":          schemaOf[protocol.StudyView](registry),
			"recommendation": schemaOf[protocol.Recommendation](registry),
			"trials":         {Type: huma.TypeArray, Items: schemaOf[protocol.RankedTrial](registry)},
			"events":         {Type: huma.TypeArray, Items: schemaOf[protocol.Event](registry)},
		}}},
	}}
}

func (s studyAPI) export(ctx context.Context, input *exportInput) (*huma.StreamResponse, error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		_, w := humachi.Unwrap(framework)
		write, kind := s.exportCSV, "text/csv; charset=utf-8"
		switch input.Format {
		case "json":
			write, kind = s.exportJSON, "application/json"
		case "parquet":
			write, kind = s.exportParquet, "application/vnd.apache.parquet"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(view.Name)+"."+input.Format))
		w.WriteHeader(http.StatusOK)
		if err := write(ctx, view, patientWriter(w)); err != nil {
			if ctx.Err() == nil {
				s.logger.LogAttrs(ctx, slog.LevelError, "export failed", slog.String("study", view.ID), slog.Any("error", err))
			}
			panic(http.ErrAbortHandler) // a part must not look like the whole
		}
	}}, nil
}

// fileName is the name without anything a header or a disk could misread.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// eachTrial visits the study's trials by number.
func (s studyAPI) eachTrial(ctx context.Context, study string, visit func(protocol.RankedTrial) error) error {
	return s.studies.EachTrial(ctx, study, func(one protocol.RankedTrial) error {
		one.Results = orEmpty(one.Results)
		return visit(one)
	})
}

func (s studyAPI) exportCSV(ctx context.Context, view protocol.StudyView, out io.Writer) error {
	columns := columnsOf(view.Definition)
	cells := make([]string, len(columns))
	for at, column := range columns {
		cells[at] = text(column.name)
	}
	table := csv.NewWriter(out)
	if err := table.Write(cells); err != nil {
		return err
	}
	err := s.eachTrial(ctx, view.ID, func(one protocol.RankedTrial) error {
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

// exportJSON writes {"study", "recommendation", "trials", "events"}; every
// report is the data of an event.
func (s studyAPI) exportJSON(ctx context.Context, view protocol.StudyView, out io.Writer) error {
	answer, err := s.studies.Recommendation(ctx, view.ID)
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
	err = s.eachTrial(ctx, view.ID, func(one protocol.RankedTrial) error {
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
		events, err := s.studies.Events(ctx, view.ID, after, exportPage)
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
