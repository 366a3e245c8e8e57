package main

import (
	_ "embed" // what the networks took here
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/internal/regression"
)

// emulated are the networks of MLPerf's tables (zoo.File; int8 by quantize_static, QDQ) with
// ONNX Runtime 1.30.0 on two cores of an AMD EPYC, beside other load: the least of a run in
// seven passes, of which four count the time of the thread alone.
//
//go:embed emulation.json
var emulated []byte

// network is one of a series. Times are logarithms.
type network struct {
	m              estimate.Measurement
	family         string
	integer        float64
	truth, here    float64
	estimated      float64 // here, with the measurements of other families
	peaks, ownPeak float64 // operations a second there and here
}

func (n network) at() []float64 { return []float64{n.here, n.integer} }

// emulator is this machine: what it takes, and what the estimate says of it.
type emulator struct {
	device          estimate.Device
	here, estimated map[string]float64
}

func families4() []string {
	return []string{"mobilenet-v1", "mobilenet-v2", "mobilenet-v3", "efficientnet"}
}

func familyOf(name string) string {
	at := slices.IndexFunc(families4(), func(family string) bool { return strings.HasPrefix(name, family) })
	return families4()[at]
}

func nameOf(m estimate.Measurement) string {
	if m.Workload.Integer.Heavy > 0 {
		return m.Workload.Name + " int8"
	}
	return m.Workload.Name
}

func newEmulator() (*emulator, error) {
	own, err := runs.Parse(emulated)
	if err != nil {
		return nil, err
	}
	known, err := estimate.Known()
	if err != nil {
		return nil, err
	}
	e := &emulator{own.Device, map[string]float64{}, map[string]float64{}}
	for _, family := range families4() {
		of := func(name string) bool { return familyOf(name) == family }
		model := estimate.Fit(own.Device, spaced(own.Measurements(func(name string) bool { return !of(name) }), taught), known)
		for _, m := range own.Measurements(of) {
			e.here[nameOf(m)] = math.Log(m.Seconds)
			e.estimated[nameOf(m)] = math.Log(model.Predict(m.Workload, m.Configuration).Seconds.Value)
		}
	}
	return e, nil
}

// peak are the operations a second by the catalogue.
func peak(d estimate.Device, m estimate.Measurement) float64 {
	whole := d.TimeSample(m.Workload, m.Configuration, 1).Terms
	work := m.Workload.Float.Pointwise + m.Workload.Integer.Pointwise
	return work / (whole[1] + whole[(len(whole)-3)/2+1]) // of the pointwise convolutions, of either type
}

func (e *emulator) networks(s *series) (list []network) {
	for _, m := range s.Measurements {
		here, ok := e.here[nameOf(m)]
		if !ok {
			continue
		}
		n := network{m: m, family: familyOf(m.Workload.Name), truth: math.Log(m.Seconds), here: here, estimated: e.estimated[nameOf(m)]}
		if m.Workload.Integer.Heavy > 0 {
			n.integer = 1
		}
		one := m
		one.Configuration.Cores = 1
		n.peaks, n.ownPeak = peak(s.Device, m), peak(e.device, one)
		list = append(list, n)
	}
	return list
}

// translations are the logarithms that each way predicts for what is asked, by the
// references that were measured there as well.
func translations(d estimate.Device, known estimate.Knowledge, references, asked []network) map[string][]float64 {
	out := map[string][]float64{}
	put := func(way string, of func(network) float64) {
		for _, n := range asked {
			out[way] = append(out[way], of(n))
		}
	}
	corrected := func(by func(network) float64) func(network) float64 {
		var shown []estimate.Measurement
		for _, n := range references {
			m := n.m
			m.Seconds *= math.Exp(-by(n))
			shown = append(shown, m)
		}
		model := estimate.Fit(d, shown, known)
		return func(n network) float64 {
			return math.Log(model.Predict(n.m.Workload, n.m.Configuration).Seconds.Value) + by(n)
		}
	}
	estimated := corrected(func(network) float64 { return 0 })
	put("estimate", estimated)
	put("estimate, with what it leaves over here", corrected(func(n network) float64 { return n.here - n.estimated }))
	if len(references) == 0 {
		factor := func(n network) float64 { return n.here + math.Log(n.ownPeak/n.peaks) }
		put("time here, by peak operations", factor)
		put("3/4 estimate", func(n network) float64 { return (3*estimated(n) + factor(n)) / 4 })
		return out
	}
	var ratios []float64
	var rows [][]float64
	for _, n := range references {
		ratios, rows = append(ratios, n.truth-n.here), append(rows, n.at())
	}
	factor := median(ratios)
	put("time here, by one factor", func(n network) float64 { return n.here + factor })
	scale, rest := regression.Standardize(rows), make([]float64, len(rows))
	for i := range rows {
		rows[i], rest[i] = scale.Apply(rows[i]), ratios[i]-factor
	}
	weights := regression.FitRidge(rows, rest, 1)
	line := func(n network) float64 {
		return n.here + factor + regression.Dot(weights, scale.Apply(n.at()))
	}
	put("time here, by a line", line)
	put("3/4 estimate", func(n network) float64 { return (3*estimated(n) + line(n)) / 4 })
	return out
}

// emulation asks whether a time that was measured here says more of a device that is not
// here than the estimate: of one series for each device and engine, with references of other
// families, and knowledge that was learned from other devices and families.
func emulation(out io.Writer, all []*series) error {
	here, err := newEmulator()
	if err != nil {
		return err
	}
	points, seen := []int{0, 5, 20}, map[string]bool{}
	tables := make([]map[string]map[*series]accuracy, len(points))
	for i := range tables {
		tables[i] = map[string]map[*series]accuracy{}
	}
	for _, s := range all {
		list := here.networks(s)
		if s.table != "mlperf" || seen[s.Device.Name+s.Device.Engine] || len(list) < fewest {
			continue
		}
		seen[s.Device.Name+s.Device.Engine] = true
		knowledge := map[string]estimate.Knowledge{}
		for _, family := range families4() {
			knowledge[family] = withoutBoth(all, s, family)
		}
		for i, k := range points {
			for way, judged := range judgeWays(s, knowledge, list, k) {
				if tables[i][way] == nil {
					tables[i][way] = map[*series]accuracy{}
				}
				tables[i][way][s] = judged
			}
		}
	}
	for i, k := range points {
		fmt.Fprintf(out, "\n%d points of other families, %d series\n\n| | median / 90th / ρ | series better | devices better, worse | error over the estimate's, by device (95%%) |\n|---|---|---|---|---|\n", k, len(seen))
		for _, way := range slices.Sorted(maps.Keys(tables[i])) {
			fmt.Fprintf(out, "| %s | %s |\n", way, against(tables[i][way], tables[i]["estimate"]))
		}
	}
	return nil
}

// withoutBoth is learned from other devices and families.
func withoutBoth(all []*series, s *series, family string) estimate.Knowledge {
	var some []learning.Series
	for _, one := range others(all, func(o *series) bool { return o.Device.Name != s.Device.Name }) {
		one.Measurements = slices.DeleteFunc(one.Measurements, func(m estimate.Measurement) bool { return strings.HasPrefix(m.Workload.Name, family) })
		if len(one.Measurements) >= 10 {
			some = append(some, one)
		}
	}
	return learning.Learn(some)
}

func judgeWays(s *series, knowledge map[string]estimate.Knowledge, list []network, k int) map[string]accuracy {
	errors, rank := map[string][]float64{}, map[string][]float64{}
	random := rand.New(rand.NewPCG(75, 4))
	for _, family := range families4() {
		var references, asked []network
		var truth []float64
		for _, at := range random.Perm(len(list)) {
			if n := list[at]; n.family == family {
				asked, truth = append(asked, n), append(truth, n.truth)
			} else if len(references) < k {
				references = append(references, n)
			}
		}
		if len(asked) < 4 || len(references) < k {
			continue
		}
		for way, values := range translations(s.Device, knowledge[family], references, asked) {
			for i, value := range values {
				errors[way] = append(errors[way], 100*math.Abs(math.Exp(value-truth[i])-1))
			}
			rank[way] = append(rank[way], spearman(truth, values))
		}
	}
	judged := map[string]accuracy{}
	for way, off := range errors {
		judged[way] = accuracy{median: median(off), high: quantile(off, 0.9), spearman: median(rank[way])}
	}
	return judged
}

// against is a way beside the estimate, paired by device.
func against(way, estimated map[*series]accuracy) string {
	var middle, high, rank []float64
	won, devices := 0, map[string][]float64{}
	for s, a := range way {
		middle, high, rank = append(middle, a.median), append(high, a.high), append(rank, a.spearman)
		if a.median < estimated[s].median {
			won++
		}
		devices[s.Device.Name] = append(devices[s.Device.Name], math.Log(a.median/estimated[s].median))
	}
	var logs, drawn []float64
	better, worse := 0, 0
	for _, each := range devices {
		logs = append(logs, median(each))
		if last := logs[len(logs)-1]; last < 0 {
			better++
		} else if last > 0 {
			worse++
		}
	}
	slices.Sort(logs)
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var some []float64
		for range logs {
			some = append(some, logs[random.IntN(len(logs))])
		}
		drawn = append(drawn, median(some))
	}
	return fmt.Sprintf("%.1f / %.1f%% / %.3f | %d | %d, %d | %.2f (%.2f–%.2f)", median(middle), median(high), median(rank), won, better, worse,
		math.Exp(median(logs)), math.Exp(quantile(drawn, 0.025)), math.Exp(quantile(drawn, 0.975)))
}
