package estimate

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Knowledge is how the factors of time and of energy are spread over devices. It
// is learned from devices on which many inferences were measured.
type Knowledge struct {
	// Devices that it was learned from; none of them is predicted honestly with it.
	Devices []string `json:"devices"`
	// Time and Energy each have a prior of all devices first, and then one for
	// each engine of which enough is known.
	Time   []Prior `json:"time"`
	Energy []Prior `json:"energy"`
}

// Series is what was measured on one device with one engine.
type Series struct {
	Device       Device
	Measurements []Measurement
}

// unknownWatts stands for a device of which no power is known.
const unknownWatts = 5

func (d Device) watts() float64 {
	if d.LoadWatts > 0 {
		return d.LoadWatts
	}
	return unknownWatts
}

// timeSample and energySample are what the two regressions see of a run.
func (d Device) timeSample(w Workload, c Configuration, seconds float64) sample {
	return sample{terms: d.seconds(w, c), place: d.place(w, c), log: math.Log(seconds)}
}

// energySample multiplies the sum of the seconds by one of the watts.
func (d Device) energySample(w Workload, c Configuration, joules float64) sample {
	return sample{terms: append(d.seconds(w, c), d.power(c)...), place: d.place(w, c), log: math.Log(joules)}
}

// Extend adds a prior of time for an engine that was measured on fewer devices than
// [Learn] needs to tell how devices with it differ. Its factors are the mean of what
// the devices show, seen from the prior of all devices; how far a device may be from
// them stays as it is over all devices. Engines have kernels of their own for each
// kind of core, so it is taken for devices alone whose cores compute about as wide as
// those it was learned from.
func (k Knowledge) Extend(engine string, series []Series) Knowledge {
	var groups [][]sample
	width := 0.0
	k.Devices = slices.Clone(k.Devices)
	for _, one := range series {
		if s := timeSamples(one); len(s) > 0 {
			groups = append(groups, s)
			k.Devices = append(k.Devices, one.Device.Name)
			width += one.Device.Float32PerCycle
		}
	}
	if len(groups) == 0 || len(k.Time) == 0 {
		return k
	}
	all, mean := k.Time[0], make([]float64, terms)
	for _, samples := range groups {
		for i, factor := range all.fit(samples, all.Mean, nil).factors {
			mean[i] += factor / float64(len(groups))
		}
	}
	p := all
	p.Name, p.Mean, p.Float32PerCycle = engine, mean, width/float64(len(groups))
	k.Time = append(slices.Clone(k.Time), p)
	return k
}

// initial is the prior before any device was seen: a device reaches about a third
// of its peak, within a factor of ten to either side. The lengths and the
// deviations were chosen on every second series (docs/benchmarks/edgetune.md).
func initial(size int) Prior {
	p := Prior{Mean: make([]float64, size), Covariance: regression.Square(size), Amplitude: 0.12, Noise: 0.03, Lengths: make([]float64, coordinates)}
	for i := range p.Mean {
		p.Mean[i] = 1
		p.Covariance[i][i] = 2.25
		if i >= terms {
			p.Mean[i] = -2
			p.Covariance[i][i] = 1
		}
	}
	for _, i := range []int{serial, prepared, waited} {
		p.Mean[i] = -3
	}
	for i := range p.Lengths {
		p.Lengths[i] = 1
		if i >= atCores {
			p.Lengths[i] = 1.5
		}
	}
	return p
}

// rounds of expectation and maximization.
const rounds = 8

// Learn finds how the factors of the devices are spread.
func Learn(series []Series) Knowledge {
	var k Knowledge
	seen := map[string]bool{}
	for _, one := range series {
		if !seen[one.Device.Name] {
			seen[one.Device.Name] = true
			k.Devices = append(k.Devices, one.Device.Name)
		}
	}
	k.Time = learnEngines(series, terms, timeSamples)
	k.Energy = learnEngines(series, terms+powers, func(s Series) []sample {
		var out []sample
		for _, m := range s.Measurements {
			if m.Joules > 0 {
				out = append(out, s.Device.energySample(m.Workload, m.Configuration, m.Joules))
			}
		}
		return out
	})
	return k
}

func timeSamples(s Series) []sample {
	var out []sample
	for _, m := range s.Measurements {
		out = append(out, s.Device.timeSample(m.Workload, m.Configuration, m.Seconds))
	}
	return out
}

// fewestSeries make a prior of their own.
const fewestSeries = 4

func learnEngines(series []Series, size int, samples func(Series) []sample) []Prior {
	names := []string{""}
	groups := map[string][][]sample{}
	for _, one := range series {
		s := samples(one)
		if len(s) == 0 {
			continue
		}
		groups[""] = append(groups[""], s)
		if engine := one.Device.Engine; engine != "" {
			if groups[engine] == nil {
				names = append(names, engine)
			}
			groups[engine] = append(groups[engine], s)
		}
	}
	var priors []Prior
	for _, name := range names {
		if name == "" || len(groups[name]) >= fewestSeries {
			p := learn(groups[name], initial(size), name != "")
			p.Name = name
			priors = append(priors, p)
		}
	}
	return priors
}

// learn is empirical Bayes: the spread of the factors that makes what was
// measured on the devices most probable, by expectation and maximization. For one
// engine it then takes off what all its devices leave over, and learns again.
func learn(groups [][]sample, p Prior, engine bool) Prior {
	if len(groups) == 0 {
		return p
	}
	from := make([][]float64, len(groups))
	for i := range from {
		from[i] = p.Mean
	}
	base := p.Covariance
	fits := p.maximize(groups, from, base, rounds)
	if !engine {
		return p
	}
	p.learnUsual(fits)
	rest := make([][]sample, len(groups))
	for i, samples := range groups {
		rest[i], from[i] = p.without(samples), fits[i].factors
	}
	p.maximize(rest, from, base, rounds/2)
	return p
}

// maximize alternates between the devices' factors and their spread.
func (p *Prior) maximize(groups [][]sample, from [][]float64, base regression.Matrix, times int) []*posterior {
	size := len(p.Mean)
	fits := make([]*posterior, len(groups))
	for range times {
		before := *p
		mean := make([]float64, size)
		for g, samples := range groups {
			fits[g] = before.fit(samples, from[g], nil)
			from[g] = fits[g].factors
			for i, f := range fits[g].factors {
				mean[i] += f / float64(len(groups))
			}
		}
		covariance := regression.Square(size)
		// What a few devices show is mixed with the first guess, which counts as
		// two devices that are closer together.
		count := float64(len(groups)) + 2
		for i := range size {
			covariance[i][i] = 0.8 * base[i][i] / count
		}
		for _, fit := range fits {
			fit.spread(covariance, mean, count)
		}
		p.Mean, p.Covariance = mean, covariance
	}
	return fits
}

// spread adds what one device says of the covariance: how far its factors are
// from the mean, and how little is known of them.
func (q *posterior) spread(covariance regression.Matrix, mean []float64, count float64) {
	n, size := len(q.samples), len(mean)
	known := regression.Square(max(size, n))[:size] // half of the samples' covariance with each factor
	for k := range size {
		known[k] = known[k][:n]
		for i := range n {
			known[k][i] = regression.Dot(q.prior.Covariance[k], q.slopes[i])
		}
		q.factored.Whiten(known[k])
	}
	for k := range size {
		for l := range size {
			rest := q.prior.Covariance[k][l] - regression.Dot(known[k], known[l])
			covariance[k][l] += (rest + (q.factors[k]-mean[k])*(q.factors[l]-mean[l])) / count
		}
	}
}
