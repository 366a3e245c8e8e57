package gpushare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// EpochTime is how long epochs of one kind of training took: a running mean of the
// logarithms of seconds, for a pass over all of the data.
type EpochTime struct {
	// Logarithm is the mean, of so many epochs.
	Logarithm float64   `json:"logarithm"`
	Epochs    int       `json:"epochs"`
	At        time.Time `json:"at"`
}

const (
	// memory is how many epochs a mean remembers about.
	memory = 50
	// leastAlone and leastTogether are how many epochs an epoch time is of at least
	// before it counts.
	leastAlone, leastTogether = 2, 3
)

func (p EpochTime) with(seconds float64, at time.Time) EpochTime {
	p.Epochs = min(p.Epochs+1, memory)
	p.Logarithm += (math.Log(seconds) - p.Logarithm) / float64(p.Epochs)
	p.At = at
	return p
}

// Training is a kind of training by itself: its epoch time, and what it uses.
type Training struct {
	Kind string `json:"kind"`
	EpochTime
	// Utilization and MemoryBytes are what it uses of the GPU, seen or expected; 0
	// where neither is known.
	Utilization float64 `json:"utilization,omitempty"`
	MemoryBytes float64 `json:"memory_bytes,omitempty"`
}

// Colocation is the epoch time of one kind that shares a GPU with another.
type Colocation struct {
	Own   string `json:"own"`
	Other string `json:"other"`
	EpochTime
}

// mostKinds and mostPairs bound what is kept: those met longest ago go.
const mostKinds, mostPairs = 256, 1024

type ordered struct{ own, other string }

// colocations is what was seen of kinds that share a GPU.
type colocations struct {
	alone  map[string]Training
	seen   map[ordered]Colocation
	models pairModels
	fresh  int // epochs together since the last fit
}

// Ran takes in an epoch of the kind, alone or beside another kind where that is
// not empty, that took so many seconds for each pass over all of the data.
// Seconds that are no positive number teach nothing.
func (g *GPU) Ran(kind Training, other string, seconds float64, at time.Time) {
	t := &g.colocations
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return
	}
	if t.alone == nil {
		t.alone, t.seen = map[string]Training{}, map[ordered]Colocation{}
	}
	known := t.alone[kind.Kind]
	known.Kind, known.At = kind.Kind, at
	if kind.Utilization > 0 {
		known.Utilization, known.MemoryBytes = kind.Utilization, kind.MemoryBytes
	}
	if other == "" {
		known.EpochTime = known.with(seconds, at)
	} else {
		key := ordered{kind.Kind, other}
		pair := t.seen[key]
		pair.Own, pair.Other, pair.EpochTime = kind.Kind, other, pair.with(seconds, at)
		t.seen[key] = pair
		t.fresh++
	}
	t.alone[kind.Kind] = known
	bound(t.alone, mostKinds, func(a Training) time.Time { return a.At })
	bound(t.seen, mostPairs, func(p Colocation) time.Time { return p.At })
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
func (t *colocations) due() bool { return t.fresh >= leastTogether && 10*t.fresh >= len(t.seen) }

// pair is two kinds, with how fast each was beside the other, of its speed alone.
type pair struct {
	kinds  [2]Training
	speeds [2]float64
}

// pairs are those of which enough was seen of both, sorted. Two trainings of one
// kind are a pair, too.
func (t *colocations) pairs() []pair {
	list := []pair{}
	for _, key := range t.keys() {
		first, one := t.measured(key.own, key.other)
		second, two := t.measured(key.other, key.own)
		if one && two && key.own <= key.other {
			list = append(list, pair{[2]Training{t.alone[key.own], t.alone[key.other]}, [2]float64{first, second}})
		}
	}
	return list
}

func (t *colocations) keys() []ordered {
	return slices.SortedFunc(maps.Keys(t.seen), func(a, b ordered) int { return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.other, b.other)) })
}

// measured is how fast a kind really was beside another; false where too little
// was seen of it.
func (t *colocations) measured(own, other string) (float64, bool) {
	alone, both := t.alone[own], t.seen[ordered{own, other}]
	if alone.Epochs < leastAlone || both.Epochs < leastTogether {
		return 0, false
	}
	return math.Exp(alone.Logarithm - both.Logarithm), true
}

// EpochTimes are what is kept of trainings that share GPUs, as it is written.
type EpochTimes struct {
	Alone    []Training   `json:"alone"`
	Together []Colocation `json:"together"`
}

// EpochTimes is all that is kept, sorted.
func (g *GPU) EpochTimes() EpochTimes {
	p := EpochTimes{Alone: []Training{}, Together: []Colocation{}}
	for _, kind := range slices.Sorted(maps.Keys(g.colocations.alone)) {
		p.Alone = append(p.Alone, g.colocations.alone[kind])
	}
	for _, key := range g.colocations.keys() {
		p.Together = append(p.Together, g.seen[key])
	}
	return p
}

// RestoreEpochTimes puts back what was written; what was learned from it is learned
// again.
func (g *GPU) RestoreEpochTimes(p EpochTimes) {
	t := colocations{alone: map[string]Training{}, seen: map[ordered]Colocation{}}
	for _, one := range p.Alone {
		t.alone[one.Kind] = one
	}
	for _, one := range p.Together {
		t.seen[ordered{one.Own, one.Other}] = one
		t.fresh += one.Epochs
	}
	g.colocations = t
}
