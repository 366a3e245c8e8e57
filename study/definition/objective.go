package definition

import (
	"slices"

	"github.com/tandem-tune/tandem/study/objective"
)

// Objective is one thing to improve: a metric, or a formula over metrics.
type Objective struct {
	// Metric is the name the script reports it under; empty for a formula.
	Metric string `json:"metric,omitempty"`
	// Expression is the formula (see package objective), Name what it is shown
	// under. Both are empty for a plain metric.
	Expression string    `json:"expression,omitempty"`
	Name       string    `json:"name,omitempty"`
	Direction  Direction `json:"direction"`
	// Target, if set, is the value at which the study may stop.
	Target *float64 `json:"target,omitempty"`
	// Reference, if set, is a value that is worse than any of interest: of
	// several objectives they bound the hypervolume.
	Reference *float64 `json:"reference,omitempty"`
}

// Label is what the objective is shown under.
func (o Objective) Label() string {
	if o.Metric != "" {
		return o.Metric
	}
	return o.Name
}

// Formula is what computes the objective. A checked definition's compiles.
func (o Objective) Formula() (objective.Formula, error) {
	return objective.NewFormula(o.Metric, o.Expression)
}

// exampleObjective ends messages about a missing objective.
const exampleObjective = "say what to improve, such as {metric: accuracy, direction: maximize}"

// MaxObjectives is how many objectives a study may have.
const MaxObjectives = 4

// objectives reads one objective, as a mapping, or a list of them.
func (d *decoder) objectives(s section) []Objective {
	n, at := s.need("objective", exampleObjective)
	if n == nil {
		return nil
	}
	if n.kind == list && len(n.items) == 0 {
		d.fault(at, n, "is empty: %s", exampleObjective)
	}
	items, paths := elements(at, n)
	if len(items) > MaxObjectives {
		d.fault(paths[MaxObjectives], items[MaxObjectives], "is one too many: at most %d, as nearly no trial beats another in more; make constraints of the others", MaxObjectives)
		items = items[:MaxObjectives]
	}
	var objectives []Objective
	for i, item := range items {
		one := d.objective(paths[i], item)
		if label := one.Label(); label != "" && slices.ContainsFunc(objectives, func(other Objective) bool { return other.Label() == label }) {
			d.fault(paths[i], item, "is called %s like another objective: keep one of the two, or name it otherwise", label)
		}
		if one.Reference != nil && len(items) == 1 {
			reference, at := (section{decoder: d, path: paths[i], node: item}).get("reference")
			d.fault(at, reference, "bounds the hypervolume of several objectives, and there is one: leave it out")
		}
		objectives = append(objectives, one)
	}
	return objectives
}

func (d *decoder) objective(at string, n *node) Objective {
	if n.kind == mapping {
		if preset, _ := (section{decoder: d, path: at, node: n}).get("preset"); preset != nil {
			return d.preset(at, n)
		}
	}
	var o Objective
	s, ok := d.section(at, n, "metric", "expression", "name", "preset", "direction", "target", "reference")
	if !ok {
		return o
	}
	if expression, _ := s.get("expression"); expression != nil {
		d.formula(s, &o)
	} else {
		if metric, at := s.need("metric", "the name the script reports it under, such as accuracy; or write expression: for a formula over metrics"); metric != nil {
			d.metric(at, metric, &o.Metric)
		}
		if name, at := s.get("name"); name != nil {
			d.fault(at, name, "belongs to an expression: a metric is shown under its own name")
		}
	}
	if direction, at := s.need("direction", "maximize or minimize"); direction != nil {
		o.Direction = d.direction(at, direction)
	}
	s.aims(&o)
	return o
}

// aims reads what a good value is, and a bad one.
func (s section) aims(o *Objective) {
	o.Target, o.Reference = s.bound("target"), s.bound("reference")
}

func (d *decoder) direction(at string, n *node) Direction {
	var name string
	before := len(d.faults)
	d.textOf(at, n, maxKey, &name)
	direction := Direction(name)
	if direction != Maximize && direction != Minimize && len(d.faults) == before {
		d.fault(at, n, "must be maximize or minimize")
	}
	return direction
}

// formula reads an objective that is computed from metrics.
func (d *decoder) formula(s section, o *Objective) {
	if metric, at := s.get("metric"); metric != nil {
		d.fault(at, metric, "is given beside an expression: keep one of the two")
	}
	expression, at := s.get("expression")
	d.expression(at, expression, &o.Expression)
	if name, at := s.need("name", "what the formula's value is shown under, such as ratio"); name != nil {
		d.metric(at, name, &o.Name)
	}
}

func (d *decoder) expression(at string, n *node, target *string) {
	before := len(d.faults)
	d.textOf(at, n, objective.MaxLength, target)
	if len(d.faults) > before {
		return
	}
	compiled, err := objective.Compile(*target)
	if err != nil {
		d.fault(at, n, "%s", err)
		return
	}
	for _, name := range compiled.Names() {
		if slices.Contains(reportWords(), name) {
			d.fault(at, n, "uses %s, which is a word of the report itself and no metric", name)
		}
	}
}

// reportWords are what a script's report says beside its metrics.
func reportWords() []string { return []string{"epoch", "checkpoint"} }

func (d *decoder) metric(at string, n *node, target *string) {
	before := len(d.faults)
	d.textOf(at, n, maxKey, target)
	switch {
	case len(d.faults) > before:
	case !objective.IsName(*target):
		d.fault(at, n, "must be one name of letters, digits and _, in parts with dots between them, as the script reports it, such as accuracy or edge.latency_ms; a formula is written as expression:")
	case slices.Contains(reportWords(), *target):
		d.fault(at, n, "is a word of the report itself: give the metric another name")
	}
}
