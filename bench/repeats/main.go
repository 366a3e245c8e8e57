// Command repeats measures search.repeats: how good the recommended
// configuration really is when the best are trained once, or again, at the same
// total cost. Studies of functions whose true value is known, plus noise that
// follows from a training's seed, run through the simulator, and so through the
// server's own code.
//
//	go run ./bench/repeats
//
// Each study gets as many trials as fit, with its repeats, into the cost.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

func main() {
	seeds := flag.Int("seeds", 60, "studies of each setting")
	cost := flag.Float64("cost", 60, "passes over the data of a study, in full trainings")
	methods := flag.String("methods", "bohb,random", "search methods")
	noises := flag.String("noises", "0,0.02,0.05,0.1,0.2", "standard deviations of the noise; the functions' values are about between 0 and 1")
	trials := flag.Int("trials", 3, "search.repeats.trials")
	flag.Parse()
	if err := run(*seeds, *cost, *methods, *noises, *trials); err != nil {
		fmt.Fprintln(os.Stderr, "bench/repeats:", err)
		os.Exit(1)
	}
}

func run(seeds int, cost float64, methods, noises string, trials int) error {
	fmt.Println("| problem | method | noise | times | trials | regret | standard error | better, worse than 1 | promised less true |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, p := range problems() {
		for _, method := range strings.Split(methods, ",") {
			for _, noise := range strings.Split(noises, ",") {
				if _, err := fmt.Sscan(noise, &p.noise); err != nil {
					return fmt.Errorf("noise %q: %w", noise, err)
				}
				if err := compare(p, setting{method: method, cost: cost, trials: trials}, seeds); err != nil {
					return fmt.Errorf("%s with %s: %w", p.name, method, err)
				}
			}
		}
	}
	return nil
}

// setting is what a study is run with.
type setting struct {
	method        string
	cost          float64
	trials, times int
}

// compare runs the same seeds without and with repeats.
func compare(p problem, s setting, seeds int) error {
	var once []float64
	for _, s.times = range []int{1, 3, 5} {
		var regrets, promises []float64
		created, better, worse := 0.0, 0, 0
		for seed := range seeds {
			trace, err := simulate(p, s, seed)
			if err != nil {
				return err
			}
			truth := p.value(p.point(trace.Recommendation.Best.Params))
			regrets = append(regrets, p.best-truth)
			promises = append(promises, float64(trace.Recommendation.Best.Value)-truth)
			created += float64(trace.Study.Progress.Created) / float64(seeds)
			switch {
			case s.times == 1:
			case regrets[seed] < once[seed]:
				better++
			case regrets[seed] > once[seed]:
				worse++
			}
		}
		mean, spread := meanOf(regrets)
		promise, _ := meanOf(promises)
		against := "-"
		if s.times == 1 {
			once = regrets
		} else {
			against = fmt.Sprintf("%d, %d", better, worse)
		}
		fmt.Printf("| %s | %s | %g | %d | %.0f | %.4f | %.4f | %s | %+.4f |\n", p.name, s.method, p.noise, s.times, created, mean, spread, against, promise)
	}
	return nil
}

const file = `
name: example
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {%s}
budget: {epochs: %s}
search: {method: %s, promotion: %s, seed: %d, repeats: {trials: %d, times: %d}}
stop: {trials: %d}
`

// simulate runs the study with as many trials as the cost allows by its plan.
func simulate(p problem, s setting, seed int) (simulator.Trace, error) {
	var best definition.Definition
	for trials := 1; ; trials++ {
		def, err := p.study(s, seed, trials)
		if err != nil {
			return simulator.Trace{}, err
		}
		if def.Plan().DataPasses > s.cost*float64(p.epochs()) {
			break
		}
		best = def
	}
	return simulator.Run(context.Background(), best, p, simulator.Options{Seed: uint64(seed)})
}

func meanOf(values []float64) (mean, standardError float64) {
	n := float64(len(values))
	for _, value := range values {
		mean += value / n
	}
	squares := 0.0
	for _, value := range values {
		squares += (value - mean) * (value - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// problem is a function on the unit cube with a known best value.
type problem struct {
	name       string
	dimensions int
	ladder     bool
	best       float64
	noise      float64
	value      func(x []float64) float64
}

func (p problem) epochs() int {
	if p.ladder {
		return 9
	}
	return 1
}

func (p problem) study(s setting, seed, trials int) (definition.Definition, error) {
	var parameters []string
	for i := range p.dimensions {
		parameters = append(parameters, fmt.Sprintf("x%d: {type: float, low: 0, high: 1}", i))
	}
	epochs, promotion := "1", "none"
	if p.ladder {
		epochs, promotion = "{min: 1, max: 9}", "asynchronous"
	}
	text := fmt.Sprintf(file, strings.Join(parameters, ", "), epochs, s.method, promotion, seed+1, s.trials, s.times, trials)
	return studyfile.Parse([]byte(text), studyfile.YAML)
}

func (p problem) point(c space.Configuration) []float64 {
	x := make([]float64, p.dimensions)
	for i := range x {
		x[i], _ = c[fmt.Sprintf("x%d", i)].Number()
	}
	return x
}

// Measure implements [simulator.Benchmark]: the value without noise. With a
// ladder, fewer epochs give less, by an amount that differs from place to place.
func (p problem) Measure(c space.Configuration, epoch int, _ float64) simulator.Measurement {
	x := p.point(c)
	value := p.value(x)
	if epoch < p.epochs() {
		value -= (0.1 + 0.1*math.Sin(9*x[0])) / float64(epoch)
	}
	return simulator.Measurement{Value: value, Seconds: 10}
}

// MeasureSeeded implements [simulator.Noisy]: half of the noise's variance is
// the training's, the same at all its epochs, and half is each epoch's.
func (p problem) MeasureSeeded(c space.Configuration, epoch int, fraction float64, seed uint64) simulator.Measurement {
	measured := p.Measure(c, epoch, fraction)
	training := rand.New(rand.NewPCG(seed, 0)).NormFloat64()
	alone := rand.New(rand.NewPCG(seed, uint64(epoch))).NormFloat64()
	measured.Value += p.noise * (training + alone) / math.Sqrt2
	return measured
}

func problems() []problem {
	bowl := func(x []float64) float64 {
		loss := 0.0
		for i := range x {
			off := x[i] - 0.3 - 0.1*float64(i)
			loss += off * off * float64(1+i%3)
		}
		return 1 - loss/2
	}
	ripples := func(x []float64) float64 {
		loss := 0.0
		for i := range x {
			off := x[i] - 0.3 - 0.1*float64(i)
			loss += off*off + 0.1*(1-math.Cos(20*off))
		}
		return 1 - loss/2
	}
	return []problem{
		{name: "bowl of 4", dimensions: 4, best: 1, value: bowl},
		{name: "bowl of 4, 3 rungs", dimensions: 4, ladder: true, best: 1, value: bowl},
		{name: "ripples of 3", dimensions: 3, best: 1, value: ripples},
	}
}
