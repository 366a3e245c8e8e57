package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/internal/regression"
)

// baselines compares the estimate with simpler ways, by how many measurements of a device
// they are shown. Ridge regression and boosted trees have the estimate's own features, and
// learn from the same other devices first.
func baselines(out io.Writer, all []*series, only string) error {
	knowledge, err := lookups(all)
	if err != nil {
		return err
	}
	points := []int{0, 5, 10, 20}
	for _, table := range []string{"mlperf", "nb201", "tx2", "unicorn"} {
		for _, of := range []quantity{seconds(), joules()} {
			judged := map[string][][]accuracy{} // by way, then points
			count := 0
			for _, s := range all {
				if s.table != table || only != "" && table != only || measured(s, of) < fewest {
					continue
				}
				known, err := knowledge(s)
				if err != nil {
					return err
				}
				count++
				for way, predict := range ways(s, all, of, known) {
					for i, n := range points {
						if len(judged[way]) <= i {
							judged[way] = append(judged[way], nil)
						}
						judged[way][i] = append(judged[way][i], evaluate(s, n, of, predict))
					}
				}
			}
			if count > 0 {
				fmt.Fprintf(out, "\n**%s, %s** (%d series): medians over series of median / 90th, %%; how many have a 90th of at most 20%%\n\n| | 0 points | 5 | 10 | 20 |\n|---|---|---|---|---|\n", table, of.name, count)
				for _, way := range []string{"estimate", "boosted trees", "ridge", "operations", "nearest device"} {
					fmt.Fprintf(out, "| %s |", way)
					for _, each := range judged[way] {
						fmt.Fprintf(out, " %s |", overall(each))
					}
					fmt.Fprintln(out)
				}
			}
		}
	}
	return nil
}

// ways are the predictors for a series.
func ways(s *series, all []*series, of quantity, known estimate.Knowledge) map[string]predictor {
	var taught []features
	for _, other := range others(all, func(o *series) bool { return o.Device.Name != s.Device.Name }) {
		taught = append(taught, featuresOf(other.Device, other.Measurements, of)...)
	}
	line, trees := newStraight(taught), boost(nil, taught, 200, 8)
	return map[string]predictor{
		"estimate":       modelled(s.Device, known),
		"operations":     proportional(operations),
		"nearest device": nearest(s, all, of),
		"ridge":          learned(s.Device, of, func(shown []features) func([]float64) float64 { return line.shown(shown) }),
		"boosted trees": learned(s.Device, of, func(shown []features) func([]float64) float64 {
			return boost(trees, shown, 50, 2).value
		}),
	}
}

func overall(of []accuracy) string {
	var middle, high []float64
	good := 0
	for _, a := range of {
		if math.IsNaN(a.median) {
			continue
		}
		middle, high = append(middle, a.median), append(high, a.high)
		if a.high <= 20 {
			good++
		}
	}
	if len(middle) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f, %d", median(middle), median(high), good)
}

// features is a measurement as a regression sees it: the logarithms of the estimate's terms,
// where it is near others, and the logarithm of what was measured.
type features struct {
	x []float64
	y float64
}

func featuresOf(d estimate.Device, list []estimate.Measurement, of quantity) (out []features) {
	for _, m := range list {
		if truth := of.measured(m); truth > 0 {
			out = append(out, features{vector(d, m, of), math.Log(truth)})
		}
	}
	return out
}

func vector(d estimate.Device, m estimate.Measurement, of quantity) []float64 {
	sample := d.TimeSample(m.Workload, m.Configuration, 1)
	if of.name == joules().name {
		sample = d.EnergySample(m.Workload, m.Configuration, 1)
	}
	x := slices.Clone(sample.Place)
	for _, term := range sample.Terms {
		x = append(x, math.Log(max(term, 1e-9)))
	}
	return x
}

// learned is a predictor of a regression that is shown the calibration measurements.
func learned(d estimate.Device, of quantity, show func([]features) func([]float64) float64) predictor {
	return func(calibration []estimate.Measurement) func(estimate.Measurement) estimate.Prediction {
		value := show(featuresOf(d, calibration, of))
		return func(m estimate.Measurement) estimate.Prediction {
			e := estimate.Estimate{Value: math.Exp(value(vector(d, m, of)))}
			return estimate.Prediction{Seconds: e, Joules: e}
		}
	}
}

// straight is a ridge regression of standardized features around the mean.
type straight struct {
	scale   regression.Scale
	weights []float64
	middle  float64
}

// penalty is that of both regressions, in units of the noise.
const penalty = 1

func newStraight(taught []features) *straight {
	l := &straight{}
	rows, targets := make([][]float64, len(taught)), make([]float64, len(taught))
	for i, one := range taught {
		rows[i] = one.x
		l.middle += one.y / float64(len(taught))
	}
	l.scale = regression.Standardize(rows)
	for i, one := range taught {
		rows[i], targets[i] = l.scale.Apply(one.x), one.y-l.middle
	}
	l.weights = regression.FitRidge(rows, targets, penalty)
	return l
}

func (l *straight) value(x []float64) float64 {
	return l.middle + regression.Dot(l.weights, l.scale.Apply(x))
}

// shown is it with a second one for what it leaves of the device's measurements.
func (l *straight) shown(list []features) func([]float64) float64 {
	if len(list) == 0 {
		return l.value
	}
	left, targets, middle := make([][]float64, len(list)), make([]float64, len(list)), 0.0
	for i, one := range list {
		left[i], targets[i] = l.scale.Apply(one.x), one.y-l.value(one.x)
		middle += targets[i] / float64(len(list))
	}
	for i := range targets {
		targets[i] -= middle
	}
	weights := regression.FitRidge(left, targets, penalty)
	return func(x []float64) float64 { return l.value(x) + middle + regression.Dot(weights, l.scale.Apply(x)) }
}

// forest is a sum of regression trees (gradient boosting for the squared error, Friedman
// 2001), each of which splits twice on the way down.
type forest struct {
	base  *forest // what it goes on from
	start float64
	trees []*node
}

const learningRate = 0.1

type node struct {
	feature    int
	at         float64
	low, high  *node
	prediction float64
}

func (n *node) value(x []float64) float64 {
	for n.low != nil {
		if x[n.feature] <= n.at {
			n = n.low
		} else {
			n = n.high
		}
	}
	return n.prediction
}

func (f *forest) value(x []float64) float64 {
	if f == nil {
		return 0
	}
	sum := f.base.value(x) + f.start
	for _, tree := range f.trees {
		sum += learningRate * tree.value(x)
	}
	return sum
}

// boost adds trees for what the base leaves of the list; a leaf has so many at least.
func boost(base *forest, list []features, rounds, leaf int) *forest {
	f := &forest{base: base}
	if len(list) == 0 {
		return f
	}
	left, all := make([]float64, len(list)), make([]int, len(list))
	for i, one := range list {
		left[i], all[i] = one.y-base.value(one.x), i
		f.start += left[i] / float64(len(list))
	}
	for i := range left {
		left[i] -= f.start
	}
	for range rounds {
		tree := grow(list, left, all, leaf, 3)
		f.trees = append(f.trees, tree)
		for i, one := range list {
			left[i] -= learningRate * tree.value(one.x)
		}
	}
	return f
}

// grow makes a tree of what is left at those places, by the split that explains most.
func grow(list []features, left []float64, places []int, leaf, depth int) *node {
	sum := 0.0
	for _, i := range places {
		sum += left[i]
	}
	n := &node{prediction: sum / float64(len(places))}
	if depth == 0 || len(places) < 2*leaf {
		return n
	}
	best, at := 1e-12, -1
	order := slices.Clone(places)
	for feature := range list[places[0]].x {
		slices.SortFunc(order, func(a, b int) int {
			switch x, y := list[a].x[feature], list[b].x[feature]; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return a - b
		})
		before := 0.0
		for k := 1; k < len(order); k++ {
			before += left[order[k-1]]
			low, high := list[order[k-1]].x[feature], list[order[k]].x[feature]
			if k < leaf || len(order)-k < leaf || low == high {
				continue
			}
			after := sum - before
			gain := before*before/float64(k) + after*after/float64(len(order)-k) - sum*sum/float64(len(order))
			if gain > best {
				best, at, n.feature, n.at = gain, k, feature, (low+high)/2
			}
		}
	}
	if at < 0 {
		return n
	}
	var low, high []int
	for _, i := range places {
		if list[i].x[n.feature] <= n.at {
			low = append(low, i)
		} else {
			high = append(high, i)
		}
	}
	n.low, n.high = grow(list, left, low, leaf, depth-1), grow(list, left, high, leaf, depth-1)
	return n
}
