package experience

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Pace is how long epochs of one kind of training took: a running mean of the
// logarithms of seconds, for a pass over all of the data.
type Pace struct {
	// Logarithm is the mean, of so many epochs.
	Logarithm float64   `json:"logarithm"`
	Epochs    int       `json:"epochs"`
	At        time.Time `json:"at"`
}

const (
	// memory is how many epochs a mean remembers about.
	memory = 50
	// leastAlone and leastTogether are how many epochs a pace is of at least
	// before it counts.
	leastAlone, leastTogether = 2, 3
)

func (p Pace) with(seconds float64, at time.Time) Pace {
	p.Epochs = min(p.Epochs+1, memory)
	p.Logarithm += (math.Log(seconds) - p.Logarithm) / float64(p.Epochs)
	p.At = at
	return p
}

// Alone is a kind of training by itself: its pace, and what it uses.
type Alone struct {
	Kind string `json:"kind"`
	Pace
	// Utilization and MemoryBytes are what it uses of the GPU, seen or expected; 0
	// where neither is known.
	Utilization float64 `json:"utilization,omitempty"`
	MemoryBytes float64 `json:"memory_bytes,omitempty"`
}

// Together is the pace of one kind beside another.
type Together struct {
	Own   string `json:"own"`
	Other string `json:"other"`
	Pace
}

// mostKinds and mostPairs bound what is kept: those met longest ago go.
const mostKinds, mostPairs = 256, 1024

type beside struct{ own, other string }

// together is what was seen of kinds that share a GPU.
type together struct {
	alone map[string]Alone
	seen  map[beside]Together
	paces paces
	fresh int // epochs together since the last lesson
}

// Ran takes in an epoch of the kind, alone or beside another kind where that is
// not empty, that took so many seconds for each pass over all of the data.
// Seconds that are no positive number teach nothing.
func (g *GPU) Ran(kind Alone, other string, seconds float64, at time.Time) {
	t := &g.together
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return
	}
	if t.alone == nil {
		t.alone, t.seen = map[string]Alone{}, map[beside]Together{}
	}
	known := t.alone[kind.Kind]
	known.Kind, known.At = kind.Kind, at
	if kind.Utilization > 0 {
		known.Utilization, known.MemoryBytes = kind.Utilization, kind.MemoryBytes
	}
	if other == "" {
		known.Pace = known.with(seconds, at)
	} else {
		key := beside{kind.Kind, other}
		pair := t.seen[key]
		pair.Own, pair.Other, pair.Pace = kind.Kind, other, pair.with(seconds, at)
		t.seen[key] = pair
		t.fresh++
	}
	t.alone[kind.Kind] = known
	bound(t.alone, mostKinds, func(a Alone) time.Time { return a.At })
	bound(t.seen, mostPairs, func(p Together) time.Time { return p.At })
}

func bound[K comparable, V any](list map[K]V, most int, at func(V) time.Time) {
	for len(list) > most {
		var oldest K
		first := true
		for key, value := range list {
			if first || at(value).Before(at(list[oldest])) {
				oldest, first = key, false
			}
		}
		delete(list, oldest)
	}
}

// due reports whether enough is new of pairs: a tenth of what there is.
func (t *together) due() bool { return t.fresh >= leastTogether && 10*t.fresh >= len(t.seen) }

// pair is two kinds, with how fast each was beside the other, of its speed alone.
type pair struct {
	kinds  [2]Alone
	speeds [2]float64
}

// pairs are those of which enough was seen of both, sorted. Two trainings of one
// kind are a pair, too.
func (t *together) pairs() []pair {
	list := []pair{}
	for _, key := range t.keys() {
		first, one := t.measured(key.own, key.other)
		second, two := t.measured(key.other, key.own)
		if one && two && key.own <= key.other {
			list = append(list, pair{[2]Alone{t.alone[key.own], t.alone[key.other]}, [2]float64{first, second}})
		}
	}
	return list
}

func (t *together) keys() []beside {
	return slices.SortedFunc(maps.Keys(t.seen), func(a, b beside) int { return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.other, b.other)) })
}

// measured is how fast a kind really was beside another; false where too little
// was seen of it.
func (t *together) measured(own, other string) (float64, bool) {
	alone, both := t.alone[own], t.seen[beside{own, other}]
	if alone.Epochs < leastAlone || both.Epochs < leastTogether {
		return 0, false
	}
	return math.Exp(alone.Logarithm - both.Logarithm), true
}

// Paces are what is kept of trainings that share GPUs, as it is written.
type Paces struct {
	Alone    []Alone    `json:"alone"`
	Together []Together `json:"together"`
}

// Paces is all that is kept, sorted.
func (g *GPU) Paces() Paces {
	p := Paces{Alone: []Alone{}, Together: []Together{}}
	for _, kind := range slices.Sorted(maps.Keys(g.together.alone)) {
		p.Alone = append(p.Alone, g.together.alone[kind])
	}
	for _, key := range g.together.keys() {
		p.Together = append(p.Together, g.seen[key])
	}
	return p
}

// RestorePaces puts back what was written; what was learned from it is learned
// again.
func (g *GPU) RestorePaces(p Paces) {
	t := together{alone: map[string]Alone{}, seen: map[beside]Together{}}
	for _, one := range p.Alone {
		t.alone[one.Kind] = one
	}
	for _, one := range p.Together {
		t.seen[beside{one.Own, one.Other}] = one
		t.fresh += one.Epochs
	}
	g.together = t
}
