package report_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/report"
)

func TestTheHistoryOfAnExport(t *testing.T) {
	t.Parallel()
	source := study(t, 3).source(t)
	h := source.History
	if len(h.Measurements) != 4 || h.Measurements[3].Rung != 1 || h.Measurements[3].Number != 2 {
		t.Fatalf("the measurements are %+v", h.Measurements)
	}
	if last := h.Measurements[3]; last.Epochs != 5 || !last.At.After(h.Measurements[2].At) {
		t.Errorf("the last measurement is %+v, want it after 5 epochs", last)
	}
	if len(h.Spans) != 4 || h.Spans[3].End != trial.Completed || h.Spans[3].Worker != "worker-one" || !h.Spans[0].To.After(h.Spans[0].From) {
		t.Errorf("the spans are %+v", h.Spans)
	}
	if curve := h.Curves[2]; len(curve) != 3 || curve[1].Rung != 1 || curve[2].Epoch != 3 || h.Metric != "accuracy" {
		t.Errorf("the curve of trial 2 is %+v of %s", curve, h.Metric)
	}
	if source.Trials[0].Rank != 1 || source.Trials[0].Number != 2 {
		t.Errorf("the first trial is %d with rank %d", source.Trials[0].Number, source.Trials[0].Rank)
	}
}

// TestHigherRungsLead: a value that was trained with more counts more, and a
// trial that keeps to the constraints more than one that does not.
func TestHigherRungsLead(t *testing.T) {
	t.Parallel()
	h := report.History{Measurements: []report.Measurement{
		{Number: 0, Value: 0.9}, {Number: 1, Value: 0.8}, {Number: 2, Rung: 1, Value: 0.7}, {Number: 3, Value: 0.95},
		{Number: 4, Rung: 1, Value: 0.99, Violation: 1}, {Number: 5, Rung: 1, Value: 0.75},
	}}
	var numbers []int
	for _, one := range h.Leaders(definition.Maximize) {
		numbers = append(numbers, one.Number)
	}
	if len(numbers) != 3 || numbers[0] != 0 || numbers[1] != 2 || numbers[2] != 5 {
		t.Errorf("%v led, want 0, 2 and 5", numbers)
	}
	if leaders := h.Leaders(definition.Minimize); leaders[len(leaders)-1].Number != 2 {
		t.Errorf("with the smallest best, %d leads", leaders[len(leaders)-1].Number)
	}
}

func TestWhatIsNoExport(t *testing.T) {
	t.Parallel()
	whole := `{"study":{"definition":{"objective":[{"metric":"m","direction":"minimize"}]}},"recommendation":{},"trials":[],"events":[`
	for name, c := range map[string]struct{ text, says string }{
		"nothing":              {"", "EOF"},
		"a list":               {"[]", "should"},
		"cut short":            {whole, "read the study's export"},
		"no events":            {`{"study":{}}`, "has no events"},
		"events without study": {`{"events":[]}`, "no study before its events"},
		"a broken report":      {whole + `{"kind":"report","number":3,"data":{"metrics":[]}}]}`, "report of trial 3"},
	} {
		if _, err := report.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
	}
	if _, err := report.Read(strings.NewReader(whole + `],"more":{"of":["a","newer"]}}`)); err != nil {
		t.Errorf("what a newer server adds: %v", err)
	}
}
