package studyfile

import (
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// mostDrop is how much of its data a trial may leave out unless the file says so.
const mostDrop = 0.5

// readPriority reads what has to do with other studies.
func readPriority(s tree.Section, def *definition.Definition) {
	s.Whole("priority", -definition.MaxPriority, definition.MaxPriority, &def.Priority)
	if s, ok := s.Part("approximation", "metric_loss", "most_drop"); ok {
		a := definition.Approximation{MostDrop: mostDrop}
		s.Number("metric_loss", 1e-9, 1e9, &a.MetricLoss)
		s.Number("most_drop", 0.01, 0.9, &a.MostDrop)
		def.Approximation = &a
		if def.Budget.Policy.Measured() {
			s.Fault(s.Path, s.Node, "needs a budget of epochs and data: one of %s says itself how long a trial trains, whatever is left out", def.Budget.Policy)
		}
	}
	if s, ok := s.Part("response_seconds", "mean", "tail"); ok {
		var r definition.ResponseSeconds
		s.Number("mean", 0, year, &r.Mean)
		s.Number("tail", 0, year, &r.Tail)
		if r.Mean == 0 && r.Tail == 0 {
			s.Fault(s.Path, s.Node, "needs mean or tail, in seconds above 0: how long a trial may take from when it could begin")
		}
		def.ResponseSeconds = &r
	}
	if s, ok := s.Part("sprint", "after_seconds", "auto", "while_waiting"); ok {
		var one definition.Sprint
		s.Number("after_seconds", 0, year, &one.AfterSeconds)
		s.Flag("auto", &one.Auto)
		s.Flag("while_waiting", &one.WhileWaiting)
		if one.Auto && one.AfterSeconds > 0 {
			s.Fault(s.Path, s.Node, "has auto and after_seconds: with auto the server chooses after how long, so leave after_seconds out")
		}
		def.Sprint = &one
	}
}

// checkApproximation says that a study has nothing to give.
func checkApproximation(d *tree.Decoder, def definition.Definition) {
	if def.Approximation != nil && len(def.Command) == 0 {
		d.Report(problem.Field{Path: "approximation",
			Message: "needs a command: who asks for trials trains them when they like, and waits for nobody"})
	}
}
