package emulator

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The warm-up goes on in fives until the median of one five is that of the one
// before, within this part of it, or until a part of the time is up.
const (
	warmUpRuns    = 5
	warmUpChange  = 0.05
	warmUpSeconds = 0.5 // as a part of the measured seconds
)

// collectEvery is after how many runs garbage is collected, between two of them.
const collectEvery = 20_000

// measure measures one cell and answers with it.
func (p *process) measure(cell placed) error {
	cores, err := keepTo(cell.CoreNumbers)
	if err != nil {
		return err
	}
	p.memory.forgetPeak()
	s, err := p.open(cell.Cell)
	if err != nil {
		return err
	}
	defer s.close()
	m := Measurement{Cell: cell.Cell, CoreNumbers: cores, Inputs: s.described, Assumed: s.assumed, LoadSeconds: s.loadSeconds}
	if m.WarmUpRuns, m.WarmUpSettled, err = warmUp(s.run, p.order.Precision.Seconds*warmUpSeconds); err != nil {
		return err
	}
	return p.measureWarm(s, m)
}

// keepTo keeps this thread, and those it starts, to the cores, and returns those
// that the kernel then has it on.
func keepTo(wanted []int) ([]int, error) {
	var set, now unix.CPUSet
	for _, core := range wanted {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, problem.New(problem.Internal, "the kernel refuses the cores %v: %w", wanted, err)
	}
	if err := unix.SchedGetaffinity(0, &now); err != nil {
		return nil, fmt.Errorf("ask for the cores of a thread: %w", err)
	}
	return coresOf(&now), nil
}

// measureWarm measures between two answers, so that the other end can read its
// meters at the same moments.
func (p *process) measureWarm(s *session, m Measurement) error {
	runtime.GC()
	before, preempted, err := cpuSeconds()
	if err != nil {
		return err
	}
	if err := p.answers.Encode(message{Begin: &before}); err != nil {
		return err
	}
	if err := p.await(); err != nil {
		return err
	}
	runs, precise, err := repeat(s.run, p.order.Precision)
	if err != nil {
		return err
	}
	after, preemptedAfter, err := cpuSeconds()
	if err != nil {
		return err
	}
	memory, err := p.memory.read()
	if err != nil {
		return err
	}
	m.Runs, m.Precise, m.Latency = len(runs), precise, latencyOf(runs)
	m.MeasuredSeconds = m.Latency.Mean * float64(len(runs))
	m.SamplesPerSecond = m.rate()
	m.CPUSecondsPerRun = (after - before) / float64(len(runs))
	m.Preempted = preemptedAfter - preempted
	m.PeakBytes = memory.peak
	if err := p.answers.Encode(message{End: &endMessage{CPUSeconds: after, Measurement: m}}); err != nil {
		return err
	}
	return p.await()
}

// warmUp runs until the median settles, at least once, and for about the seconds
// at most.
func warmUp(run func() (float64, error), seconds float64) (runs int, settled bool, err error) {
	before, spent := 0.0, 0.0
	for {
		var five []float64
		for range warmUpRuns {
			took, err := run()
			if err != nil {
				return runs, false, err
			}
			runs, spent, five = runs+1, spent+took, append(five, took)
			if spent > seconds {
				return runs, false, nil
			}
		}
		slices.Sort(five)
		median := five[warmUpRuns/2]
		if before > 0 && median >= before*(1-warmUpChange) && median <= before*(1+warmUpChange) {
			return runs, true, nil
		}
		before = median
	}
}

// repeat runs until the confidence interval of the median is narrow enough, or
// until the time is up, and returns the seconds of each run.
func repeat(run func() (float64, error), precision Precision) (runs []float64, precise bool, err error) {
	spent, look := 0.0, precision.MinRuns
	for len(runs) < MaxRuns {
		took, err := run()
		if err != nil {
			return nil, false, err
		}
		runs, spent = append(runs, took), spent+took
		if len(runs)%collectEvery == 0 {
			runtime.GC()
		}
		over := spent >= precision.Seconds
		if !over && (len(runs) < look || spent < min(precision.LeastSeconds, precision.Seconds)) {
			continue
		}
		narrow := len(runs) >= precision.MinRuns && latencyOf(runs).relativeWidth() <= precision.RelativeWidth
		if narrow || over {
			return runs, narrow, nil
		}
		look = len(runs) + max(1, len(runs)/4) // sorting them after each would be what is measured
	}
	return runs, latencyOf(runs).relativeWidth() <= precision.RelativeWidth, nil
}
