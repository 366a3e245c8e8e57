// Package learning learns from measurements how the efficiencies of devices are
// spread: the knowledge that inference_emu/estimate brings along.
package learning

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/internal/regression"
)

// initial is the prior before any device was seen: a device reaches about a third
// of its peak, within a factor of ten to either side. The lengths and the
// deviations were chosen on every second series (docs/benchmarks/edgetune.md).
func initial(size int) estimate.Prior {
	p := estimate.Prior{Mean: make([]float64, size), Covariance: regression.Square(size), Amplitude: 0.12, Noise: 0.03, Lengths: make([]float64, estimate.Coordinates)}
	for i := range p.Mean {
		p.Mean[i] = 1
		p.Covariance[i][i] = 2.25
		if i >= estimate.TimeTerms {
			p.Mean[i] = -2
			p.Covariance[i][i] = 1
		}
	}
	for i := estimate.RunTerms; i < estimate.TimeTerms; i++ {
		p.Mean[i] = -3
	}
	for i := range p.Lengths {
		p.Lengths[i] = 1
		if i >= estimate.WorkloadCoordinates {
			p.Lengths[i] = 1.5
		}
	}
	return p
}

// Series is what was measured on one device with one engine.
type Series struct {
	Device       estimate.Device
	Measurements []estimate.Measurement
}

// rounds of expectation and maximization.
const rounds = 8

// Learn finds how the factors of the devices are spread.
func Learn(series []Series) estimate.Knowledge {
	var k estimate.Knowledge
	seen := map[string]bool{}
	for _, one := range series {
		if !seen[one.Device.Name] {
			seen[one.Device.Name] = true
			k.Devices = append(k.Devices, one.Device.Name)
		}
	}
	k.Time = learnEngines(series, estimate.TimeTerms, timeSamples)
	k.Energy = learnEngines(series, estimate.EnergyTerms, func(s Series) []estimate.Sample {
		var out []estimate.Sample
		for _, m := range s.Measurements {
			if m.Joules > 0 {
				out = append(out, s.Device.EnergySample(m.Workload, m.Configuration, m.Joules))
			}
		}
		return out
	})
	return k
}

// fewestSeries make a prior of their own.
const fewestSeries = 4

func learnEngines(series []Series, size int, samples func(Series) []estimate.Sample) []estimate.Prior {
	names := []string{""}
	groups := map[string][][]estimate.Sample{}
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
	var priors []estimate.Prior
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
func learn(groups [][]estimate.Sample, p estimate.Prior, engine bool) estimate.Prior {
	if len(groups) == 0 {
		return p
	}
	from := make([][]float64, len(groups))
	for i := range from {
		from[i] = p.Mean
	}
	base := p.Covariance
	fits := maximize(&p, groups, from, base, rounds)
	if !engine {
		return p
	}
	learnUsual(&p, fits)
	rest := make([][]estimate.Sample, len(groups))
	for i, samples := range groups {
		rest[i], from[i] = p.Without(samples), fits[i].Factors
	}
	maximize(&p, rest, from, base, rounds/2)
	return p
}

// maximize alternates between the devices' factors and their spread.
func maximize(p *estimate.Prior, groups [][]estimate.Sample, from [][]float64, base regression.Matrix, times int) []*estimate.Posterior {
	size := len(p.Mean)
	fits := make([]*estimate.Posterior, len(groups))
	for range times {
		before := *p
		mean := make([]float64, size)
		for g, samples := range groups {
			fits[g] = before.Fit(samples, from[g], nil)
			from[g] = fits[g].Factors
			for i, f := range fits[g].Factors {
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
			spread(&before, fit, covariance, mean, count)
		}
		p.Mean, p.Covariance = mean, covariance
	}
	return fits
}

// spread adds what one device says of the covariance: how far its factors are
// from the mean, and how little is known of them.
func spread(prior *estimate.Prior, q *estimate.Posterior, covariance regression.Matrix, mean []float64, count float64) {
	n, size := len(q.Samples), len(mean)
	known := regression.Square(max(size, n))[:size] // half of the samples' covariance with each factor
	for k := range size {
		known[k] = known[k][:n]
		for i := range n {
			known[k][i] = regression.Dot(prior.Covariance[k], q.Slopes[i])
		}
		q.Factored.Whiten(known[k])
	}
	for k := range size {
		for l := range size {
			rest := prior.Covariance[k][l] - regression.Dot(known[k], known[l])
			covariance[k][l] += (rest + (q.Factors[k]-mean[k])*(q.Factors[l]-mean[l])) / count
		}
	}
}

// mostPlaces bounds what is remembered of an engine.
const mostPlaces = 200

// learnUsual averages what the sums leave over on several devices, workload by
// workload. What only one device shows is not usual.
func learnUsual(p *estimate.Prior, fits []*estimate.Posterior) {
	index := map[string]int{}
	var places [][]float64
	var sums, counts []float64
	for _, fit := range fits {
		for _, one := range fit.Samples {
			predicted, _ := estimate.Value(fit.Factors, one.Terms)
			place := rounded(one.Place[:estimate.WorkloadCoordinates])
			key := fmt.Sprint(place)
			at, known := index[key]
			if !known {
				if len(places) == mostPlaces {
					continue
				}
				at = len(places)
				index[key] = at
				places, sums, counts = append(places, place), append(sums, 0), append(counts, 0)
			}
			sums[at] += math.Max(-0.5, math.Min(0.5, one.Log-predicted))
			counts[at]++
		}
	}
	covariance := regression.Square(len(places))
	for i, a := range places {
		sums[i] /= counts[i]
		for j := range i {
			covariance[i][j] = p.Amplitude * p.Amplitude * estimate.Near(a, places[j], p.Lengths)
		}
		covariance[i][i] = p.Amplitude*p.Amplitude + (p.Amplitude*p.Amplitude+p.Noise*p.Noise)/counts[i]
	}
	pulls := regression.Factorize(covariance).Solve(sums)
	for i := range pulls {
		pulls[i] *= p.Amplitude * p.Amplitude
	}
	p.Usual = estimate.Usual{Places: places, Pulls: rounded(pulls)}
}

// rounded keeps three digits behind the point.
func rounded(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = math.Round(1000*x) / 1000
	}
	return out
}
