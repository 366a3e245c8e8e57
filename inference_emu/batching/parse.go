package batching

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// ParseCurve reads a curve from JSON (a list of points, an object with one under
// "points", or what "tandem edge run --json" prints) or from CSV whose first line names its columns: batch and
// seconds, and joules and deviation if they are known.
func ParseCurve(content []byte) (Curve, error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\ufeff")))
	var points []Point
	var err error
	switch {
	case bytes.HasPrefix(content, []byte("[")):
		err = strict(content, &points)
	case bytes.HasPrefix(content, []byte("{")):
		points, err = pointsOfDocument(content)
	default:
		points, err = pointsOfCSV(content)
	}
	if err != nil {
		return Curve{}, err
	}
	return NewCurve(points)
}

func pointsOfDocument(content []byte) ([]Point, error) {
	var measured struct {
		Curve json.RawMessage `json:"curve"`
	}
	if json.Unmarshal(content, &measured) == nil && measured.Curve != nil {
		var points []Point
		err := strict(measured.Curve, &points)
		return points, err
	}
	var document struct {
		Points []Point `json:"points"`
	}
	err := strict(content, &document)
	return document.Points, err
}

func strict(content []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return problem.New(problem.Invalid, "the latency curve is not JSON of points like {\"batch\": 1, \"seconds\": 0.002}: %w", err)
	}
	return nil
}

func pointsOfCSV(content []byte) ([]Point, error) {
	reader := csv.NewReader(bytes.NewReader(content))
	reader.TrimLeadingSpace = true
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, problem.New(problem.Invalid, "the latency curve is neither JSON nor CSV: %w", err)
	}
	if len(rows) == 0 {
		return nil, problem.New(problem.Invalid, "the latency curve is empty; its first line must name the columns batch,seconds")
	}
	known := []string{"batch", "seconds", "joules", "deviation"}
	var fields []problem.Field
	for i, name := range rows[0] {
		rows[0][i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(known, rows[0][i]) {
			fields = append(fields, problem.Field{Path: "curve", Line: 1, Message: "columns may be batch, seconds, joules and deviation", Value: name})
		}
	}
	for _, name := range known[:2] {
		if !slices.Contains(rows[0], name) {
			fields = append(fields, problem.Field{Path: "curve", Line: 1, Message: fmt.Sprintf("the first line must name a column %s", name)})
		}
	}
	var points []Point
	for i, row := range rows[1:] {
		var point Point
		for column, text := range row {
			if err := point.set(rows[0][column], strings.TrimSpace(text)); err != nil {
				fields = append(fields, problem.Field{Path: fmt.Sprintf("curve[%d].%s", i, rows[0][column]), Line: i + 2, Message: "must be a number", Value: text})
			}
		}
		points = append(points, point)
	}
	if len(fields) > 0 {
		return nil, problem.WithFields("the latency curve cannot be read", fields)
	}
	return points, nil
}

func (p *Point) set(column, text string) error {
	var err error
	switch column {
	case "batch":
		p.Batch, err = strconv.Atoi(text)
	case "seconds":
		p.Seconds, err = strconv.ParseFloat(text, 64)
	case "joules":
		p.Joules, err = strconv.ParseFloat(text, 64)
	case "deviation":
		p.Deviation, err = strconv.ParseFloat(text, 64)
	}
	return err
}
