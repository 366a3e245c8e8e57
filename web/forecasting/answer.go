package forecasting

import (
	"cmp"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// Forecast is the demand of so many minutes, and of the next ones. A caller that
// sees its own studies only is told of its own demand only.
func (s *Service) Forecast(caller access.Caller, minutes int) protocol.PoolForecast {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.options.Now()
	if caller.Sight == access.Own {
		return s.own(caller.Owner, now, minutes)
	}
	recorded := s.history.Since(now.Add(-time.Duration(minutes) * time.Minute))
	answer := s.shown(now, recorded)
	series, _ := s.recent()
	answer.Recorded, answer.Continuous = len(s.history.Since(time.Time{})), len(series)
	for owner, want := range s.wanting(recorded) {
		answer.Users = append(answer.Users, protocol.DemandOfUser{Owner: cmp.Or(owner, access.Administrators), Running: want.Running, Waiting: want.Waiting})
	}
	slices.SortFunc(answer.Users, func(a, b protocol.DemandOfUser) int {
		return cmp.Or(cmp.Compare(b.Running+b.Waiting, a.Running+a.Waiting), cmp.Compare(a.Owner, b.Owner))
	})
	for _, one := range s.ahead {
		answer.Ahead = append(answer.Ahead, protocol.DemandAhead{At: one.at, Demand: one.demand})
	}
	s.explain(&answer, len(series))
	if held := demand.Judge(s.history.Since(now.Add(-day)), answer.Quantiles); held.Minutes > 0 {
		answer.Calibration = &protocol.ForecastCalibration{Minutes: held.Minutes, Covered: held.Covered, CoveredLeast: held.Least, CoveredMost: held.Most, Trust: string(held.Trust)}
		for _, one := range held.Verdicts {
			answer.Calibration.Verdicts = append(answer.Calibration.Verdicts, string(one))
		}
	}
	return answer
}

// wanting is who wanted something in the newest of the minutes, of which the sum is told
// as well; without one, who does now.
func (s *Service) wanting(minutes []demand.Minute) map[string]demand.Want {
	if len(minutes) > 0 {
		return minutes[len(minutes)-1].Owners
	}
	return s.latest.Owners
}

// shown is an answer with these minutes, and no forecast.
func (s *Service) shown(now time.Time, minutes []demand.Minute) protocol.PoolForecast {
	answer := protocol.PoolForecast{
		Unit: s.unit(), Now: now.UTC(), Quantiles: forecast.Quantiles(), Minutes: []protocol.DemandMinute{}, Gaps: []protocol.DemandGap{}, Ahead: []protocol.DemandAhead{}, Users: []protocol.DemandOfUser{},
	}
	for _, one := range minutes {
		answer.Minutes = append(answer.Minutes, protocol.DemandMinute{At: one.At, Running: one.Running, Waiting: one.Waiting, Capacity: one.Capacity, Told: one.Told})
	}
	for _, gap := range demand.Gaps(minutes) {
		answer.Gaps = append(answer.Gaps, protocol.DemandGap{Begin: gap.Begin, End: gap.End})
	}
	return answer
}

func (s *Service) unit() protocol.DemandUnit {
	if s.latest.GPUs() {
		return protocol.DemandGPUs
	}
	return protocol.DemandSlots
}

// explain says how the forecast was made, or why there is none.
func (s *Service) explain(answer *protocol.PoolForecast, continuous int) {
	if s.model == nil {
		answer.Reason = tooShort(continuous)
		if s.failed != "" {
			answer.Reason = s.failed
		} else if s.learning {
			answer.Reason = "the demand is being learned"
		}
		return
	}
	answer.Method, answer.Reason = s.model.Method, s.model.short
	if len(s.ahead) == 0 {
		answer.Method, answer.Reason = "", longOver
	}
	if s.model.short != "" && len(s.ahead) > 0 {
		answer.Method = forecast.Persistence
	}
	learned := &protocol.ForecastLearned{
		At: s.model.at.UTC(), Seconds: s.model.took.Seconds(), Minutes: s.model.LearnedFrom, JudgedOn: s.model.JudgedOn, Bridged: s.model.bridged, Tried: []protocol.ForecastTried{},
	}
	for _, one := range s.model.Tried {
		tried := protocol.ForecastTried{Method: one.Method, Reason: one.Reason}
		if one.Reason == "" && s.model.JudgedOn > 0 {
			tried.Pinball = &one.Pinball
		}
		learned.Tried = append(learned.Tried, tried)
	}
	if s.model.without != "" {
		learned.Tried = append(learned.Tried, protocol.ForecastTried{Method: forecast.GRU, Reason: s.model.without})
	}
	answer.Learned = learned
}

// own is what a user is told: its own demand. The forecast is of all.
func (s *Service) own(owner string, now time.Time, minutes int) protocol.PoolForecast {
	recorded := s.history.Since(now.Add(-day))
	all := demand.Of(recorded, owner)
	from, _ := slices.BinarySearchFunc(all, now.Add(-time.Duration(minutes)*time.Minute), func(one demand.Minute, at time.Time) int { return one.At.Compare(at) })
	answer := s.shown(now, all[from:])
	series, _ := demand.Series(all)
	answer.Owner, answer.Recorded, answer.Continuous = owner, len(all), len(series)
	if want, some := s.wanting(recorded)[owner]; some {
		answer.Users = append(answer.Users, protocol.DemandOfUser{Owner: owner, Running: want.Running, Waiting: want.Waiting})
	}
	answer.Reason = "forecasts are of all users' demand together, and administrators see them"
	return answer
}
