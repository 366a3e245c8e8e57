package studyfile

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/study/system"
)

// maxKnobValues bounds the values of one knob.
const maxKnobValues = 64

// readSystem reads the section: for each knob a constant, the values to try, or
// "auto"; or one word for all of it. Without it, trials that run a command are tuned.
func readSystem(s tree.Section, command bool) definition.System {
	n, at := s.Get("system")
	switch {
	case n == nil && command, n != nil && n.Kind == tree.Text && n.Raw == definition.Automatic:
		return definition.System{Word: definition.Automatic}
	case n == nil:
		return definition.System{}
	case isOff(n):
		return definition.System{Word: definition.Off}
	case n.Kind != tree.Mapping:
		s.Wrong(at, n, `"auto", "off", or a mapping of knobs such as cpu_threads`)
		return definition.System{}
	}
	var result definition.System
	known, ok := s.Open(at, n, append([]string{"objective"}, system.Names()...)...)
	if !ok {
		return result
	}
	for _, knob := range system.Catalogue() {
		if given, knobAt := known.Get(knob.Name); given != nil {
			readKnob(s.Decoder, &result, knob, knobAt, given)
		}
	}
	readSystemObjective(known, &result)
	if result.Tuning != nil {
		checkGrid(s.Decoder, at, n, *result.Tuning)
	}
	return result
}

// isOff reports whether the value is the word off, which some versions of YAML read, and
// write, as a boolean.
func isOff(n *tree.Node) bool {
	switch n.Kind {
	case tree.Text, tree.Unclear:
		return strings.EqualFold(n.Raw, definition.Off)
	case tree.Boolean:
		return n.Raw == "false"
	default:
		return false
	}
}

// readKnob reads one field of the section.
func readKnob(d *tree.Decoder, result *definition.System, knob system.Knob, at string, n *tree.Node) {
	switch {
	case n.Kind == tree.List:
		d.Fault(at, n, "must be one value, or a mapping with those to try: write {values: [...]}")
	case n.Kind == tree.Mapping:
		s, ok := d.Open(at, n, "values")
		if !ok {
			return
		}
		values, valuesAt := s.Need("values", "those to try, such as {values: [1, 2, 4]}")
		if values == nil {
			return
		}
		if values.Kind != tree.List || len(values.Items) == 0 || len(values.Items) > maxKnobValues {
			d.Fault(valuesAt, values, "must be a list of 1 to %d values", maxKnobValues)
			return
		}
		if chosen, ok := readKnobValues(d, knob, valuesAt, values); ok {
			result.Tune(system.Tuned{Name: knob.Name, Values: chosen})
		}
	case n.Kind == tree.Text && n.Raw == definition.Automatic:
		if knob.Name != system.CPUThreads && knob.Name != system.Cores {
			d.Fault(at, n, "cannot be auto: which values make sense depends on the machine, so list them: {values: [...]}")
			return
		}
		result.Tune(system.Tuned{Name: knob.Name})
	default:
		if value, ok := readKnobValue(d, knob, at, n); ok {
			result.Fix(knob.Name, value)
		}
	}
}

func readKnobValues(d *tree.Decoder, knob system.Knob, at string, n *tree.Node) ([]space.Value, bool) {
	before := len(d.Faults)
	var chosen []space.Value
	for i, item := range n.Items {
		value, ok := readKnobValue(d, knob, tree.Index(at, i), item)
		if ok && slices.Contains(chosen, value) {
			d.Fault(tree.Index(at, i), item, "is there already")
		}
		chosen = append(chosen, value)
	}
	return chosen, len(d.Faults) == before
}

// readKnobValue reads one value of a knob.
func readKnobValue(d *tree.Decoder, knob system.Knob, at string, n *tree.Node) (space.Value, bool) {
	before := len(d.Faults)
	switch knob.Kind {
	case system.Whole:
		count := 0
		d.WholeOf(at, n, int(knob.Low), int(knob.High), &count)
		return space.Int(int64(count)), len(d.Faults) == before
	case system.Number:
		amount := 0.0
		ok := d.NumberOf(at, n, knob.Low, knob.High, &amount)
		if whole := int64(amount); ok && float64(whole) == amount {
			return space.Int(whole), true
		}
		return space.Float(amount), ok
	default:
		word := ""
		if n.Kind != tree.Text || !plainWord(n.Raw) {
			d.Wrong(at, n, "a word of at most 64 letters, digits, - and _")
			return space.Value{}, false
		}
		d.TextOf(at, n, maxText, &word)
		return space.String(word), len(d.Faults) == before
	}
}

// plainWord reports whether the text can stand in a file of the kernel's.
func plainWord(s string) bool {
	return s != "" && len(s) <= 64 && s != definition.Automatic && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func readSystemObjective(s tree.Section, result *definition.System) {
	n, at := s.Get("objective")
	if n == nil {
		return
	}
	var objective string
	s.TextOf(at, n, tree.MaxKey, &objective)
	switch {
	case !slices.Contains([]system.Objective{system.Seconds, system.Joules, system.Cost}, system.Objective(objective)):
		s.Fault(at, n, "must be seconds, joules or cost")
	case result.Tuning == nil:
		s.Fault(at, n, "is for knobs that are tuned: give one the values to try, such as cpu_threads: {values: [1, 2, 4]}, or leave it out")
	default:
		result.Tuning.Objective = system.Objective(objective)
	}
}

// checkGrid refuses more configurations than can be told apart.
func checkGrid(d *tree.Decoder, at string, n *tree.Node, settings system.Settings) {
	const autos = 8 // powers of two on 128 cores
	configurations := 1
	for _, knob := range settings.Tuned {
		count := len(knob.Values)
		if count == 0 {
			count = autos
		}
		configurations *= count
	}
	if configurations > system.MaxConfigurations {
		d.Faults = append(d.Faults, problem.Field{Path: at, Line: n.Line,
			Message: "has more than 256 configurations: tune fewer knobs, or fewer values of each"})
	}
}
