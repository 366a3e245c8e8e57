package ranking

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/query"
	"github.com/tandem-tune/tandem/trial"
)

// maxTrialPage bounds one page of trials.
const maxTrialPage = 10000

// Trials returns one page of the study's trials.
func (q *Queries) Trials(ctx context.Context, ref string, asked protocol.TrialQuery) (protocol.TrialPage, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	columns := fieldsOf(now)
	chosen, err := query.Parse(asked.Query, columns)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	key, err := columns(cmp.Or(asked.Sort, "rank"))
	if err != nil {
		return protocol.TrialPage{}, problem.WithFields("the query is not valid", []problem.Field{{Path: "sort", Message: "this " + err.Error(), Value: asked.Sort}})
	}
	places := Rank(now.Trials, now.Study.Definition.Objectives)
	page := protocol.TrialPage{All: len(places), Sequence: now.Sequence}
	words := searchWords(asked.Find)
	places = slices.DeleteFunc(places, func(p Place) bool {
		return len(asked.States) > 0 && !slices.Contains(asked.States, p.trial.State) ||
			asked.Rung != nil && p.trial.Rung != *asked.Rung || !found(words, p.trial)
	})
	places = chosen.Apply(places)
	if asked.Descending || cmp.Or(asked.Sort, "rank") != "rank" {
		query.Sort(places, query.Key[Place]{Of: key.Of, Descending: asked.Descending})
	}
	page.Total = len(places)
	limit := asked.Limit
	if limit <= 0 {
		limit = 100
	}
	first := min(max(asked.Offset, 0), len(places))
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
