package gpushare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// Profile is a training that was seen alone on a GPU.
type Profile struct {
	// Training names it: its trial.
	Training string             `json:"training"`
	Sample   utilization.Sample `json:"sample"`
	// Seconds is for how long it was seen, At when it last was.
	Seconds float64   `json:"seconds"`
	At      time.Time `json:"at"`
}

// LeastSeconds is for how long a training must have been seen before it teaches
// anything: before, most of it may have been its start.
const LeastSeconds = 30

// GPU is what is known of one type of GPU. The zero value is empty and ready.
type GPU struct {
	profiles map[string]Profile
	learned  *utilization.Learned
	// reason is why nothing is learned; fresh is how many trainings are new since
	// the last fit.
	reason string
	fresh  int
	colocations
}

// See takes in a training that was seen alone, again perhaps. Beyond
// [utilization.MostToLearn] the one goes that was last seen longest ago: it is
// named, or empty.
func (g *GPU) See(p Profile) (gone string) {
	if g.profiles == nil {
		g.profiles = map[string]Profile{}
	}
	if _, known := g.profiles[p.Training]; !known {
		g.fresh++
	}
	g.profiles[p.Training] = p
	if len(g.profiles) <= utilization.MostToLearn {
		return ""
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(g.profiles)), func(a, b Profile) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Training, b.Training))
	})
	delete(g.profiles, oldest.Training)
	return oldest.Training
}

// Profile is the training as it was last seen.
func (g *GPU) Profile(training string) (Profile, bool) {
	p, known := g.profiles[training]
	return p, known
}

// Count is how many trainings are known, and of how many architectures.
func (g *GPU) Count() (trainings, architectures int) {
	families := map[string]bool{}
	for _, p := range g.profiles {
		families[p.Sample.Family] = true
	}
	return len(g.profiles), len(families)
}

// Learned is the model of what trainings use; nil where there is none.
func (g *GPU) Learned() *utilization.Learned { return g.learned }

// Reason is why there is no model.
func (g *GPU) Reason() string {
	switch {
	case g.learned != nil:
		return ""
	case g.reason != "" && g.fresh == 0:
		return g.reason
	}
	if n := len(g.profiles); n < utilization.LeastToLearn {
		return fmt.Sprintf("%d trainings were seen alone on such a GPU with their architecture known: at least %d are needed", n, utilization.LeastToLearn)
	}
	return cmp.Or(g.reason, "what was seen is being learned")
}

// Expect is what a training with these features and architecture should use, and
// how far such predictions are off. The error is why that cannot be said.
func (g *GPU) Expect(f utilization.Features, architecture string) (utilization.Prediction, utilization.Verdict, error) {
	if g.learned == nil {
		return utilization.Prediction{}, utilization.Verdict{}, fmt.Errorf("%s", g.Reason())
	}
	return g.learned.Expect(f, architecture)
}

// relearn is how many trainings must be new before the model is made again: a
// tenth of those that it was made from, at least.
func (g *GPU) relearn() int {
	if g.learned == nil {
		return 1
	}
	return max(4, g.learned.Model.Samples/10)
}

// Due reports whether there is enough new to learn again.
func (g *GPU) Due() bool {
	return len(g.profiles) >= utilization.LeastToLearn && g.fresh >= g.relearn() || g.colocations.due()
}

// TrainingSet is what there is to learn from, apart from the GPU that it is of.
type TrainingSet struct {
	samples []utilization.Sample
	uses    bool
	pairs   []pair
	fresh   [2]int
}

// TrainingSet is a copy of all that is new, in an order that depends on nothing but
// what was seen.
func (g *GPU) TrainingSet() TrainingSet {
	l := TrainingSet{uses: len(g.profiles) >= utilization.LeastToLearn && g.fresh >= g.relearn(), fresh: [2]int{g.fresh, g.colocations.fresh}}
	for _, name := range slices.Sorted(maps.Keys(g.profiles)) {
		l.samples = append(l.samples, g.profiles[name].Sample)
	}
	if g.colocations.due() {
		l.pairs = g.colocations.pairs()
	}
	return l
}

// Fitted is what was learned from a training set.
type Fitted struct {
	uses    bool
	learned *utilization.Learned
	reason  string
	models  *pairModels
	fresh   [2]int
}

// Fit makes the models; it takes seconds.
func (l TrainingSet) Fit() Fitted {
	fitted := Fitted{uses: l.uses, fresh: l.fresh}
	if l.uses {
		var err error
		if fitted.learned, err = utilization.Learn(l.samples); err != nil {
			fitted.reason = err.Error()
		}
	}
	if l.pairs != nil {
		made := learnPairs(l.pairs)
		fitted.models = &made
	}
	return fitted
}

// Adopt puts what was learned into force. Where the newest training set taught nothing,
// the model before it goes: it would not stand today.
func (g *GPU) Adopt(fitted Fitted) {
	if fitted.uses {
		g.learned, g.reason = fitted.learned, fitted.reason
		g.fresh = max(0, g.fresh-fitted.fresh[0])
	}
	if fitted.models != nil {
		g.colocations.models = *fitted.models
		g.colocations.fresh = max(0, g.colocations.fresh-fitted.fresh[1])
	}
}
