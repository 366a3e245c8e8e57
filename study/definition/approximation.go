package definition

import "github.com/tandem-tune/tandem/internal/problem"

// mostDrop is how much of its data a trial may leave out unless the file says so.
const mostDrop = 0.5

// Approximation is what a study gives up for others of a higher priority: its
// trials may train on less data than their rungs say (DiAS; Rocha's thesis,
// section 4.2).
type Approximation struct {
	// MetricLoss is how much worse the first objective may come out, in its own
	// unit; 0: only MostDrop bounds what is left out.
	MetricLoss float64 `json:"metric_loss,omitempty"`
	// MostDrop is the largest share of its data that a trial may leave out.
	MostDrop float64 `json:"most_drop"`
}

// ResponseSeconds is how long a trial may take for a rung, from when it could
// begin to when it was trained. 0: not bounded.
type ResponseSeconds struct {
	Mean float64 `json:"mean,omitempty"`
	// Tail is what 95% of the trials should be within.
	Tail float64 `json:"tail,omitempty"`
}

// Sprint is how trials are sped up by their worker (section 4.2 of the thesis).
type Sprint struct {
	// AfterSeconds is for how long a trial runs before it sprints.
	AfterSeconds float64 `json:"after_seconds"`
	// Auto has that chosen by the server, as early as what workers may take for
	// sprints allows. AfterSeconds is 0 then.
	Auto bool `json:"auto,omitempty"`
	// WhileWaiting has trials of a lower priority sprint on the machines that a trial
	// of this study waits for.
	WhileWaiting bool `json:"while_waiting,omitempty"`
}

// priority reads what has to do with other studies.
func (d *decoder) priority(s section, def *Definition) {
	s.whole("priority", -1000, 1000, &def.Priority)
	if n, at := s.get("approximation"); n != nil {
		if s, ok := d.section(at, n, "metric_loss", "most_drop"); ok {
			a := Approximation{MostDrop: mostDrop}
			s.number("metric_loss", 1e-9, 1e9, &a.MetricLoss)
			s.number("most_drop", 0.01, 0.9, &a.MostDrop)
			def.Approximation = &a
			if def.Budget.Policy.Measured() {
				d.fault(at, n, "needs a budget of epochs and data: one of %s says itself how long a trial trains, whatever is left out", def.Budget.Policy)
			}
		}
	}
	if n, at := s.get("response_seconds"); n != nil {
		if s, ok := d.section(at, n, "mean", "tail"); ok {
			var r ResponseSeconds
			s.number("mean", 0, year, &r.Mean)
			s.number("tail", 0, year, &r.Tail)
			if r.Mean == 0 && r.Tail == 0 {
				d.fault(at, n, "needs mean or tail, in seconds above 0: how long a trial may take from when it could begin")
			}
			def.ResponseSeconds = &r
		}
	}
	if n, at := s.get("sprint"); n != nil {
		if s, ok := d.section(at, n, "after_seconds", "auto", "while_waiting"); ok {
			var one Sprint
			s.number("after_seconds", 0, year, &one.AfterSeconds)
			s.flag("auto", &one.Auto)
			s.flag("while_waiting", &one.WhileWaiting)
			if one.Auto && one.AfterSeconds > 0 {
				d.fault(at, n, "has auto and after_seconds: with auto the server chooses after how long, so leave after_seconds out")
			}
			def.Sprint = &one
		}
	}
}

// checkApproximation says that a study has nothing to give.
func (d *decoder) checkApproximation(def Definition) {
	if def.Approximation != nil && len(def.Command) == 0 {
		d.faults = append(d.faults, d.places.locate(problem.Field{Path: "approximation",
			Message: "needs a command: who asks for trials trains them when they like, and waits for nobody"}))
	}
}
