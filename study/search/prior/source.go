package prior

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/study/search/bohb"
	"github.com/tandem-tune/tandem/study/search/kde"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// elsewhere is a result that was not measured here.
type elsewhere struct {
	params space.Configuration
	point  []float64
	score  float64 // as an entry's
	cost   float64
	values pareto.Point // of several objectives; nil if it diverged
}

// elsewhereOf places an observation in the space. An infinite value is taken
// for a training that diverged: nothing can be learned from how good it was.
func elsewhereOf(h *ladder.History, o Observation) elsewhere {
	e := elsewhere{params: o.Params, point: h.Cube.Encode(o.Params), score: ladder.ScoreOf(o.Values, h.Maximize), cost: o.Cost}
	for _, value := range o.Values {
		if math.IsInf(float64(value), 0) {
			e.score = math.Inf(-1)
		}
	}
	if len(h.Maximize) > 1 && !math.IsInf(e.score, -1) {
		e.values = ladder.PointOf(o.Values, h.Maximize)
	}
	return e
}

// rank puts results of one budget in order, the best first, as a rung does.
func rank(group []elsewhere) {
	var r ladder.Rung
	for i, e := range group {
		r.Add(ladder.Entry{Trial: i, Score: e.score}, e.values)
	}
	ranked := make([]elsewhere, len(group))
	for place, e := range r.Entries {
		ranked[place] = group[e.Trial]
		ranked[place].score = e.Score
	}
	copy(group, ranked)
}

func (e elsewhere) span() float64 {
	if e.cost == 0 {
		return math.Inf(1)
	}
	return e.cost
}

// source is one place where results come from, with a model of its own: the
// densities of BOHB, of the largest budget with enough results.
type source struct {
	name    string
	origin  string      // of what it proposes
	ranking []elsewhere // those trained longest first, the best of these first
	// fitted is how many results the model is of; 0: there is none.
	fitted int
	model  bohb.Model
	// centre is what a user expects; nil: the source has results.
	centre space.Configuration
	// agreed is what agreement was, for so many outcomes at the rung.
	agreed     float64
	agreedAt   int
	agreedWith int
	// predicted has the model's opinion of each of our trials, larger is better.
	predicted []float64
}

// learn ranks the results and fits the model.
func (s *source) learn(h *ladder.History) {
	slices.SortStableFunc(s.ranking, func(a, b elsewhere) int { return cmp.Compare(b.span(), a.span()) })
	least := bohb.LeastObservations(h)
	for first := 0; first < len(s.ranking); {
		last := first
		for last < len(s.ranking) && s.ranking[last].cost == s.ranking[first].cost {
			last++
		}
		group := s.ranking[first:last]
		rank(group)
		usable := 0
		for usable < len(group) && !math.IsInf(group[usable].score, -1) {
			usable++
		}
		if s.fitted == 0 && len(group) >= least && usable >= least-2 {
			s.fit(h, group, usable)
		}
		first = last
	}
}

// fit is BOHB's split into good and bad ones.
func (s *source) fit(h *ladder.History, group []elsewhere, usable int) {
	least := bohb.LeastObservations(h) - 2
	good := max(least, len(group)*bohb.GoodPercent/100)
	bad := max(least, len(group)-good)
	m := &s.model
	m.Good.Fit(h.Cube.Dimensions(), spreadOver(group[:min(good, usable)]))
	m.Bad.Fit(h.Cube.Dimensions(), spreadOver(group[len(group)-bad:]))
	s.fitted = len(group)
}

// spreadOver returns the points; of too many, ones evenly spread over the ranking.
func spreadOver(group []elsewhere) [][]float64 {
	n := min(len(group), kde.MaxObservations)
	points := make([][]float64, n)
	for i := range points {
		points[i] = group[i*len(group)/n].point
	}
	return points
}

// draw takes the best of candidates from the density of what was good there.
func (s *source) draw(h *ladder.History, r *rand.Rand) (space.Configuration, bool) {
	if s.centre != nil {
		return s.around(h, r)
	}
	var points [][]float64
	for _, number := range h.Pending() {
		points = append(points, h.Points[number])
	}
	s.model.Pending.Like(&s.model.Bad, points)
	return s.model.Best(h, r)
}

// weight is the share of configurations that the source may propose. It falls
// with the outcomes we have, to a half when they are as many as a model of our
// own needs, and is 0 as long as the source is not known to agree with us.
func (s *source) weight(h *ladder.History) float64 {
	if _, passes := s.tested(h); !passes {
		return 0
	}
	_, n := testRung(h)
	half := float64(bohb.LeastObservations(h))
	return priorShare * half / (half + float64(n))
}

// tested reports whether there are results of ours to compare the source's
// model with, and whether it agrees with them.
func (s *source) tested(h *ladder.History) (tested, passes bool) {
	_, n := testRung(h)
	if s.fitted == 0 || n < priorTrial {
		return false, false
	}
	if s.ended(h) {
		return true, false
	}
	return true, s.agreement(h) >= max(leastAgreement, priorAgreement/math.Sqrt(float64(n)))
}

// Trust is what a search makes of a source.
type Trust struct {
	Source  string `json:"source" doc:"results of an earlier study or a file, or what is expected"`
	Verdict string `json:"verdict" doc:"whether the source proposes, and why"`
	// Agreement is Spearman's rank correlation of what the source says of the study's
	// trials with what became of them; 0 before the test.
	Agreement trial.Float `json:"agreement"`
	Outcomes  int         `json:"outcomes" doc:"the study's outcomes that it was tested by"`
}

// Trusts has an entry for each source.
func (p *Prior) Trusts(h *ladder.History) (all []Trust) {
	for _, s := range p.sources {
		one := Trust{Source: s.name, Verdict: "not tested yet"}
		if s.centre == nil {
			one.Source = "results of " + s.name
		}
		tested, passes := s.tested(h)
		switch {
		case passes:
			one.Verdict = "trusted after a test"
		case s.fitted == 0:
			one.Verdict = "has too few results for a test"
		case tested && s.ended(h):
			one.Verdict = "no longer used, as enough was measured here"
		case tested:
			one.Verdict = "not trusted after a test"
		}
		if tested {
			_, one.Outcomes = testRung(h)
			one.Agreement = trial.Float(s.agreement(h))
		}
		all = append(all, one)
	}
	return all
}

// ended reports whether so much was measured here that nothing of elsewhere is
// worth a look any more.
func (s *source) ended(h *ladder.History) bool {
	_, n := testRung(h)
	return n > priorEnd*bohb.LeastObservations(h)
}

// testRung is the rung with the most outcomes of ours, and their number. Of
// equal ones it is the cheapest.
func testRung(h *ladder.History) (at, n int) {
	for i := range h.Rungs {
		if entries := len(h.Rungs[i].Entries); entries > n {
			at, n = i, entries
		}
	}
	return at, n
}

// agreement is Spearman's rank correlation of what the source's model says of
// our trials with what became of them at the rung with the most outcomes.
func (s *source) agreement(h *ladder.History) float64 {
	at, n := testRung(h)
	if s.agreedAt == at && s.agreedWith == n {
		return s.agreed
	}
	entries := h.Rungs[at].Entries
	ours, theirs := make([]float64, len(entries)), make([]float64, len(entries))
	for i, e := range entries {
		theirs[i] = s.opinion(h, e.Trial)
		switch before := entries[max(i-1, 0)]; {
		case i == 0:
		case e.Failed == before.Failed && e.Score == before.Score && (e.Violation == before.Violation || e.Diverged()):
			ours[i] = ours[i-1] // equally good
		default:
			ours[i] = ours[i-1] - 1
		}
	}
	s.agreed, s.agreedAt, s.agreedWith = correlation.Spearman(ours, theirs), at, n
	if math.IsNaN(s.agreed) { // all are equal
		s.agreed = 0
	}
	return s.agreed
}

// opinion is the logarithm of l(x)/g(x) at the trial's configuration.
func (s *source) opinion(h *ladder.History, number int) float64 {
	for next := len(s.predicted); next <= number; next++ {
		s.model.Pending.N = 0
		s.predicted = append(s.predicted, s.model.Ratio(h.Points[next]))
	}
	return s.predicted[number]
}

// reason says why the source is still trusted.
func (s *source) reason(h *ladder.History) string {
	at, n := testRung(h)
	from := fmt.Sprintf("from the model of %d results of %s", s.fitted, s.name)
	if s.centre != nil {
		from = "around " + s.name
	}
	return fmt.Sprintf("drawn %s, which agrees with %d results of ours at rung %d (rank correlation %.2f)", from, n, at, s.agreement(h))
}
