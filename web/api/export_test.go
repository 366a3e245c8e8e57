package api_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/usecases"
)

// shown has one study with the trials it is given.
type shown struct {
	usecases.All
	view   protocol.StudyView
	trials []protocol.RankedTrial
	fail   bool
}

func (s shown) Study(context.Context, string) (protocol.StudyView, error) { return s.view, nil }

func (s shown) EachTrial(_ context.Context, _ string, visit func(protocol.RankedTrial) error) error {
	for at, one := range s.trials {
		if s.fail && at == len(s.trials)-1 {
			return errors.New("the disk is gone")
		}
		if err := visit(one); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) export(format string) (string, error) {
	s.t.Helper()
	stream, err := s.client(auth.Viewer).Export(s.t.Context(), "small", format)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	data, err := io.ReadAll(stream)
	return string(data), err
}

func ranked(number int, value trial.Float) protocol.RankedTrial {
	one := protocol.RankedTrial{Rank: number + 1}
	one.Number, one.State, one.Rung = number, trial.Running, 2
	one.Results = []trial.Result{{Rung: 1, Values: []trial.Float{value}}}
	one.Results[0].Budget.Epochs, one.Results[0].Budget.DataFraction = 3, 0.5
	one.Seconds, one.Energy = 1.5, trial.Energy{Joules: 20, Method: "estimate: =cmd"}
	one.Configuration = space.Configuration{"rate": space.Float(-0.5), "kind": space.String("=HYPERLINK(\"x\")")}
	return one
}

func TestCSVCannotRunInASpreadsheet(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	view.Definition.Objectives[0].Metric = "@loss"
	trials := []protocol.RankedTrial{ranked(0, -1.25), ranked(1, trial.Float(math.NaN())), ranked(2, trial.Float(math.Inf(-1))), ranked(3, 0)}
	for i, kind := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "plain, with \"quotes\""} {
		one := ranked(4+i, 1)
		one.Configuration["kind"] = space.String(kind)
		trials = append(trials, one)
	}
	trials[0].Last, trials[1].Last = map[string]trial.Float{"top 5": 0.25}, map[string]trial.Float{"a": 2}
	waiting := protocol.RankedTrial{}
	waiting.Number, waiting.State = len(trials), trial.Queued
	trials = append(trials, waiting)
	show := newStage(t, func(c *api.Config) { c.Studies = useCases(shown{All: c.Studies, view: view, trials: trials}) })

	text, err := show.export("csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(trials)+1 {
		t.Fatalf("%d rows: %v\n%s", len(rows), err, text)
	}
	header := "number,state,rank,rung,epochs,data_fraction,value_@loss,seconds,joules,energy_method,tags,note,params_rate,params_kind,metrics_a,metrics_top 5"
	if got := strings.Join(rows[0], ","); got != header {
		t.Errorf("header %s", got)
	}
	if got := strings.Join(rows[1], "|"); got != `0|running|1|1|3|0.5|-1.25|1.5|20|estimate: =cmd|||-0.5|'=HYPERLINK("x")||0.25` {
		t.Errorf("row %s", got)
	}
	if rows[2][6] != "NaN" || rows[3][6] != "-Infinity" {
		t.Errorf("NaN is %q, -Infinity %q", rows[2][6], rows[3][6])
	}
	if got := strings.Join(rows[len(rows)-1], "|"); got != "12|queued||0|0|0||0||||||||" {
		t.Errorf("a trial without anything: %s", got)
	}
	for _, row := range rows[5:12] {
		if cell := row[13]; !strings.HasPrefix(cell, "'") {
			t.Errorf("the cell %q runs", cell)
		}
	}
}

// A table says how what it has of inference was obtained.
func TestATableLabelsEstimatesOfInference(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	view.Definition.Inference = &definition.Inference{Devices: []definition.InferenceDevice{{Name: "this-machine"}}}
	one := ranked(0, 1)
	one.Inference = &trial.InferenceCost{Device: "this-machine", Method: "measured", EnergyMethod: "estimate: 10 W per busy core"}
	show := newStage(t, func(c *api.Config) {
		c.Studies = useCases(shown{All: c.Studies, view: view, trials: []protocol.RankedTrial{one, ranked(1, 2)}})
	})
	text, err := show.export("csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v\n%s", err, text)
	}
	at := slices.Index(rows[0], "inference_method")
	if at < 0 || rows[0][at+1] != "inference_energy_method" || rows[1][at] != "measured" || rows[1][at+1] != "estimate: 10 W per busy core" || rows[2][at] != "" {
		t.Errorf("%q", rows)
	}
}

func TestExportOfARealStudy(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	s.train(worker, s.lease(worker), 0.25)
	s.train(worker, s.lease(worker), trial.Float(math.NaN()))
	text, err := s.export("csv")
	if rows := strings.Count(text, "\n"); err != nil || rows != 3 || !strings.Contains(text, "NaN") {
		t.Fatalf("%d lines: %v\n%s", rows, err, text)
	}
	text, err = s.export("json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Study          protocol.StudyView      `json:"study"`
		Recommendation protocol.Recommendation `json:"recommendation"`
		Trials         []protocol.RankedTrial  `json:"trials"`
		Events         []struct{ Kind string } `json:"events"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	reports := 0
	for _, event := range all.Events {
		if event.Kind == "report" {
			reports++
		}
	}
	if all.Study.Name != "small" || len(all.Trials) != 2 || reports == 0 || all.Recommendation.Best == nil || all.Recommendation.Best.Value != 0.25 {
		t.Fatalf("%+v", all)
	}
	got := s.admin("GET", "/api/v1/studies/small/export", "")
	if got.header.Get("Content-Disposition") != `attachment; filename="small.csv"` || got.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("%v", got.header)
	}
}

func TestExportThatFailsIsCutShort(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	var trials []protocol.RankedTrial
	for number := range 1500 {
		trials = append(trials, ranked(number, 1))
	}
	failing := newStage(t, func(c *api.Config) {
		c.Studies = useCases(shown{All: c.Studies, view: view, trials: trials, fail: true})
	})
	if text, err := failing.export("csv"); err == nil {
		t.Fatalf("%d bytes passed for the whole", len(text))
	}
	whole := newStage(t, func(c *api.Config) { c.Studies = useCases(shown{All: c.Studies, view: view, trials: trials}) })
	if text, err := whole.export("csv"); err != nil || strings.Count(text, "\n") != 1501 {
		t.Fatalf("%d lines: %v", strings.Count(text, "\n"), err)
	}
}
