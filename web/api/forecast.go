package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
)

// Forecasts tells how many GPUs will be wanted. Its methods are called by many
// requests at once, and wait for nothing.
type Forecasts interface {
	// Forecast is the demand of so many minutes, and of the next ones: what the
	// caller may see of it.
	Forecast(caller study.Caller, minutes int) protocol.PoolForecast
	// Advice says how many should be awake. The error is invalid.
	Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error)
}

// unforeseen is the forecast of a server that makes none.
type unforeseen struct{}

// Forecast is empty.
func (unforeseen) Forecast(study.Caller, int) protocol.PoolForecast {
	return protocol.PoolForecast{Unit: protocol.DemandSlots, Reason: "this server records no demand"}
}

// Advice is to leave all as it is.
func (unforeseen) Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) {
	return protocol.PoolAdvice{Unit: protocol.DemandSlots, Performance: query.Performance, Reason: "leave all as it is: this server records no demand"}, nil
}

type forecastInput struct {
	Minutes int `query:"minutes" minimum:"1" maximum:"40320" default:"360" doc:"how many minutes of past demand to return"`
}

func (s forecastAPI) poolForecast(ctx context.Context, input *forecastInput) (*jsonAnswer[protocol.PoolForecast], error) {
	answer := s.forecasts.Forecast(callerOf(tokenOf(ctx)), input.Minutes)
	answer.Minutes, answer.Gaps, answer.Quantiles = orEmpty(answer.Minutes), orEmpty(answer.Gaps), orEmpty(answer.Quantiles)
	answer.Ahead, answer.Users = orEmpty(answer.Ahead), orEmpty(answer.Users)
	return answered(answer, nil)
}

type adviceInput struct {
	Performance float64 `query:"performance" minimum:"0" maximum:"1" doc:"the share of the demand that is to find a GPU awake; 0: what the server was started with"`
	Least       int     `query:"least" minimum:"0" maximum:"1000000" doc:"how many stay awake whatever is forecast"`
}

func (s forecastAPI) poolAdvice(_ context.Context, input *adviceInput) (*jsonAnswer[protocol.PoolAdvice], error) {
	answer, err := s.forecasts.Advice(protocol.PoolAdviceQuery{Performance: input.Performance, Least: input.Least})
	answer.Settings, answer.Workers = orEmpty(answer.Settings), orEmpty(answer.Workers)
	return answered(answer, err)
}

// forecastRoutes are the lines of the table for what the pool will need.
func (s forecastAPI) forecastRoutes() []route {
	return []route{
		{"GET", poolPath + "/forecast", readers, 200, call, "get-pool-forecast", "Show how many GPUs trials held and waited for, and how many they will: an estimate", handle(s.server, s.poolForecast), nil},
		{"GET", poolPath + "/advice", onlookers, 200, call, "get-pool-advice", "Say how many GPUs should be awake, and which workers to wake or to drain", handle(s.server, s.poolAdvice), nil},
	}
}
