package probing

import (
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

// Prior standard deviations, of natural logarithms.
const (
	// knobEffect is of a knob's values: half as long again is nothing unusual.
	knobEffect = 0.4
	// togetherEffect is of a configuration beyond the sum of its knobs.
	togetherEffect = 0.05
	// neighbourEffect is for each doubling of the trials on a machine, and
	// suffering is how much more or less one configuration minds than another.
	neighbourEffect = 0.3
	suffering       = 0.15
	// warming is of the first epoch after a start, and warmingOwn is how much more
	// or less one configuration takes for it than another.
	warming    = 0.3
	warmingOwn = 0.05
)

// Parts of the variance of an ordered knob's effect: of its own, shared with
// values nearby, and a trend for each doubling.
const (
	ownPart   = 0.1
	nearPart  = 0.2
	trendPart = 0.7
)

// knob is one dimension of the prior.
type knob struct {
	name    string
	ordered bool
	scale   float64
	// origin is where a trend is zero, in doublings.
	origin float64
}

// prior is the covariance of log costs before anything is measured.
type prior struct {
	knobs    []knob
	together float64
}

// newPrior has a knob for each name that a configuration has.
func newPrior(configurations []system.Configuration) prior {
	names := map[string]bool{}
	for _, one := range configurations {
		for name := range one {
			names[name] = true
		}
	}
	p := prior{together: togetherEffect}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		k := knob{name: name, ordered: true, scale: knobEffect}
		low, high := math.Inf(1), math.Inf(-1)
		for _, one := range configurations {
			v, ok := doublings(one, name)
			k.ordered = k.ordered && ok
			low, high = min(low, v), max(high, v)
		}
		k.origin = (low + high) / 2
		p.knobs = append(p.knobs, k)
	}
	return p
}

// doublings is where the value of a numeric knob lies on the scale on which
// twice as much is one step; 0 lies one step below 1.
func doublings(c system.Configuration, name string) (float64, bool) {
	v, ok := c[name].Number()
	if v < 1 {
		return max(-1, v-1), ok
	}
	return math.Log2(v), ok
}

func (k knob) covariance(a, b system.Configuration) float64 {
	same := 0.0
	if a[k.name] == b[k.name] {
		same = 1
	}
	x, xOK := doublings(a, k.name)
	y, yOK := doublings(b, k.name)
	if !k.ordered || !xOK || !yOK {
		return k.scale * k.scale * same
	}
	near := math.Exp(-(x - y) * (x - y) / 2)
	return k.scale * k.scale * (ownPart*same + nearPart*near + trendPart*(x-k.origin)*(y-k.origin))
}

// covariance is that of the log costs at two points.
func (p prior) covariance(a, b point) float64 {
	sum := 0.0
	for _, k := range p.knobs {
		sum += k.covariance(a.configuration, b.configuration)
	}
	same := 0.0
	if a.key == b.key {
		same = 1
	}
	// A random walk over the doublings of the trials on the machine.
	crowd := math.Log2(1 + float64(min(a.neighbours, b.neighbours)))
	if a.first && b.first {
		sum += warming*warming + warmingOwn*warmingOwn*same
	}
	return sum + p.together*p.together*same + crowd*(neighbourEffect*neighbourEffect+suffering*suffering*same)
}
