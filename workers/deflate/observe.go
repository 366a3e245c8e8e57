package deflate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Arrival is a job that came and was run, as it was observed.
type Arrival struct {
	Class int // from 0
	Run   Run
}

// at is when the job came, and full what it takes with all of its data.
func (a Arrival) at() float64   { return a.Run.Began - a.Run.Waited }
func (a Arrival) full() float64 { return a.Run.Setup + a.Run.work() }

// Observed is a process that was fitted to arrivals.
type Observed struct {
	Arrivals Arrivals
	// runs are those that it was fitted to, by class and phase; all of a class are
	// taken where those of a phase are too few.
	runs [][][]Run
	all  [][]Run
}

// Service is what jobs of the class take in each phase of the arrivals, for a drop
// ratio.
func (o Observed) Service(class int) func(drop float64) ([]Phases, error) {
	return func(drop float64) ([]Phases, error) {
		var list []Phases
		for _, runs := range o.runs[class] {
			if len(runs) < leastPairs {
				runs = o.all[class]
			}
			one, err := serviceOf(runs, drop)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		return list, nil
	}
}

const (
	// leastArrivals is from how many on bursts are looked for.
	leastArrivals = 20
	// leastWidth and mostWidth are of the windows that are told apart as quiet and
	// busy, in parts of the time in which the rate of work forgets.
	leastWidth, mostWidth = 0.1, 10
)

// FitArrivals is a process of two phases, quiet and busy, for arrivals that were
// observed; each class has come at least once.
//
// What a queue feels of bursts is how much the work that comes in a span of time
// varies, for spans of all lengths (the index of dispersion for work; K. Fendick and
// W. Whitt, Measurements and approximations to describe the offered traffic and
// predict the average workload in a single-server queue, Proceedings of the IEEE
// 77, 1989). So that curve is what is fitted, not the gaps between single jobs,
// whose likelihood knows nothing of bursts that are longer than a few of them:
//
//  1. The variance over spans from a few jobs to a quarter of all, less that of jobs
//     which come one by one, gives the variance of the rate of work and how long it
//     lasts, by least squares of logarithms, for the curve of a rate that switches
//     between two values (H. Heffes and D. Lucantoni, IEEE JSAC 4, 1986).
//  2. Windows of a width are told apart as quiet and busy by the work that came in
//     them (two means in one dimension). Narrow ones take every long job for a burst,
//     wide ones blur bursts: of all widths from a tenth to ten times what lasts, the
//     one is taken with which the rates of the two kinds vary most nearly as 1 says.
//     What comes in a phase, of which class and how long it takes, is what came in its
//     windows.
//  3. The phases switch such that the variance over long spans is that of 1.
//
// Without more variance than jobs have that come one by one, or with less than
// twenty arrivals, the process is Poisson.
func FitArrivals(list []Arrival, classes int) (Observed, error) {
	counts, all := make([]float64, classes), make([][]Run, classes)
	for i, one := range list {
		if one.Class < 0 || one.Class >= classes || math.IsNaN(one.at()) || math.IsInf(one.at(), 0) || !(one.full() > 0) || math.IsInf(one.full(), 0) {
			return Observed{}, fmt.Errorf("arrival %d is of class %d of %d, comes at %g s and takes %g s: classes count from 0, times are finite and what they take is positive", i, one.Class, classes, one.at(), one.full())
		}
		counts[one.Class]++
		all[one.Class] = append(all[one.Class], one.Run)
	}
	if k := slices.Index(counts, 0); k >= 0 {
		return Observed{}, fmt.Errorf("no job of class %d came: how often they come is not known", k)
	}
	w := newWork(slices.SortedStableFunc(slices.Values(list), func(a, b Arrival) int { return cmp.Compare(a.at(), b.at()) }))
	if !(w.span > 0) {
		return Observed{}, fmt.Errorf("all %d arrivals came at once: how often they come is not known", len(list))
	}
	variance, decay, found := w.modulation()
	if found {
		if o, ok := w.split(classes, variance, decay); ok {
			o.all = all
			return o, nil
		}
	}
	o := Observed{all: all}
	for k := range counts {
		counts[k] /= w.span
		o.runs = append(o.runs, [][]Run{all[k]})
	}
	o.Arrivals = Poisson(counts...)
	return o, nil
}

// work is how much of it came until each arrival.
type work struct {
	list         []Arrival
	before       []float64 // what came before each
	span         float64
	mean, square float64 // of what a job takes
	rate         float64 // jobs a second
}

func newWork(list []Arrival) work {
	w := work{list: list, before: make([]float64, len(list)+1)}
	for i, one := range list {
		w.before[i+1] = w.before[i] + one.full()
		w.mean += one.full() / float64(len(list))
		w.square += one.full() * one.full() / float64(len(list))
	}
	if n := len(list); n > 0 {
		// As if the last gap were an average one.
		w.span = (list[n-1].at() - list[0].at()) * float64(n) / max(1, float64(n-1))
		w.rate = float64(n) / w.span
	}
	return w
}

// until is the work that came before a time since the first arrival.
func (w work) until(seconds float64) float64 {
	i, _ := slices.BinarySearchFunc(w.list, w.list[0].at()+seconds, func(one Arrival, at float64) int {
		if one.at() < at {
			return -1
		}
		return 1
	})
	return w.before[i]
}

// modulation is the variance of the rate of jobs, as far as they do not come one by
// one, and how fast it forgets, per second; false where there is none.
func (w work) modulation() (variance, decay float64, found bool) {
	if len(w.list) < leastArrivals {
		return 0, 0, false
	}
	const steps = 400
	var spans, excess []float64
	for span := w.span / 4; span > 2/w.rate; span /= 2 {
		square, expected := 0.0, w.rate*w.mean*span
		for i := range steps {
			from := (w.span - span) * float64(i) / (steps - 1)
			came := w.until(from+span) - w.until(from) - expected
			square += came * came / steps
		}
		if more := square - w.rate*span*w.square; more > 0 {
			spans, excess = append(spans, span), append(excess, more/(w.mean*w.mean))
		}
	}
	if len(spans) < 2 {
		return 0, 0, false
	}
	best := math.Inf(1)
	for d := 0.1 / w.span; d < 1e3*w.rate; d *= 1.1 {
		sum, squares, n := 0.0, 0.0, float64(len(spans))
		for j, span := range spans {
			off := math.Log(excess[j] / (2 * (span/d - (1-math.Exp(-d*span))/(d*d))))
			sum, squares = sum+off/n, squares+off*off/n
		}
		if spread := squares - sum*sum; spread < best {
			best, variance, decay = spread, math.Exp(sum), d
		}
	}
	return variance, decay, true
}

// split is the process whose phases are the quiet and the busy windows, of the
// width with which the rates of the two vary most nearly as they should; false where
// all windows are the same.
func (w work) split(classes int, variance, decay float64) (Observed, bool) {
	best, least, found := halves{}, math.Inf(1), false
	for width := float64(leastWidth); width <= mostWidth*1.01; width *= math.Sqrt2 {
		one, ok := w.halves(width / decay)
		if off := math.Abs(math.Log(one.variance(w.mean) / variance)); ok && off < least {
			best, least, found = one, off, true
		}
	}
	if !found {
		return Observed{}, false
	}
	o := Observed{runs: make([][][]Run, classes)}
	for k := range o.runs {
		o.runs[k] = make([][]Run, 2)
	}
	for i, one := range w.list {
		o.runs[one.Class][best.phases[i]] = append(o.runs[one.Class][best.phases[i]], one.Run)
	}
	// A rate with this variance that forgets so fast has the same over long spans.
	forget := best.variance(w.mean) * decay / variance
	share := best.lasts[1] / w.span
	o.Arrivals.Hidden = [][]float64{{0, forget * share}, {forget * (1 - share), 0}}
	for _, runs := range o.runs {
		o.Arrivals.Marked = append(o.Arrivals.Marked, [][]float64{{float64(len(runs[0])) / best.lasts[0], 0}, {0, float64(len(runs[1])) / best.lasts[1]}})
	}
	return o, true
}

// halves are the quiet and the busy windows of a width.
type halves struct {
	phases []int      // of each arrival
	lasts  [2]float64 // seconds
	work   [2]float64 // that came in them
}

// variance is that of the rate of jobs of an average length.
func (h halves) variance(mean float64) float64 {
	between := (h.work[1]/h.lasts[1] - h.work[0]/h.lasts[0]) / mean
	return h.lasts[0] * h.lasts[1] / ((h.lasts[0] + h.lasts[1]) * (h.lasts[0] + h.lasts[1])) * between * between
}

// halves tells the windows apart by the work that came in them, around the middle
// of the means of the two kinds; false where all are of one kind.
func (w work) halves(width float64) (halves, bool) {
	window := func(one Arrival) int { return int((one.at() - w.list[0].at()) / width) }
	came := map[int]float64{}
	for _, one := range w.list {
		came[window(one)] += one.full()
	}
	h, limit := halves{phases: make([]int, len(w.list))}, 1.5*w.rate*w.mean
	for range 20 {
		h.lasts, h.work = [2]float64{w.span, 0}, [2]float64{}
		for _, work := range came {
			if work > limit*width {
				h.lasts[0], h.lasts[1] = h.lasts[0]-width, h.lasts[1]+width
				h.work[1] += work
			} else {
				h.work[0] += work
			}
		}
		if !(h.lasts[0] > 0 && h.lasts[1] > 0 && h.work[1]/h.lasts[1] > h.work[0]/h.lasts[0]) {
			return h, false
		}
		next := (h.work[1]/h.lasts[1] + h.work[0]/h.lasts[0]) / 2
		if next == limit {
			break
		}
		limit = next
	}
	for i, one := range w.list {
		if came[window(one)] > limit*width {
			h.phases[i] = 1
		}
	}
	return h, true
}
