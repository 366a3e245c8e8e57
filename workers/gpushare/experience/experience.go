// Package experience keeps what a server has seen of trainings on one type of
// GPU, alone and together, and what it learned from that: how much of the GPU a
// training will use ([GPU.Expect], by workers/gpushare/utilization), and how fast two
// will be that share one ([GPU.Beside], by workers/interference).
//
// Its one invariant: nothing is told before there is enough to learn from, and
// what is told comes with how far it was off where it had to tell what was
// hidden. Learning takes seconds and is done on a copy ([GPU.Lesson],
// [Lesson.Learn], [GPU.Adopt]), so that nobody waits for it; the same
// observations teach the same. It does no I/O and knows no clock. Nothing here
// is safe for concurrent use.
package experience

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
	// the last lesson.
	reason string
	fresh  int
	together
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

// Restore puts a model back that was written before.
func (g *GPU) Restore(learned *utilization.Learned) {
	g.learned, g.fresh = learned, max(0, len(g.profiles)-learned.Model.Samples)
}

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
	return len(g.profiles) >= utilization.LeastToLearn && g.fresh >= g.relearn() || g.together.due()
}

// Lesson is what there is to learn from, apart from the GPU that it is of.
type Lesson struct {
	samples []utilization.Sample
	uses    bool
	pairs   []pair
	fresh   [2]int
}

// Lesson is a copy of all that is new, in an order that depends on nothing but
// what was seen.
func (g *GPU) Lesson() Lesson {
	l := Lesson{uses: len(g.profiles) >= utilization.LeastToLearn && g.fresh >= g.relearn(), fresh: [2]int{g.fresh, g.together.fresh}}
	for _, name := range slices.Sorted(maps.Keys(g.profiles)) {
		l.samples = append(l.samples, g.profiles[name].Sample)
	}
	if g.together.due() {
		l.pairs = g.together.pairs()
	}
	return l
}

// Lore is what came of a lesson.
type Lore struct {
	uses    bool
	learned *utilization.Learned
	reason  string
	paces   *paces
	fresh   [2]int
}

// seed is that of every model: what is the same is learned the same.
const seed = 1

// Learn makes the models; it takes seconds.
func (l Lesson) Learn() Lore {
	lore := Lore{uses: l.uses, fresh: l.fresh}
	if l.uses {
		var err error
		if lore.learned, err = utilization.Learn(l.samples, seed); err != nil {
			lore.reason = err.Error()
		}
	}
	if l.pairs != nil {
		made := learnPaces(l.pairs)
		lore.paces = &made
	}
	return lore
}

// Adopt puts what was learned into force. Where the newest lesson taught nothing,
// the model before it goes: it would not stand today.
func (g *GPU) Adopt(lore Lore) {
	if lore.uses {
		g.learned, g.reason = lore.learned, lore.reason
		g.fresh = max(0, g.fresh-lore.fresh[0])
	}
	if lore.paces != nil {
		g.together.paces = *lore.paces
		g.together.fresh = max(0, g.together.fresh-lore.fresh[1])
	}
}
