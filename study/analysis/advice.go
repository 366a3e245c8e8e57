package analysis

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/advice"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Advice says what the study's results tell of its space: ranges to widen, values at
// which trials fail, parameters that depend on each other or that hardly matter, and whether more
// trials are worth it. It names nothing that chance would show as well.
func (q *Queries) Advice(ctx context.Context, ref string) (protocol.Advice, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Advice{}, err
	}
	def := now.Study.Definition
	answer := protocol.Advice{Study: def.Name, Pieces: []protocol.AdvicePiece{}, Notes: []string{}}
	trials := trial.Searched(now.Trials)
	leader := q.leader(now)
	if len(def.Objectives) > 1 {
		answer.Notes = append(answer.Notes, "the ends of ranges are looked at for studies with one objective only")
	} else if leader != nil {
		answer.Pieces, answer.Notes = ranges(now, trials, now.Trials[*leader].Configuration)
		without, err := q.idle(ctx, now, trials, now.Trials[*leader].Configuration)
		if err != nil {
			return answer, err
		}
		answer.Pieces = append(answer.Pieces, without...)
	}
	answer.Pieces = append(answer.Pieces, failures(def.Space, trials, leader)...)
	return answer, nil
}

// ranges looks at the highest rung at which enough trials were measured that no model
// proposed.
func ranges(now journal.View, trials []trial.Trial, leading space.Configuration) (pieces []protocol.AdvicePiece, notes []string) {
	pieces, notes = []protocol.AdvicePiece{}, []string{}
	def := now.Study.Definition
	for rung := len(now.Ladder) - 1; rung >= 0; rung-- {
		list, drawn := measured(trials, rung, def.Objectives[0].Direction)
		if drawn < advice.Least {
			continue
		}
		for _, one := range advice.Ranges(def.Space, list, leading) {
			pieces = append(pieces, ofRange(def.Space, one, rung))
		}
		for _, one := range advice.Turns(def.Space, list) {
			pieces = append(pieces, ofPair(one, rung))
		}
		return append(pieces, more(now, list, rung)...), notes
	}
	return pieces, append(notes, fmt.Sprintf("no rung has the %d measured trials drawn without a model that the ends of ranges need", advice.Least))
}

// measured are the trials with a result at the rung, and how many of them no model proposed.
func measured(trials []trial.Trial, rung int, direction definition.Direction) (list []advice.Trial, drawn int) {
	for _, t := range trials {
		for _, result := range t.Results {
			if result.Rung != rung || len(result.Values) == 0 {
				continue
			}
			one := advice.Trial{Configuration: t.Configuration, Drawn: drawnFreely(t), Score: direction.Score(result.Values[0])}
			if result.Violation > 0 {
				one.Score = math.NaN() // nothing that may be taken
			}
			if list = append(list, one); one.Drawn {
				drawn++
			}
		}
	}
	return list, drawn
}

func ofRange(s space.Space, one advice.Piece, rung int) protocol.AdvicePiece {
	p, _ := s.Parameter(one.Parameter)
	end, bound := "lower", "below"
	if one.High {
		end, bound = "upper", "above"
	}
	piece := pieceOf("range", one)
	piece.Rung = &rung
	piece.Found = fmt.Sprintf("The best trials lie at the %s end of %s.", end, one.Parameter)
	piece.Do = fmt.Sprintf("If %s can be %s %s, start a new study like this one with a wider range, which begins with these results.", one.Parameter, bound, edge(p, one.High))
	piece.Evidence = fmt.Sprintf("%d of %s from %s to %s are among the best %d, and %d of %d others. Rank correlation over the %d drawn without a model: %.2f; probability by chance: %s.",
		one.Hits, format.Count(one.Inside, "trial"), format.Value(piece.Low), format.Value(piece.High), one.Hits+one.Misses, one.Misses, one.Outside, one.Drawn, one.Rank, byChance(one.Chance))
	return piece
}

func ofPair(one advice.Pair, rung int) protocol.AdvicePiece {
	piece := protocol.AdvicePiece{
		Kind: "interaction", Parameter: one.Parameter, With: one.With, Low: one.Values[0], High: one.Values[len(one.Values)-1],
		Rung: &rung, Inside: one.Trials[0], Outside: one.Trials[1], Drawn: one.Trials[0] + one.Trials[1], Chance: one.Chance,
	}
	where, way, other := span(piece), "larger", "smaller"
	if one.Inside < 0 {
		way, other = other, way
	}
	piece.Found = fmt.Sprintf("Which %s is better depends on %s.", one.Parameter, one.With)
	piece.Do = fmt.Sprintf("Where %s is %s, a %s %s is better, and elsewhere a %s one. Look at both in the contour chart before you narrow either.", one.With, where, way, one.Parameter, other)
	piece.Evidence = fmt.Sprintf("Rank correlation of %s with better results: %.2f over %s with %s %s, and %.2f over %d others, all drawn without a model; probability by chance: %s.",
		one.Parameter, one.Inside, format.Count(one.Trials[0], "trial"), one.With, where, one.Outside, one.Trials[1], byChance(one.Chance))
	return piece
}

// idle says which parameters hardly matter for the results of the full budget. A study
// that still runs would be asked too often: each time, chance has another try.
func (q *Queries) idle(ctx context.Context, now journal.View, trials []trial.Trial, leading space.Configuration) ([]protocol.AdvicePiece, error) {
	if !now.Study.Status.Over() {
		return nil, nil
	}
	return q.kept.of(ctx, now, func() []protocol.AdvicePiece {
		def, rung := now.Study.Definition, len(now.Ladder)-1
		list, _ := measured(trials, rung, def.Objectives[0].Direction)
		return without(def.Space, list, rung, leading)
	})
}

func without(s space.Space, list []advice.Trial, rung int, leading space.Configuration) (pieces []protocol.AdvicePiece) {
	var seen []importance.Observation
	for _, one := range list {
		seen = append(seen, importance.Observation{Configuration: one.Configuration, Score: one.Score})
	}
	weights := importance.Of(s, seen).Parameters
	for _, one := range advice.Idle(s, list) {
		if slices.ContainsFunc(weights, func(p importance.Parameter) bool { return p.Name == one.Parameter && p.Chance <= advice.Level }) {
			continue // the best ones differ in it
		}
		piece := protocol.AdvicePiece{Kind: "idle", Parameter: one.Parameter, Rung: &rung, Drawn: one.Drawn, Chance: one.Chance}
		piece.Found = one.Parameter + " decides less than 10% of how trials rank."
		piece.Do = "Leave it out of a new study."
		if value, has := leading[one.Parameter]; has {
			piece.Low, piece.High = value, value
			piece.Do = fmt.Sprintf("Fix it at %s, as the best trial has it, or leave it out of a new study.", format.Value(value))
		}
		piece.Evidence = fmt.Sprintf("With it, the others predict the ranks of %d trials drawn without a model better by %.1f%% of their variance. Of %d effects of %.0f%%, planted for comparison in its place, %d improved them more; probability of so little with such an effect: %s.",
			one.Drawn, 100*one.Gain, one.Tries, 100*advice.Planted, one.More, byChance(one.Chance))
		pieces = append(pieces, piece)
	}
	return pieces
}

// more says of an ended study whether its later trials were still better than its
// earlier ones.
func more(now journal.View, list []advice.Trial, rung int) []protocol.AdvicePiece {
	climb, climbs := advice.Climbs(list)
	if now.Study.Status != protocol.StudyCompleted || !climbs {
		return nil
	}
	return []protocol.AdvicePiece{{
		Kind: "more", Rung: &rung, Drawn: climb.Trials, Chance: climb.Chance,
		Found:    "The search was still getting better when it ended.",
		Do:       fmt.Sprintf("Run more trials, %d for example ('tandem study extend').", max(1, len(now.Trials)/2)),
		Evidence: fmt.Sprintf("Rank correlation between order and better results over the later %s of rung %d: %.2f; probability by chance: %s.", format.Count(climb.Trials, "trial"), rung, climb.Rank, byChance(climb.Chance)),
	}}
}

// span has the values of a piece, in words.
func span(piece protocol.AdvicePiece) string {
	if piece.Low == piece.High {
		return format.Value(piece.Low)
	}
	return "from " + format.Value(piece.Low) + " to " + format.Value(piece.High)
}

func byChance(chance float64) string {
	if chance < 0.001 {
		return "below 0.001"
	}
	return fmt.Sprintf("%.3f", chance)
}

// edge is the bound at an end of the parameter's range.
func edge(p space.Parameter, high bool) string {
	low, top := space.Float(p.Low), space.Float(p.High)
	if last := len(p.Values) - 1; last >= 0 {
		low, top = p.Values[0], p.Values[last]
	}
	if high {
		return format.Value(top)
	}
	return format.Value(low)
}

func pieceOf(kind string, one advice.Piece) protocol.AdvicePiece {
	return protocol.AdvicePiece{
		Kind: kind, Parameter: one.Parameter, Low: one.Values[0], High: one.Values[len(one.Values)-1],
		Hits: one.Hits, Inside: one.Inside, Misses: one.Misses, Outside: one.Outside, Drawn: one.Drawn, Chance: one.Chance,
	}
}

// failures looks at the trials drawn without a model that failed, and at those that
// were measured.
func failures(s space.Space, trials []trial.Trial, leader *int) []protocol.AdvicePiece {
	var failed, well []space.Configuration
	number := 0
	for _, t := range trials {
		switch {
		case !drawnFreely(t):
		case t.State == trial.Failed:
			failed, number = append(failed, t.Configuration), t.Number
		case len(t.Results) > 0:
			well = append(well, t.Configuration)
		}
	}
	var pieces []protocol.AdvicePiece
	for _, one := range advice.Failed(s, failed, well) {
		piece := pieceOf("failures", one)
		where := span(piece)
		piece.Trial = &number
		piece.Found = fmt.Sprintf("Trials fail where %s is %s.", one.Parameter, where)
		piece.Do = fmt.Sprintf("Read the log of trial %d. If it is the value's fault, leave these values out of a new study.", number)
		piece.Evidence = fmt.Sprintf("%d of %s there failed, and %d of %d others, all drawn without a model; probability by chance: %s.",
			one.Hits, format.Count(one.Inside, "trial"), one.Misses, one.Outside, byChance(one.Chance))
		if name, value, found := one.Shared(s, failed, well); found {
			piece.Found = fmt.Sprintf("Trials fail where %s is %s and %s is %s.", one.Parameter, where, name, format.Value(value))
			piece.Do = fmt.Sprintf("Read the log of trial %d. If it is the values' fault, leave them out together in a new study.", number)
			piece.Evidence += fmt.Sprintf(" All that failed there have this %s, and none of the others there.", name)
		} else if i := slices.IndexFunc(trials, func(t trial.Trial) bool { return leader != nil && t.Number == *leader }); i >= 0 && one.Holds(trials[i].Configuration) {
			piece.Do = fmt.Sprintf("Read the log of trial %d. Keep these values: the best, trial %d, has one of them.", number, *leader)
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

// drawnFreely reports whether the trial's configuration was drawn without
// regard to what was measured before.
func drawnFreely(t trial.Trial) bool {
	return slices.Contains([]string{"random", "grid", "sobol"}, t.Origin)
}
