package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// asked is an estimate of a network of a family that calibrated nothing.
type asked struct {
	family string
	unlike float64 // how far it is from the nearest network that calibrated
	off    float64 // |percent error|
	inside bool    // whether the band holds what was measured
}

// families asks about each family of MLPerf's networks after calibrating with 20
// measurements of the others, and says how often the bands hold.
func families(out io.Writer, all []*series) error {
	knowledge, err := lookups(all)
	if err != nil {
		return err
	}
	names := []string{"mobilenet-v1", "mobilenet-v2", "mobilenet-v3", "efficientnet"}
	var list []asked
	for _, s := range all {
		if s.table != "mlperf" {
			continue
		}
		known, err := knowledge(s)
		if err != nil {
			return err
		}
		for _, family := range names {
			list = append(list, withoutFamily(s, family, known)...)
		}
	}
	slices.SortStableFunc(list, func(a, b asked) int { return cmp.Compare(a.unlike, b.unlike) })
	fmt.Fprintf(out, "| networks asked about | estimates | in the band of %.0f%% | median / 90th error |\n|---|---|---|---|\n", 100*estimate.Within)
	show := func(name string, some []asked) {
		var off []float64
		inside := 0
		for _, a := range some {
			if off = append(off, a.off); a.inside {
				inside++
			}
		}
		fmt.Fprintf(out, "| %s | %d | %.1f%% | %.1f / %.1f%% |\n", name, len(some), 100*float64(inside)/float64(len(some)), median(off), quantile(off, 0.9))
	}
	for _, family := range names {
		show(family, slices.DeleteFunc(slices.Clone(list), func(a asked) bool { return a.family != family }))
	}
	show("all", list)
	show("the fifth that is most unlike", list[len(list)*4/5:])
	return nil
}

// withoutFamily are the estimates of a series' networks of the family by the others.
func withoutFamily(s *series, family string, known estimate.Knowledge) (list []asked) {
	of := func(m estimate.Measurement) bool { return strings.HasPrefix(m.Workload.Name, family) }
	held := slices.DeleteFunc(slices.Clone(s.Measurements), func(m estimate.Measurement) bool { return !of(m) })
	shown := spaced(slices.DeleteFunc(slices.Clone(s.Measurements), of), 20)
	if len(held) < 4 || len(shown) < 20 {
		return nil
	}
	model := estimate.Fit(s.Device, shown, known)
	for _, m := range held {
		p := model.Predict(m.Workload, m.Configuration).Seconds
		one := asked{family: family, unlike: math.Inf(1), off: 100 * math.Abs(p.Value-m.Seconds) / m.Seconds, inside: p.Low <= m.Seconds && m.Seconds <= p.High}
		for _, k := range shown {
			one.unlike = min(one.unlike, apart(shares(s.Device, m), shares(s.Device, k)))
		}
		list = append(list, one)
	}
	return list
}

// shares are the parts of an estimate's terms in their sum.
func shares(d estimate.Device, m estimate.Measurement) []float64 {
	terms := slices.Clone(d.TimeSample(m.Workload, m.Configuration, 1).Terms)
	sum := 0.0
	for _, t := range terms {
		sum += t
	}
	for i := range terms {
		terms[i] /= sum
	}
	return terms
}

// apart is which share would have to move to make both alike.
func apart(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(a[i]-b[i]) / 2
	}
	return sum
}
