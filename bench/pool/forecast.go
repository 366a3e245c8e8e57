package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// forecastOptions say what is forecast, and how often.
type forecastOptions struct {
	data          string
	runs, samples int
	tuning, brief bool
	// trace is what is looked at alone; all where it is empty.
	trace string
}

// forecasts trains on the first 70% of each trace, chooses the knob on the next
// 10%, and judges on the last 20%. Trainings run one after the other; what they take
// is the processor's time of the process, on one processor.
func forecasts(o forecastOptions) error {
	chosen := slices.DeleteFunc(traces(), func(t trace) bool { return !strings.Contains(strings.ToLower(t.name), strings.ToLower(o.trace)) })
	if len(chosen) == 0 {
		return fmt.Errorf("-trace %q is in no trace's name: Helios, Philly or Alibaba", o.trace)
	}
	for _, t := range chosen {
		if err := t.read(o.data); err != nil {
			return err
		}
		n := len(t.demand)
		fmt.Printf("\n### %s\n\n%d minutes, %d %s in all; %.1f are wanted in the mean, %.1f in the part that is tested. Trained on the first 70%%, ", t.name, n, t.total, t.unit, mean(t.demand), mean(t.demand[n*8/10:]))
		if o.tuning {
			fmt.Print("settings compared on the next 10%; the last 20% are not looked at.\n\n")
			if err := tune(t, o); err != nil {
				return err
			}
			continue
		}
		fmt.Printf("tested on the last 20%%; %d runs with other seeds: median, least and most.\n\n", o.runs)
		shown, err := t.judge(o.runs, o.samples)
		if err != nil {
			return err
		}
		if o.brief {
			if err := printBrief(t, shown); err != nil {
				return err
			}
			continue
		}
		printScores(shown)
		printCalibration(shown)
		printLoads(t, shown)
		printAdapted(t, shown)
		if err := printKnob(t, shown); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a way to forecast. What is drawn differs with the seed.
type candidate struct {
	name  string
	drawn bool
	train func(seed uint64) (forecast.Forecaster, error)
}

// outcome is what one training of a candidate came to.
type outcome struct {
	candidate
	// trained and each are the processor's seconds of the training, and of a forecast.
	trained, each float64
	// choosing are its forecasts of the part that the knob is chosen on, Horizon
	// minutes apart, testing those of every minute of the last part.
	choosing, testing []forecast.Judged
}

func candidates(training []float64, samples int) []candidate {
	return []candidate{
		{"margin", false, func(uint64) (forecast.Forecaster, error) { return forecast.Margin{}, nil }},
		{"persistence", false, func(uint64) (forecast.Forecaster, error) { return forecast.NewNaive(training, forecast.Quantiles()) }},
		{"GRU", true, func(seed uint64) (forecast.Forecaster, error) {
			return forecast.Train(training, forecast.Settings{Samples: samples, Seed: seed})
		}},
	}
}

// judge trains and judges all candidates: for each, its runs.
func (t trace) judge(runs, samples int) ([][]outcome, error) {
	n := len(t.demand)
	all := candidates(t.demand[:n*7/10], samples)
	results := make([][]outcome, len(all))
	runtime.GOMAXPROCS(1)
	for i, one := range all {
		results[i] = make([]outcome, 1)
		if one.drawn {
			results[i] = make([]outcome, runs)
		}
		for run := range results[i] {
			var err error
			if results[i][run], err = one.measure(t.demand, uint64(run)); err != nil { //nolint:gosec // a small number
				return nil, err
			}
		}
	}
	return results, nil
}

// measure trains it once and lets it forecast, with nothing beside it.
func (c candidate) measure(series []float64, seed uint64) (outcome, error) {
	n := len(series)
	o := outcome{candidate: c}
	begin := processSeconds()
	f, err := c.train(seed)
	if err != nil {
		return o, err
	}
	o.trained = processSeconds() - begin
	if o.choosing, err = forecast.Collect(f, series[:n*8/10], n*7/10, forecast.Horizon); err != nil {
		return o, err
	}
	begin = processSeconds()
	if o.testing, err = forecast.Collect(f, series, n*8/10, 1); err != nil {
		return o, err
	}
	o.each = (processSeconds() - begin) / float64(len(o.testing))
	return o, nil
}

// processSeconds is the processor's time that this process has used.
func processSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return float64(time.Now().UnixNano()) / 1e9
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// every is each so manieth of the forecasts.
func every(all []forecast.Judged, step int) []forecast.Judged {
	var some []forecast.Judged
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	return some
}

// spread is the median of what the runs came to, with the least and the most.
func spread(runs []outcome, format string, of func(outcome) float64) string {
	values := make([]float64, len(runs))
	for i, one := range runs {
		values[i] = of(one)
	}
	slices.Sort(values)
	text := fmt.Sprintf(format, values[len(values)/2])
	if len(values) > 1 {
		text += fmt.Sprintf(" ("+format+"–"+format+")", values[0], values[len(values)-1])
	}
	return text
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(max(1, len(values)))
}
