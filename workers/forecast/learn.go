package forecast

import (
	"errors"
	"fmt"
	"math"
)

// How much demand a way to forecast needs before it is tried, in minutes.
const (
	// LeastForPersistence is half an hour: with less there are no errors to take
	// quantiles from.
	LeastForPersistence = 30
	// LeastForKnob is four hours: the last fifth then has nine decisions.
	LeastForKnob = 4 * 60
	// LeastForMargin is a day: with less nobody can say that it is as good.
	LeastForMargin = Day
	// LeastForNetwork is three days.
	LeastForNetwork = 3 * Day
	// Day is in minutes.
	Day = 1440
	// judgedPart is the share of a series, its end, that ways to forecast are
	// compared on; none has learned from it.
	judgedPart = 5
	// blocks are the parts of the end whose losses are compared: what is within chance
	// over them is no reason for a way that is less simple.
	blocks = 10
)

// The methods of [Margin] and [Naive], to which [Learn] compares the network.
const FixedMargin, Persistence = "margin", "persistence"

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
	// Tried are the ways there are, the simplest first.
	Tried []Tried
	// LearnedFrom and JudgedOn are minutes: of the beginning, that was learned
	// from, and of the end, on which ways were compared.
	LearnedFrom, JudgedOn int
	// Judged are the forecasts of that end, Horizon minutes apart: what a [Knob]
	// learns from. Nil where the series is too short for one.
	Judged []Judged
}

// Learn tries the ways to forecast that a series is long enough for on its last fifth,
// which none of them has learned from. It takes the simplest one, unless another has
// less loss by more than chance. The settings are those of the network; nil tries
// none. A series of less than [LeastForKnob] minutes is not divided: there is
// persistence only. The error is [ErrStopped], or says what the series lacks.
func Learn(series []float64, network *Settings) (Learned, error) {
	if err := checkSeries(series, LeastForPersistence); err != nil {
		return Learned{}, err
	}
	judged := len(series) / judgedPart
	if len(series) < LeastForKnob {
		judged = 0
	}
	l := Learned{LearnedFrom: len(series) - judged, JudgedOn: judged}
	beginning := series[:l.LearnedFrom]
	ways := []way{
		{FixedMargin, LeastForMargin, func() (Forecaster, error) { return Margin{}, nil }},
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

// compare takes the forecaster if it is better than the simpler one before.
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
	if l.Forecaster == nil || better(l.Judged, judged) {
		l.Forecaster, l.Method, l.Judged = forecaster, method, judged
	}
	l.Tried = append(l.Tried, tried)
	return nil
}

// better reports whether a way has less loss than the one before, by more than two
// standard errors of the difference over the blocks.
func better(before, now []Judged) bool {
	var gains []float64
	mean, squares := 0.0, 0.0
	for block := range min(blocks, len(now)) {
		from, to := len(now)*block/blocks, len(now)*(block+1)/blocks
		if from < to {
			gains = append(gains, Rate(before[from:to], 0.5).Pinball-Rate(now[from:to], 0.5).Pinball)
		}
	}
	n := float64(len(gains))
	for _, gain := range gains {
		mean += gain / n
	}
	for _, gain := range gains {
		squares += (gain - mean) * (gain - mean)
	}
	return n > 1 && mean > 2*math.Sqrt(squares/(n-1)/n)
}
