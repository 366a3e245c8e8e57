package api

import (
	"context"
	"math"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/guard"
)

// Forecasts predicts how many GPUs will be wanted. Many requests call its methods at
// once, and they wait for nothing.
type Forecasts interface {
	// Forecast returns the demand of so many past minutes and of the next ones, as far
	// as the caller may see it.
	Forecast(caller access.Caller, minutes int) protocol.PoolForecast
	// Advice returns how many GPUs should be awake. The error is invalid.
	Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error)
}

type forecastInput struct {
	Minutes int `query:"minutes" minimum:"1" maximum:"40320" default:"360" doc:"how many minutes of past demand to return"`
}

func (s forecastAPI) poolForecast(ctx context.Context, input *forecastInput) (*jsonAnswer[protocol.PoolForecast], error) {
	answer := protocol.PoolForecast{Unit: protocol.DemandSlots, Reason: "this server records no demand"}
	if s.forecasts != nil {
		answer = s.forecasts.Forecast(guard.CallerOf(guard.TokenOf(ctx)), input.Minutes)
	}
	answer.Minutes, answer.Gaps, answer.Quantiles = orEmpty(answer.Minutes), orEmpty(answer.Gaps), orEmpty(answer.Quantiles)
	answer.Ahead, answer.Users = orEmpty(answer.Ahead), orEmpty(answer.Users)
	return answered(answer, nil)
}

type adviceInput struct {
	Performance float64 `query:"performance" minimum:"0" maximum:"1" doc:"the share of the demand that is to find a GPU awake; 0: what the server was started with"`
	Least       int     `query:"least" minimum:"0" maximum:"1000000" doc:"how many stay awake whatever is forecast"`
}

// Resolve refuses what is neither below nor above a bound.
func (i *adviceInput) Resolve(huma.Context) []error {
	if math.IsNaN(i.Performance) {
		return []error{&huma.ErrorDetail{Location: "query.performance", Message: "must be a number from 0 to 1", Value: "NaN"}}
	}
	return nil
}

func (s forecastAPI) poolAdvice(_ context.Context, input *adviceInput) (*jsonAnswer[protocol.PoolAdvice], error) {
	answer, err := protocol.PoolAdvice{Unit: protocol.DemandSlots, Performance: input.Performance, Reason: "leave all as it is: this server records no demand"}, error(nil)
	if s.forecasts != nil {
		answer, err = s.forecasts.Advice(protocol.PoolAdviceQuery{Performance: input.Performance, Least: input.Least})
	}
	answer.Settings, answer.Workers = orEmpty(answer.Settings), orEmpty(answer.Workers)
	return answered(answer, err)
}

// forecastRoutes are the routes of forecasts.
func (s forecastAPI) forecastRoutes() []route {
	return []route{
		{"GET", poolPath + "/forecast", guard.Readers, 200, guard.Call, "get-pool-forecast", "Show how many GPUs trials held and waited for, and how many they will: an estimate", handle(s.server, s.poolForecast), nil},
		{"GET", poolPath + "/advice", guard.Onlookers, 200, guard.Call, "get-pool-advice", "Say how many GPUs should be awake, and which workers to wake or to drain", handle(s.server, s.poolAdvice), nil},
	}
}
