package forecast

import (
	"errors"
	"fmt"
	"slices"
)

// How much demand a way to forecast needs before it is tried, in minutes.
const (
	// LeastForPersistence is half an hour: with less there are no errors to take
	// quantiles from.
	LeastForPersistence = 30
	// LeastForKnob is four hours: the last fifth then has nine decisions.
	LeastForKnob = 4 * 60
	// LeastForNetwork is three days.
	LeastForNetwork = 3 * Day
	// Day is in minutes.
	Day = 1440
	// judgedPart is the share of a series, its end, that ways to forecast are
	// compared on; none has learned from it.
	judgedPart = 5
	judgedMost = 2 * Day
)

// Persistence is the method of [Naive], to which [Learn] compares the network.
const Persistence = "persistence"

// Tried is a way to forecast that was compared.
type Tried struct {
	Method string
	// Pinball is its mean loss over all quantiles on the end of the series, in
	// GPUs.
	Pinball float64
	// Reason says why it was not tried; empty where it was.
	Reason string
}

// Learned is the best way to forecast a series that was found.
type Learned struct {
	Forecaster Forecaster
	Method     string
	// Tried are the ways there are, persistence and then the network.
	Tried []Tried
	// LearnedFrom and JudgedOn are minutes: of the beginning, that was learned
	// from, and of the end, on which ways were compared.
	LearnedFrom, JudgedOn int
	// Judged are the forecasts of that end, Horizon minutes apart: what a [Knob]
	// learns from. Nil where the series is too short for one.
	Judged []Judged
}

// Learn tries the ways to forecast that a series is long enough for, and takes
// the one with the least loss on its last fifth (two days at most), which none
// of them has learned from. The settings are those of the network; nil tries
// none. A series of less than [LeastForKnob] minutes is not divided: there is
// persistence only. The error is [ErrStopped], or says what the series lacks.
func Learn(series []float64, network *Settings) (Learned, error) {
	if err := checkSeries(series, LeastForPersistence); err != nil {
		return Learned{}, err
	}
	judged := min(len(series)/judgedPart, judgedMost)
	if len(series) < LeastForKnob {
		judged = 0
	}
	l := Learned{LearnedFrom: len(series) - judged, JudgedOn: judged}
	beginning := series[:l.LearnedFrom]
	ways := []way{
		{Persistence, 0, func() (Forecaster, error) { return NewNaive(beginning, Quantiles()) }},
	}
	if network != nil {
		ways = append(ways, way{GRU, LeastForNetwork, func() (Forecaster, error) { return Train(beginning, *network) }})
	}
	for _, one := range ways {
		if len(series) < one.least {
			l.Tried = append(l.Tried, Tried{Method: one.method, Reason: fmt.Sprintf("needs %d minutes without a gap; there are %d", one.least, len(series))})
			continue
		}
		forecaster, err := one.learn()
		if errors.Is(err, ErrStopped) {
			return Learned{}, err
		}
		if err != nil {
			l.Tried = append(l.Tried, Tried{Method: one.method, Reason: err.Error()})
			continue
		}
		if err := l.compare(one.method, forecaster, series); err != nil {
			return Learned{}, err
		}
	}
	if l.Forecaster == nil {
		return Learned{}, errors.New(l.Tried[0].Reason)
	}
	return l, nil
}

// way is one to forecast: how much it needs, and how it is had.
type way struct {
	method string
	least  int
	learn  func() (Forecaster, error)
}

// compare takes the forecaster if it is better than the one before.
func (l *Learned) compare(method string, forecaster Forecaster, series []float64) error {
	tried := Tried{Method: method}
	var judged []Judged
	if l.JudgedOn > 0 {
		var err error
		if judged, err = Collect(forecaster, series, l.LearnedFrom, Horizon); err != nil {
			return err
		}
		tried.Pinball = Rate(judged, 0.5).Pinball
	}
	best := slices.IndexFunc(l.Tried, func(one Tried) bool { return one.Method == l.Method })
	if l.Forecaster == nil || tried.Pinball < l.Tried[best].Pinball {
		l.Forecaster, l.Method, l.Judged = forecaster, method, judged
	}
	l.Tried = append(l.Tried, tried)
	return nil
}
