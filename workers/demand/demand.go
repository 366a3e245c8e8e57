// Package demand answers: how many GPUs did trials hold or wait for, at each
// minute of the last weeks?
//
// A [Gauge] makes minutes out of looks at the pool ([Look]), and a [History]
// keeps them: what a forecast learns from. Its one invariant: a minute in which
// nobody looked is a gap, and never a demand of zero. The package does no I/O and
// is told the time.
package demand

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Want is what trials take and wait for, in GPUs. A trial on a machine without
// GPUs counts as one: it takes a slot.
type Want struct {
	Running float64 `json:"running"`
	Waiting float64 `json:"waiting"`
}

// Total is both.
func (w Want) Total() float64 { return w.Running + w.Waiting }

// Plus adds what others want.
func (w Want) Plus(other Want) Want {
	return Want{Running: w.Running + other.Running, Waiting: w.Waiting + other.Waiting}
}

// Look is the pool at one moment.
type Look struct {
	// Owners are those who want anything; the administrators' studies stand under
	// "".
	Owners map[string]Want
	// Hosts are the workers, those that are silent too.
	Hosts []Host
}

// Capacity is what the hosts that are awake have.
func (l Look) Capacity() float64 {
	sum := 0.0
	for _, one := range l.Hosts {
		if one.awake() {
			sum += one.Capacity
		}
	}
	return sum
}

// Powered is what the hosts have that are heard of, whether they take trials or
// not: they draw.
func (l Look) Powered() float64 {
	sum := 0.0
	for _, one := range l.Hosts {
		if !one.Silent {
			sum += one.Capacity
		}
	}
	return sum
}

// GPUs reports whether some of what there is are GPUs. Otherwise all are slots.
func (l Look) GPUs() bool {
	return slices.ContainsFunc(l.Hosts, func(one Host) bool { return one.GPUs })
}

// Want is what all owners want.
func (l Look) Want() Want {
	var sum Want
	for _, one := range l.Owners {
		sum = sum.Plus(one)
	}
	return sum
}

// Minute is the pool in one minute: the moment, of those that were looked at, at
// which most was wanted.
type Minute struct {
	// At is when it begins, in UTC.
	At time.Time `json:"at"`
	Want
	// Capacity is the most of the minute. Powered is the most of what was heard of,
	// drained hosts too; 0 in minutes of earlier versions, which kept none.
	Capacity float64 `json:"capacity"`
	Powered  float64 `json:"powered,omitempty"`
	// Owners are those who wanted anything at that moment; of more than
	// [MaxOwners], those who wanted the least are summed up under [Others].
	Owners map[string]Want `json:"owners,omitempty"`
	// Told is what had been forecast for this minute Ahead minutes before, at the
	// quantiles of forecasts, in GPUs; nil where nothing was.
	Told []float64 `json:"told,omitempty"`
	// Knob is how the knob did in this minute; nil where it was not set.
	Knob *Knob `json:"knob,omitempty"`
}

// Knob is what a knob had wanted awake in a minute, whether anybody kept to that or
// not.
type Knob struct {
	// Served is how many GPUs of the demand it would have had awake, Missed how many
	// not, though there are so many.
	Served float64 `json:"served"`
	Missed float64 `json:"missed,omitempty"`
	// Debt is what had gone unserved beyond what may by the end of the minute
	// (forecast.Correction), in minutes.
	Debt float64 `json:"debt,omitempty"`
}

const (
	// Ahead is how long before a minute what was Told of it had been forecast: the
	// farthest, which is the hardest.
	Ahead = 5
	// MaxOwners bounds the owners of a minute.
	MaxOwners = 100
	// Others is whom the rest is summed up under. No user has this name.
	Others = "*"
)

// Gauge makes minutes out of looks. The zero value is ready.
type Gauge struct {
	present Minute
	seen    bool
}

// Look takes in how the pool is at the time. When a minute is over, it is
// returned; whole is false otherwise. Time that goes backwards ends nothing.
func (g *Gauge) Look(now time.Time, look Look) (over Minute, whole bool) {
	at := now.UTC().Truncate(time.Minute)
	if g.seen && at.After(g.present.At) {
		over, whole = g.present, true
		g.seen = false
	}
	want := look.Want()
	if !g.seen {
		g.present, g.seen = Minute{At: at, Want: want, Capacity: look.Capacity(), Powered: look.Powered(), Owners: bounded(look.Owners)}, true
		return over, whole
	}
	g.present.Capacity = max(g.present.Capacity, look.Capacity())
	g.present.Powered = max(g.present.Powered, look.Powered())
	if want.Total() > g.present.Total() {
		g.present.Want, g.present.Owners = want, bounded(look.Owners)
	}
	return over, whole
}

// bounded leaves out who wants nothing, and sums up the rest of too many.
func bounded(owners map[string]Want) map[string]Want {
	owners = maps.Clone(owners)
	maps.DeleteFunc(owners, func(_ string, want Want) bool { return want.Total() <= 0 })
	if len(owners) <= MaxOwners {
		return owners
	}
	names := slices.SortedFunc(maps.Keys(owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(owners[b].Total(), owners[a].Total()), cmp.Compare(a, b))
	})
	rest := Want{}
	for _, name := range names[MaxOwners-1:] {
		rest = rest.Plus(owners[name])
		delete(owners, name)
	}
	owners[Others] = rest
	return owners
}
