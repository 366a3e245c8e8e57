package searchtest

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
)

// populated reports whether a population has all who start by themselves.
func (r *referee) populated() bool {
	originals := 0
	for _, t := range r.trials {
		if !t.child {
			originals++
		}
	}
	return r.settings.Promotion == budget.Population && originals >= r.settings.Population
}

// standing counts the others at the rung that are better, and those that are
// worse, and all that have an outcome there, with or without a value.
func (r *referee) standing(number, rung int) (better, worse, n, usable int) {
	better, notWorse, n := r.rank(number, rung)
	for _, t := range r.trials {
		if outcome, there := t.outcomes[rung]; there && !outcome.lost {
			usable++
		}
	}
	return better, n - 1 - notWorse, n, usable
}

// replace checks a child: whose it is, whose place it takes, and what of its
// parent's configuration it changes.
func (r *referee) replace(a search.Action) {
	if r.settings.Promotion != budget.Population || a.Parent == nil || a.Replaces == nil || *a.Parent == *a.Replaces || a.Origin != "population" {
		r.Fatalf("created %s", show(a))
	}
	if r.full() {
		r.Fatalf("created a child after %d of %d trials, with %d in the queue", len(r.trials), r.settings.MaxTrials, len(r.queue))
	}
	loser, parent := &r.trials[*a.Replaces], &r.trials[*a.Parent]
	if loser.state == out || loser.replaced || a.Rung != loser.rung+1 {
		r.Fatalf("%s takes the place of a trial at rung %d that is out, or was replaced", show(a), loser.rung)
	}
	_, worse, n, _ := r.standing(*a.Replaces, loser.rung)
	if !loser.outcomes[loser.rung].lost && worse >= n/5 {
		r.Fatalf("%s takes the place of a trial that beats %d of %d", show(a), worse, n)
	}
	theirs, there := parent.outcomes[loser.rung]
	if better, _, _, _ := r.standing(*a.Parent, loser.rung); !there || theirs.lost || better >= n/5 {
		r.Fatalf("%s continues a trial that %d of %d beat", show(a), better, n)
	}
	for _, p := range r.settings.Space.Parameters {
		theirs, has := parent.configuration[p.Name]
		if own, also := a.Configuration[p.Name]; (p.Kind == space.Model || p.Kind == space.Inference) && (has != also || theirs != own) {
			r.Fatalf("%s: %s was %v, and is the model's", show(a), p.Name, theirs)
		}
	}
	loser.replaced = true
	r.trials = append(r.trials, watched{
		configuration: a.Configuration, child: true, rung: a.Rung, outcomes: map[int]outcome{}, reports: map[moment]float64{},
	})
}

// goesOn checks that a trial of a population goes up by itself.
func (r *referee) goesOn(a search.Action) {
	t := r.trials[a.Trial]
	if t.replaced {
		r.Fatalf("trial %d was replaced, and goes up", a.Trial)
	}
	better, _, n, _ := r.standing(a.Trial, t.rung)
	if notBetter := n - better; notBetter <= n/5 && !r.full() {
		r.Fatalf("trial %d goes up from rung %d, though %d of %d are better", a.Trial, t.rung, better, n)
	}
}

// nobodyLeft checks that whoever can go up has, and that whoever can be
// replaced was, before a population waits or is over.
func (r *referee) nobodyLeft(a search.Action) {
	if a.Kind == search.Create {
		return // those who start by themselves come first
	}
	for rung := range r.top() {
		if left := r.candidates(rung); len(left) > 0 {
			r.Fatalf("%s though trial %d could go up from rung %d", a.Kind, left[0], rung)
		}
		for number, t := range r.trials {
			if t.rung != rung || t.state == out || t.replaced || r.full() {
				continue
			}
			if _, _, n, usable := r.standing(number, rung); n >= 5 && usable > 0 {
				r.Fatalf("%s though trial %d could be replaced at rung %d", a.Kind, number, rung)
			}
		}
	}
}
