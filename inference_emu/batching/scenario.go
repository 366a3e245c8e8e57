package batching

import (
	"fmt"
	"math"
)

// Scenario is one of the four scenarios of MLPerf Inference (its rules, from
// version 2.0 on) and the value that it rates a system by.
type Scenario struct {
	Name string `json:"name"`
	// Metric says what the value is, and Unit its unit.
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	// How is the division or policy that reaches it.
	How string `json:"how"`
}

// ScenarioSettings are the numbers the scenarios leave open.
type ScenarioSettings struct {
	// SamplesPerQuery is the size of a query of MultiStream; 0 is MLPerf's 8.
	SamplesPerQuery int
	// LatencyBound is that of Server, in seconds; MLPerf sets one for each
	// benchmark. Without it there is no Server scenario.
	LatencyBound float64
	// Requests and Seed are those of the simulations; see [Run].
	Requests int
	Seed     uint64
}

// Scenarios are what the server reaches in MLPerf Inference's scenarios when
// samples are put together in the best way: SingleStream (a sample comes when
// the last one is answered; 90th percentile of latency), MultiStream (so do
// queries of 8 samples; 99th percentile), Server (Poisson arrivals; the highest
// rate whose 99th percentile is within the bound) and Offline (all samples are
// there; throughput). They are estimates from the curve: no run of MLPerf's.
// The two stream scenarios use one instance.
func Scenarios(server Server, settings ScenarioSettings) ([]Scenario, error) {
	run := Run{Arrivals: Poisson{Rate: 1}, Requests: settings.Requests, Seed: settings.Seed}
	if err := server.check(); err != nil {
		return nil, err
	}
	if err := run.check(); err != nil {
		return nil, err
	}
	samples := settings.SamplesPerQuery
	if samples == 0 {
		samples = 8
	}
	stream1, err := streamed(server, 1, 0.9, settings.Seed)
	if err != nil {
		return nil, err
	}
	stream8, err := streamed(server, samples, 0.99, settings.Seed)
	if err != nil {
		return nil, err
	}
	stream1.Name, stream8.Name = "SingleStream", "MultiStream"
	list := []Scenario{stream1, stream8}
	if settings.LatencyBound > 0 {
		choice, err := Optimize(server, Goal{Objective: Throughput, LatencyBound: settings.LatencyBound}, run)
		if err != nil {
			return nil, err
		}
		one := Scenario{Name: "Server", Metric: fmt.Sprintf("highest Poisson rate with a 99th percentile within %.4g ms", settings.LatencyBound*1000), Unit: "requests/s", How: choice.Why}
		if choice.MeetsBound {
			one.Value, one.How = choice.Result.ArrivalsPerSecond, choice.Result.Policy.String()
		}
		list = append(list, one)
	}
	return append(list, Scenario{
		Name: "Offline", Metric: "throughput", Value: server.Capacity(), Unit: "samples/s",
		How: fmt.Sprintf("batches of %d", server.Curve.Cheapest()),
	}), nil
}

// streamed is a scenario of queries that come one after the other.
func streamed(server Server, samples int, rank float64, seed uint64) (Scenario, error) {
	if err := (Periodic{Samples: samples, PeriodSeconds: 1}).check(); err != nil {
		return Scenario{}, err
	}
	plan := division{curve: server.Curve, objective: Throughput}
	chunks := plan.equalized(plan.within(samples, math.Inf(1)), math.Inf(1))
	play := queryPlay{draw: service{curve: server.Curve, random: stream(seed, serviceStream)}, chunks: chunks}
	queries := 1
	if server.Curve.Varies() {
		queries = queriesPlayed
	}
	return Scenario{
		Metric: fmt.Sprintf("%.0fth percentile of latency", rank*100), Value: play.last(rank, queries), Unit: "seconds",
		How: Split{Chunks: chunks}.String(),
	}, nil
}
