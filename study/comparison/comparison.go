// Package comparison answers: how do two studies differ, in their definitions and
// in their results?
package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Side is one of two studies that are compared.
type Side struct {
	Study          protocol.StudyView
	Recommendation protocol.Recommendation
}

// Difference is how two studies differ.
type Difference struct {
	// A and B name the studies, as OWNER:NAME.
	A string `json:"a"`
	B string `json:"b"`
	// Definition has what differs in their definitions but the name, by path.
	Definition []Change `json:"definition"`
	// Results has what came of each, whether it differs or not.
	Results []Result `json:"results"`
	// Winner has the parameters of both recommended trials, whether they differ
	// or not; empty where neither has one.
	Winner []Change `json:"winner"`
	// Notes are plain sentences on what cannot be compared.
	Notes []string `json:"notes"`
}

// Change is a place where the studies differ.
type Change struct {
	// Path is the place, such as space.learning_rate.high.
	Path string `json:"path"`
	// A and B are the values as JSON; null where a study has none there.
	A json.RawMessage `json:"a"`
	B json.RawMessage `json:"b"`
}

// Differs reports whether the two values differ.
func (c Change) Differs() bool { return !bytes.Equal(c.A, c.B) }

// Result is a number of each study.
type Result struct {
	Name string `json:"name"`
	// Unit is "s", "J" or empty.
	Unit string       `json:"unit,omitempty"`
	A    *trial.Float `json:"a"`
	B    *trial.Float `json:"b"`
	// EstimateA and EstimateB say that the number is an estimate.
	EstimateA bool `json:"estimate_a,omitempty"`
	EstimateB bool `json:"estimate_b,omitempty"`
}

// Compare says how two studies differ.
func Compare(a, b Side) (Difference, error) {
	d := Difference{A: nameOf(a), B: nameOf(b), Definition: []Change{}, Winner: []Change{}, Notes: []string{}}
	left, err := treeOf(a.Study.Definition)
	if err != nil {
		return d, err
	}
	right, err := treeOf(b.Study.Definition)
	if err != nil {
		return d, err
	}
	delete(left, "name")
	delete(right, "name")
	if d.Definition, err = differences(d.Definition, "", left, right); err != nil {
		return d, err
	}
	d.Results = resultsOf(a, b)
	if d.Winner, err = winners(a.Recommendation.Best, b.Recommendation.Best); err != nil {
		return d, err
	}
	d.Notes = incomparable(a, b)
	return d, nil
}

func nameOf(side Side) string { return side.Study.Owner + ":" + side.Study.Name }

// treeOf is a definition as JSON has it.
func treeOf(def definition.Definition) (map[string]any, error) {
	data, err := json.Marshal(def)
	if err != nil {
		return nil, fmt.Errorf("write the definition of %s: %w", def.Name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", def.Name, err)
	}
	return tree, nil
}

// differences adds what differs between two trees: inside what both have, and as
// a whole what only one has.
func differences(list []Change, path string, a, b any) ([]Change, error) {
	left, right := branches(a), branches(b)
	if left == nil || right == nil {
		one, err := json.Marshal(a)
		if err != nil {
			return list, err
		}
		other, err := json.Marshal(b)
		if change := (Change{path, one, other}); err == nil && change.Differs() {
			list = append(list, change)
		}
		return list, err
	}
	names := map[string]bool{}
	for name := range left {
		names[name] = true
	}
	for name := range right {
		names[name] = true
	}
	var err error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if list, err = differences(list, joined(path, name), left[name], right[name]); err != nil {
			return list, err
		}
	}
	return list, nil
}

// branches are the parts of a node by name; nil where it has none.
func branches(node any) map[string]any {
	switch whole := node.(type) {
	case map[string]any:
		return whole
	case []any:
		names, named := namesOf(whole)
		if !named {
			return nil
		}
		parts := make(map[string]any, len(whole))
		for i, name := range names {
			parts[name] = whole[i]
		}
		return parts
	}
	return nil
}

// joined is a path one step deeper. The list of parameters is what people know
// as the space itself.
func joined(path, name string) string {
	switch {
	case path == "":
		return name
	case path == "space" && name == "parameters":
		return path
	}
	return path + "." + name
}

// namesOf are the names of a list's items, where each has one of its own: a
// parameter's place in the list is not what makes it another one.
func namesOf(items []any) ([]string, bool) {
	var names []string
	for _, item := range items {
		fields, is := item.(map[string]any)
		if !is {
			return nil, false
		}
		name, is := fields["name"].(string)
		if !is {
			if name, is = fields["metric"].(string); !is {
				return nil, false
			}
		}
		if slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// changes are the values of both at each path that either has, in order.
func changes(a, b map[string]json.RawMessage) []Change {
	paths := map[string]bool{}
	for path := range a {
		paths[path] = true
	}
	for path := range b {
		paths[path] = true
	}
	list := make([]Change, 0, len(paths))
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		list = append(list, Change{path, orNull(a[path]), orNull(b[path])})
	}
	return list
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// winners are the parameters of both recommended trials.
func winners(a, b *protocol.Best) ([]Change, error) {
	values := func(best *protocol.Best) (map[string]json.RawMessage, error) {
		list := map[string]json.RawMessage{}
		if best == nil {
			return list, nil
		}
		list["trial"] = json.RawMessage(strconv.Itoa(best.Number))
		for name, value := range best.Params {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("write the parameter %s of trial %d: %w", name, best.Number, err)
			}
			list["params."+name] = text
		}
		return list, nil
	}
	left, err := values(a)
	if err != nil {
		return nil, err
	}
	right, err := values(b)
	if err != nil {
		return nil, err
	}
	return changes(left, right), nil
}

// resultsOf are the numbers of both.
func resultsOf(a, b Side) []Result {
	var list []Result
	for i, objective := range a.Study.Definition.Objectives {
		name := objective.Label()
		list = append(list, Result{Name: "best " + name, A: bestOf(a, name, i), B: bestOf(b, name, -1),
			EstimateA: estimatedBest(a), EstimateB: estimatedBest(b)})
	}
	for _, objective := range b.Study.Definition.Objectives {
		name := objective.Label()
		if !slices.ContainsFunc(list, func(r Result) bool { return r.Name == "best "+name }) {
			list = append(list, Result{Name: "best " + name, B: bestOf(b, name, -1), EstimateB: estimatedBest(b)})
		}
	}
	add := func(name, unit string, of func(protocol.Progress) float64) {
		left, right := trial.Float(of(a.Study.Progress)), trial.Float(of(b.Study.Progress))
		list = append(list, Result{Name: name, Unit: unit, A: &left, B: &right})
	}
	add("time", "s", func(p protocol.Progress) float64 { return p.ElapsedSeconds })
	add("training time", "s", func(p protocol.Progress) float64 { return p.TrialSeconds })
	add("energy", "J", func(p protocol.Progress) float64 { return float64(p.Energy.Joules) })
	energy := &list[len(list)-1]
	energy.EstimateA, energy.EstimateB = a.Study.Progress.Energy.Estimated(), b.Study.Progress.Energy.Estimated()
	if a.Study.Progress.Energy.Method == "" {
		energy.A = nil
	}
	if b.Study.Progress.Energy.Method == "" {
		energy.B = nil
	}
	add("epochs", "", func(p protocol.Progress) float64 { return float64(p.Epochs) })
	add("data passes", "", func(p protocol.Progress) float64 { return p.DataPasses })
	add("configurations", "", func(p protocol.Progress) float64 { return float64(p.Created) })
	add("failed trials", "", func(p protocol.Progress) float64 { return float64(p.Trials[trial.Failed]) })
	return list
}

func estimatedBest(side Side) bool {
	return side.Recommendation.Best != nil && side.Recommendation.Best.Estimated
}

// bestOf is the recommended trial's value of an objective, by name; nil where
// there is none.
func bestOf(side Side, name string, at int) *trial.Float {
	best := side.Recommendation.Best
	if best == nil {
		return nil
	}
	if at < 0 {
		at = slices.IndexFunc(side.Study.Definition.Objectives, func(o definition.Objective) bool { return o.Label() == name })
	}
	switch {
	case at == 0:
		return &best.Value
	case at > 0 && at < len(best.Values):
		return &best.Values[at]
	}
	return nil
}

// incomparable says why numbers of the two may not compare.
func incomparable(a, b Side) []string {
	notes := []string{}
	for _, side := range []Side{a, b} {
		if !side.Study.Status.Over() {
			notes = append(notes, fmt.Sprintf("%s is still %s: its numbers will change", nameOf(side), side.Study.Status))
		}
	}
	left, right := a.Recommendation.Best, b.Recommendation.Best
	if left != nil && right != nil && left.Budget != right.Budget {
		notes = append(notes, "the recommended trials were measured with different budgets: their values do not compare")
	}
	if !sameObjectives(a.Study.Definition, b.Study.Definition) {
		notes = append(notes, "the studies have different objectives")
	}
	return notes
}

func sameObjectives(a, b definition.Definition) bool {
	return slices.EqualFunc(a.Objectives, b.Objectives, func(x, y definition.Objective) bool {
		return x.Label() == y.Label() && x.Expression == y.Expression && x.Direction == y.Direction
	})
}

// Percent is the change from A to B in percent of A; false where there is none.
func (r Result) Percent() (float64, bool) {
	if r.A == nil || r.B == nil || !r.A.IsFinite() || !r.B.IsFinite() || *r.A == 0 {
		return 0, false
	}
	return 100 * float64(*r.B-*r.A) / math.Abs(float64(*r.A)), true
}
