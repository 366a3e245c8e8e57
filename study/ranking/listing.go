package ranking

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// maxTrialPage bounds one page of trials.
const maxTrialPage = 10000

// Trials returns one page of the study's trials.
func (q *Queries) Trials(ctx context.Context, ref string, query protocol.TrialQuery) (protocol.TrialPage, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	key, err := columnOf(query.Sort, now.Study.Definition)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	places := Rank(now.Trials, now.Study.Definition.Objectives)
	page := protocol.TrialPage{All: len(places), Sequence: now.Sequence}
	words := searchWords(query.Find)
	places = slices.DeleteFunc(places, func(p Place) bool {
		return len(query.States) > 0 && !slices.Contains(query.States, p.trial.State) ||
			query.Rung != nil && p.trial.Rung != *query.Rung || !found(words, p.trial)
	})
	places = sorted(places, key, query.Descending)
	page.Total = len(places)
	limit := query.Limit
	if limit <= 0 {
		limit = 100
	}
	first := min(max(query.Offset, 0), len(places))
	for _, p := range places[first:min(first+min(limit, maxTrialPage), len(places))] {
		page.Trials = append(page.Trials, p.Ranked())
	}
	return page, nil
}

// EachTrial visits the study's trials by number, as they are at one moment: what
// changes meanwhile is not among them. The first error of visit ends it.
func (q *Queries) EachTrial(ctx context.Context, ref string, visit func(protocol.RankedTrial) error) error {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return err
	}
	places := Rank(now.Trials, now.Study.Definition.Objectives)
	slices.SortFunc(places, func(a, b Place) int { return cmp.Compare(a.trial.Number, b.trial.Number) })
	for _, p := range places {
		if err := visit(p.Ranked()); err != nil {
			return err
		}
	}
	return nil
}

// sortKey is what a trial has in the column that a list is sorted by. The zero
// value is a trial that has nothing there.
type sortKey struct {
	standing keyStanding
	number   float64
	text     string
}

// keyStanding says which keys compare: whatever the direction, those with a
// lower standing come last.
type keyStanding uint8

const (
	noKey       keyStanding = iota
	divergedKey             // NaN
	realKey
)

func numberKey(value float64) sortKey {
	if math.IsNaN(value) {
		return sortKey{standing: divergedKey}
	}
	return sortKey{standing: realKey, number: value}
}

// textKey comes behind every number: a categorical parameter may have both.
func textKey(text string) sortKey {
	return sortKey{standing: realKey, number: math.Inf(1), text: text}
}

// compare orders by the column's values alone.
func (k sortKey) compare(other sortKey) int {
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

// sorted orders places by their keys. Equal ones keep their order, which is that
// of the ranks, in both directions.
func sorted(places []Place, key func(Place) sortKey, descending bool) []Place {
	type keyed struct {
		Place
		key sortKey
	}
	list := make([]keyed, len(places))
	for i, p := range places {
		list[i] = keyed{p, key(p)}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		if a.key.standing != b.key.standing {
			return cmp.Compare(b.key.standing, a.key.standing)
		}
		if descending {
			return b.key.compare(a.key)
		}
		return a.key.compare(b.key)
	})
	for i, one := range list {
		places[i] = one.Place
	}
	return places
}

// columnOf finds what a trial has in a column, by the name that a query sorts by.
func columnOf(name string, def definition.Definition) (func(Place) sortKey, error) {
	if parameter, ok := strings.CutPrefix(name, "params."); ok && hasParameter(def, parameter) {
		return func(p Place) sortKey { return valueKey(p.trial.Configuration[parameter]) }, nil
	}
	if at, ok := objectiveOf(name); ok && at < len(def.Objectives) {
		return func(p Place) sortKey { return p.value(at) }, nil
	}
	if of, ok := plainColumns[cmp.Or(name, "rank")]; ok {
		return of, nil
	}
	if name == "latest" && def.Objectives[0].Metric != "" {
		return func(p Place) sortKey {
			value, ok := p.trial.Last[def.Objectives[0].Metric]
			return keyIf(ok, float64(value))
		}, nil
	}
	columns := append(slices.Sorted(maps.Keys(plainColumns)), "latest (without a formula), value.N (objective N, from 0), params.NAME")
	return nil, problem.WithFields("the query is not valid", []problem.Field{{Path: "sort", Value: name,
		Message: fmt.Sprintf("study %s has no such column: sort by %s", def.Name, strings.Join(columns, ", "))}})
}

// plainColumns are the columns that every study has.
var plainColumns = map[string]func(Place) sortKey{
	"rank":    func(p Place) sortKey { return keyIf(p.rank > 0, float64(p.rank)) },
	"number":  func(p Place) sortKey { return numberKey(float64(p.trial.Number)) },
	"state":   func(p Place) sortKey { return textKey(string(p.trial.State)) },
	"value":   func(p Place) sortKey { return p.value(0) },
	"rung":    func(p Place) sortKey { return numberKey(float64(p.trial.Rung)) },
	"epochs":  func(p Place) sortKey { return numberKey(float64(p.trial.Epochs)) },
	"seconds": func(p Place) sortKey { return numberKey(float64(p.trial.Seconds)) },
	"joules":  func(p Place) sortKey { return keyIf(p.trial.Energy.Method != "", float64(p.trial.Energy.Joules)) },
	"violation": func(p Place) sortKey {
		return keyIf(len(p.trial.Results) > 0, float64(Violation(p.trial)))
	},
	"budget": func(p Place) sortKey {
		b := p.trial.Budget
		if b.Measured() {
			return numberKey(b.Seconds + b.Joules) // it is one of the two
		}
		return numberKey(float64(b.Epochs) * b.DataFraction)
	},
}

func keyIf(has bool, value float64) sortKey {
	if !has {
		return sortKey{}
	}
	return numberKey(value)
}

// value is the newest result in an objective; of a repeated trial the mean.
func (p Place) value(objective int) sortKey {
	value, ok := p.trial.Value(objective)
	if p.repeated != nil && objective < len(p.repeated.Mean) {
		value = p.repeated.Mean[objective]
	}
	return keyIf(ok, float64(value))
}

// objectiveOf reads the N of "value.N".
func objectiveOf(name string) (int, bool) {
	text, ok := strings.CutPrefix(name, "value.")
	at, err := strconv.Atoi(text)
	return at, ok && err == nil && at >= 0
}

func hasParameter(def definition.Definition, name string) bool {
	return slices.ContainsFunc(def.Space.Parameters, func(p space.Parameter) bool { return p.Name == name })
}

// valueKey sorts a parameter: numbers, then booleans and texts; a parameter that
// does not exist in the configuration is nothing.
func valueKey(value space.Value) sortKey {
	if number, ok := value.Number(); ok {
		return numberKey(number)
	}
	if value.IsZero() {
		return sortKey{}
	}
	return textKey(value.String())
}

// tagMark stands before a tag that is searched for.
const tagMark = "tag:"

// searchWord is a word of a search, in lower case.
type searchWord struct {
	text string
	// number is set for "12" and "#12"; with the sign it can be nothing else.
	number *int
	signed bool
	// tag is set for "tag:word".
	tag string
	// name and value are set for "name=value".
	name, value string
}

func searchWords(find string) []searchWord {
	var words []searchWord
	for text := range strings.FieldsSeq(strings.ToLower(find)) {
		word := searchWord{text: text}
		digits, signed := strings.CutPrefix(text, "#")
		if number, err := strconv.Atoi(digits); err == nil {
			word.number, word.signed = &number, signed
		}
		if tag, asked := strings.CutPrefix(text, tagMark); asked {
			word.tag = tag
		}
		word.name, word.value, _ = strings.Cut(text, "=")
		words = append(words, word)
	}
	return words
}

// in reports whether a trial has the word: "#12" is a trial's number, "tag:word" a
// tag, "name=value" the start of a parameter's value, anything else a part of a
// parameter, a tag, or of a word about the trial.
func (w searchWord) in(t *trial.Trial) bool {
	if w.tag != "" {
		return slices.ContainsFunc(t.Tags, func(tag string) bool { return strings.EqualFold(tag, w.tag) })
	}
	if w.number != nil && (*w.number == t.Number || w.signed) {
		return *w.number == t.Number
	}
	if len(w.name) < len(w.text) { // it has a sign of equality
		for name, value := range t.Configuration {
			if strings.EqualFold(name, w.name) && strings.HasPrefix(strings.ToLower(value.String()), w.value) {
				return true
			}
		}
		return false
	}
	for _, text := range []string{string(t.State), t.Origin, t.Worker, t.Host, t.Reason} {
		if strings.Contains(strings.ToLower(text), w.text) {
			return true
		}
	}
	for _, tag := range t.Tags {
		if strings.Contains(strings.ToLower(tag), w.text) {
			return true
		}
	}
	for name, value := range t.Configuration {
		if strings.Contains(strings.ToLower(name), w.text) || strings.Contains(strings.ToLower(value.String()), w.text) {
			return true
		}
	}
	return false
}

// found reports whether a trial has every word.
func found(words []searchWord, t *trial.Trial) bool {
	for _, word := range words {
		if !word.in(t) {
			return false
		}
	}
	return true
}
