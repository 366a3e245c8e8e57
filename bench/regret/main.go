// Command regret measures stop.regret: how often it ends a study too early, and
// how many trials it saves. Studies of functions whose best value is known run
// through the simulator, and so through the server's own code.
//
//	go run ./bench/regret
//
// A stop is false if the study's recommendation is further from the best value
// than stop.regret promised.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

func main() {
	seeds := flag.Int("seeds", 10, "studies of each method on each problem")
	methods := flag.String("methods", "gp,tpe,bohb,random", "search methods")
	trials := flag.Int("trials", 100, "stop.trials")
	regret := flag.Float64("regret", 0.02, "stop.regret; the functions' values are about between 0 and 1")
	flag.Parse()
	fmt.Printf("| problem | method | studies that it ended | falsely | trials used, of %d | regret of the ended |\n|---|---|---|---|---|---|\n", *trials)
	ended, wrong := 0, 0
	for _, p := range problems() {
		for _, method := range strings.Split(*methods, ",") {
			sum := summary{}
			for seed := range *seeds {
				if err := sum.add(p, method, *trials, *regret, seed); err != nil {
					fmt.Fprintln(os.Stderr, "bench/regret:", err)
					os.Exit(1)
				}
			}
			ended, wrong = ended+sum.ended, wrong+sum.wrong
			fmt.Printf("| %s | %s | %d of %d | %d | %.0f | %.4f |\n", p.name, method, sum.ended, *seeds, sum.wrong,
				sum.trials/float64(*seeds), sum.regret/math.Max(float64(sum.ended), 1))
		}
	}
	fmt.Printf("\n%d of %d stops were false.\n", wrong, ended)
}

// summary of the studies of a method on a problem.
type summary struct {
	ended, wrong   int
	trials, regret float64
}

const file = `
name: example
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {%s}
budget: {epochs: %s}
search: {method: %s, promotion: %s, seed: %d}
stop: {trials: %d, regret: %g}
`

func (s *summary) add(p problem, method string, trials int, regret float64, seed int) error {
	var parameters []string
	for i := range p.dimensions {
		parameters = append(parameters, fmt.Sprintf("x%d: {type: float, low: 0, high: 1}", i))
	}
	epochs, promotion := "1", "none"
	if p.ladder {
		epochs, promotion = "{min: 1, max: 9}", "asynchronous"
	}
	text := fmt.Sprintf(file, strings.Join(parameters, ", "), epochs, method, promotion, seed+1, trials, regret)
	def, err := studyfile.Parse([]byte(text), studyfile.YAML)
	if err != nil {
		return err
	}
	trace, err := simulator.Run(context.Background(), def, p, simulator.Options{Seed: uint64(seed)})
	if err != nil {
		return fmt.Errorf("%s with %s: %w", p.name, method, err)
	}
	s.trials += float64(trace.Study.Progress.Created)
	if strings.Contains(trace.Study.Reason, "left to gain") {
		s.ended++
		left := p.best - p.value(p.point(trace.Recommendation.Best.Params))
		s.regret += left
		if left > regret {
			s.wrong++
		}
	}
	return nil
}

// problem is a function on the unit cube with a known best value.
type problem struct {
	name       string
	dimensions int
	ladder     bool
	best       float64
	value      func(x []float64) float64
}

func (p problem) point(c space.Configuration) []float64 {
	x := make([]float64, p.dimensions)
	for i := range x {
		x[i], _ = c[fmt.Sprintf("x%d", i)].Number()
	}
	return x
}

// Measure implements [simulator.Benchmark]. With a ladder, fewer epochs give
// less, by an amount that differs from place to place.
func (p problem) Measure(c space.Configuration, epoch int, _ float64) simulator.Measurement {
	x := p.point(c)
	value := p.value(x)
	if p.ladder && epoch < 9 {
		value -= (0.1 + 0.1*math.Sin(9*x[0])) / float64(epoch)
	}
	return simulator.Measurement{Value: value, Seconds: 10}
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
	// A broad hill, and beside it a higher one that is a tenth as broad.
	hidden := func(x []float64) float64 {
		broad, narrow := 0.0, 0.0
		for i := range x {
			broad += (x[i] - 0.7) * (x[i] - 0.7)
			narrow += (x[i] - 0.15) * (x[i] - 0.15)
		}
		return math.Max(0.8*math.Exp(-broad/0.18), math.Exp(-narrow/0.0018))
	}
	return []problem{
		{"bowl of 2", 2, false, 1, bowl}, {"bowl of 4", 4, false, 1, bowl}, {"bowl of 4, 3 rungs", 4, true, 1, bowl},
		{"ripples of 2", 2, false, 1, ripples}, {"ripples of 4", 4, false, 1, ripples}, {"hidden peak of 2", 2, false, 1, hidden},
	}
}
