package studyfile

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/objective"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// exampleObjective ends messages about a missing objective.
const exampleObjective = "say what to improve, such as {metric: accuracy, direction: maximize}"

// readObjectives reads one objective, as a mapping, or a list of them.
func readObjectives(s tree.Section) []definition.Objective {
	n, at := s.Need("objective", exampleObjective)
	if n == nil {
		return nil
	}
	if n.Kind == tree.List && len(n.Items) == 0 {
		s.Fault(at, n, "is empty: %s", exampleObjective)
	}
	items, paths := tree.Elements(at, n)
	if len(items) > definition.MaxObjectives {
		s.Fault(paths[definition.MaxObjectives], items[definition.MaxObjectives], "is one too many: at most %d, as nearly no trial beats another in more; make constraints of the others", definition.MaxObjectives)
		items = items[:definition.MaxObjectives]
	}
	var objectives []definition.Objective
	for i, item := range items {
		one := readObjective(s.Decoder, paths[i], item)
		if label := one.Label(); label != "" && slices.ContainsFunc(objectives, func(other definition.Objective) bool { return other.Label() == label }) {
			s.Fault(paths[i], item, "is called %s like another objective: keep one of the two, or name it otherwise", label)
		}
		if one.Reference != nil && len(items) == 1 {
			reference, at := (tree.Section{Decoder: s.Decoder, Path: paths[i], Node: item}).Get("reference")
			s.Fault(at, reference, "bounds the hypervolume of several objectives, and there is one: leave it out")
		}
		objectives = append(objectives, one)
	}
	return objectives
}

func readObjective(d *tree.Decoder, at string, n *tree.Node) definition.Objective {
	var o definition.Objective
	s, ok := d.Open(at, n, "metric", "expression", "name", "direction", "target", "reference")
	if !ok {
		return o
	}
	if expression, _ := s.Get("expression"); expression != nil {
		readFormula(s, &o)
	} else {
		if metric, at := s.Need("metric", "the name the script reports it under, such as accuracy; or write expression: for a formula over metrics"); metric != nil {
			readReported(d, at, metric, &o.Metric)
		}
		if name, at := s.Get("name"); name != nil {
			d.Fault(at, name, "belongs to an expression: a metric is shown under its own name")
		}
	}
	if direction, at := s.Need("direction", "maximize or minimize"); direction != nil {
		o.Direction = readDirection(d, at, direction)
	}
	o.Target, o.Reference = readBound(s, "target"), readBound(s, "reference")
	return o
}

func readDirection(d *tree.Decoder, at string, n *tree.Node) definition.Direction {
	var name string
	before := len(d.Faults)
	d.TextOf(at, n, tree.MaxKey, &name)
	direction := definition.Direction(name)
	if direction != definition.Maximize && direction != definition.Minimize && len(d.Faults) == before {
		d.Fault(at, n, "must be maximize or minimize")
	}
	return direction
}

// readFormula reads an objective that is computed from metrics.
func readFormula(s tree.Section, o *definition.Objective) {
	if metric, at := s.Get("metric"); metric != nil {
		s.Fault(at, metric, "is given beside an expression: keep one of the two")
	}
	expression, at := s.Get("expression")
	readExpression(s.Decoder, at, expression, &o.Expression)
	if name, at := s.Need("name", "what the formula's value is shown under, such as ratio"); name != nil {
		readMetric(s.Decoder, at, name, &o.Name)
	}
}

func readExpression(d *tree.Decoder, at string, n *tree.Node, target *string) {
	before := len(d.Faults)
	d.TextOf(at, n, objective.MaxLength, target)
	if len(d.Faults) > before {
		return
	}
	compiled, err := objective.Compile(*target)
	if err != nil {
		d.Fault(at, n, "%s", err)
		return
	}
	for _, name := range compiled.Names() {
		if slices.Contains(reportWords(), name) {
			d.Fault(at, n, "uses %s, which is a word of the report itself and no metric", name)
		}
	}
}

// reportWords are what a script's report says beside its metrics.
func reportWords() []string { return []string{"epoch", "checkpoint"} }

// readReported reads the name of a metric that stands in no formula: it may have spaces.
func readReported(d *tree.Decoder, at string, n *tree.Node, target *string) {
	if words := strings.Fields(n.Raw); len(words) > 1 && strings.Join(words, " ") == n.Raw && objective.IsName(strings.Join(words, "_")) {
		d.TextOf(at, n, tree.MaxKey, target)
		return
	}
	readMetric(d, at, n, target)
}

func readMetric(d *tree.Decoder, at string, n *tree.Node, target *string) {
	before := len(d.Faults)
	d.TextOf(at, n, tree.MaxKey, target)
	switch {
	case len(d.Faults) > before:
	case !objective.IsName(*target):
		d.Fault(at, n, "must be one name of letters, digits and _, in parts with dots between them, as the script reports it, such as accuracy or edge.latency_ms; a formula is written as expression:")
	case slices.Contains(reportWords(), *target):
		d.Fault(at, n, "is a word of the report itself: give the metric another name")
	}
}
