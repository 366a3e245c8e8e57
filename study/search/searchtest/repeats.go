package searchtest

import "github.com/tandem-tune/tandem/study/search"

// repeated is a trial that trains another one's configuration again.
type repeated struct {
	watched
	of int
}

// repeat enters a training again, and checks that it is one of the best's, that
// it is owed, and that the search was over before.
func (r *referee) repeat(a search.Action) {
	again := r.settings.Repeats
	if again == nil {
		r.Fatalf("repeated trial %d, which nobody wants", *a.RepeatOf)
	}
	r.searched(a)
	of := *a.RepeatOf
	if of < 0 || of >= len(r.trials) || a.Trial != len(r.trials)+len(r.repeats) {
		r.Fatalf("created trial %d, a repeat of %d, after %d others and %d repeats", a.Trial, of, len(r.trials), len(r.repeats))
	}
	if a.Origin != "repeat" || a.Rung != r.top() || a.Configuration.Key() != r.trials[of].configuration.Key() {
		r.Fatalf("repeated trial %d of %s at rung %d of %d with %s, of origin %q",
			of, r.trials[of].configuration.Key(), a.Rung, r.top()+1, a.Configuration.Key(), a.Origin)
	}
	levels := r.levels(r.top(), func(watched) bool { return true })
	if o, there := r.trials[of].outcomes[r.top()]; !there || o.lost || o.violation > 0 {
		r.Fatalf("repeated trial %d, which has no feasible result at the top", of)
	}
	if better := r.others(of, levels, func(level int) bool { return level < levels[of] }); better >= again.Trials {
		r.Fatalf("repeated trial %d, though %d better configurations are there for %d places", of, better, again.Trials)
	}
	if begun, owed := r.tally(of); begun >= owed {
		r.Fatalf("repeated trial %d %d times; %d are owed", of, begun+1, owed)
	}
	r.repeats = append(r.repeats, repeated{of: of, watched: watched{rung: a.Rung, outcomes: map[int]outcome{}, reports: map[moment]float64{}}})
	chosen := map[int]bool{}
	for _, one := range r.repeats {
		chosen[one.of] = true
	}
	if len(chosen) > again.Trials {
		r.Fatalf("repeated %d trials, not %d", len(chosen), again.Trials)
	}
}

// others counts the configurations of other trials, but not the trial's own,
// whose feasible level is as wanted.
func (r *referee) others(of int, levels map[int]int, wanted func(level int) bool) int {
	found := map[string]bool{}
	for number, level := range levels {
		o := r.trials[number].outcomes[r.top()]
		if key := r.trials[number].configuration.Key(); key != r.trials[of].configuration.Key() && !o.lost && o.violation == 0 && wanted(level) {
			found[key] = true
		}
	}
	return len(found)
}

// tally is how often the trial's configuration was trained again, and how often
// it has to be: until it has its results, with one more for each that failed,
// but none for one that failed in another's place.
func (r *referee) tally(of int) (begun, owed int) {
	for number, t := range r.trials {
		if _, there := t.outcomes[r.top()]; there && r.trials[number].configuration.Key() == r.trials[of].configuration.Key() && t.state == measured {
			owed--
		}
	}
	owed = max(0, owed+r.settings.Repeats.Times)
	wanted := owed
	for _, one := range r.repeats {
		if one.of != of {
			continue
		}
		if one.state == failed && begun < wanted {
			owed++
		}
		begun++
	}
	return begun, owed
}

// nothingOwed checks that none of those which are surely among the best waits
// for a repeat.
func (r *referee) nothingOwed(a search.Action) {
	if r.settings.Repeats == nil || a.Kind == search.Wait && len(r.repeats) == 0 {
		return
	}
	levels := r.levels(r.top(), func(watched) bool { return true })
	chosen := map[string]bool{}
	for _, one := range r.repeats {
		if begun, owed := r.tally(one.of); begun < owed {
			r.Fatalf("%s though trial %d was repeated %d of %d times", a.Kind, one.of, begun, owed)
		}
		chosen[r.trials[one.of].configuration.Key()] = true
	}
	for number, level := range levels {
		o, t := r.trials[number].outcomes[r.top()], r.trials[number]
		if o.lost || o.violation > 0 || chosen[t.configuration.Key()] {
			continue
		}
		notWorse := r.others(number, levels, func(other int) bool { return other <= level })
		if begun, owed := r.tally(number); notWorse < r.settings.Repeats.Trials && begun < owed {
			r.Fatalf("%s though trial %d, better than all but %d configurations, was not repeated", a.Kind, number, notWorse)
		}
	}
}
