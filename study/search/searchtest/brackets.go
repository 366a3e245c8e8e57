package searchtest

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
)

// book is what the referee knows of a bracket when promotion is synchronous.
type book struct {
	start, size, created int
	// closed is set when a trial went up: nobody may join any more.
	closed bool
}

// quota is how many of the bracket's trials go up from the rung.
func (b book) quota(rung, eta int) int {
	return b.created / power(eta, rung-b.start+1)
}

func power(base, exponent int) int {
	n := 1
	for range exponent {
		n *= base
	}
	return n
}

// bracketOf enters a new trial into its bracket and checks that it starts
// where Hyperband's algorithm starts it.
func (r *referee) bracketOf(a search.Action) int {
	rungs := r.top() + 1
	switch r.settings.Promotion {
	case budget.NoPromotion:
		if a.Rung != r.top() {
			r.Fatalf("created at rung %d, though there is no promotion from there", a.Rung)
		}
		return 0
	case budget.Synchronous:
	default:
		return 0
	}
	last := len(r.brackets) - 1
	if last < 0 || r.brackets[last].closed || r.brackets[last].created == r.brackets[last].size {
		used := rungs
		if r.settings.Brackets > 0 {
			used = r.settings.Brackets
		}
		last++
		start := last % used
		above := rungs - 1 - start
		size := (rungs*power(r.settings.Eta, above) + above) / (above + 1) // rounded up
		r.brackets = append(r.brackets, book{start: start, size: size})
	}
	b := &r.brackets[last]
	if a.Rung != b.start {
		r.Fatalf("created trial %d at rung %d; bracket %d starts at rung %d", a.Trial, a.Rung, last+1, b.start)
	}
	b.created++
	return last
}

// complete reports whether the rung of a bracket has the outcomes of all trials
// that it will ever have. last says that no trial is left to create.
func (r *referee) complete(bracket, rung int, last bool) bool {
	if r.settings.Promotion != budget.Synchronous {
		return true
	}
	b := r.brackets[bracket]
	if rung == b.start {
		full := b.created == b.size || b.closed || bracket < len(r.brackets)-1
		there, _ := r.count(bracket, rung)
		return (full || last) && there == b.created
	}
	_, usable := r.count(bracket, rung-1)
	there, _ := r.count(bracket, rung)
	return r.complete(bracket, rung-1, last) && there >= min(usable, b.quota(rung-1, r.settings.Eta))
}

// count counts the bracket's trials with an outcome at the rung, and those
// with a value.
func (r *referee) count(bracket, rung int) (there, usable int) {
	for _, t := range r.trials {
		o, measured := t.outcomes[rung]
		if t.bracket != bracket || !measured {
			continue
		}
		there++
		if !o.lost {
			usable++
		}
	}
	return there, usable
}

// advance notes what a promotion tells of its bracket: one that is not full
// goes on only if there was no trial to create.
func (r *referee) advance(a search.Action) {
	if r.settings.Promotion != budget.Synchronous {
		return
	}
	bracket := r.trials[a.Trial].bracket
	b := &r.brackets[bracket]
	if bracket == len(r.brackets)-1 && b.created < b.size && !b.closed {
		r.exhaust(a)
		r.exhausted = !r.informed // the next bracket may begin where results of elsewhere are tried
	}
	b.closed = true
}
