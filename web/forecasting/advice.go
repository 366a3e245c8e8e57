package forecasting

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// leastForSaving is how many minutes must have been recorded in the last day
// before what was saved is told.
const leastForSaving = 60

// longOver is why there is no forecast soon after a restart.
const longOver = "the last minute that was recorded is over for long: after the present one there is a forecast"

func tooShort(minutes int) string { return needs(forecast.LeastForPersistence, minutes) }

// needs says what is lacking to a forecast or the knob.
func needs(least, minutes int) string {
	if minutes >= least {
		return fmt.Sprintf("is not learned yet from the %d minutes that were recorded", minutes)
	}
	return fmt.Sprintf("needs %d minutes without a gap of more than %d; there are %d", least, int(demand.Bridged/time.Minute), minutes)
}

// Advice says how many GPUs should be awake, and which workers to wake or to
// drain for that. The error is invalid.
func (s *Service) Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) {
	performance := cmp.Or(query.Performance, s.options.Performance)
	if !(performance > 0 && performance <= 1) || query.Least < 0 {
		return protocol.PoolAdvice{}, problem.New(problem.Invalid, "performance %g and least %d: the first must be above 0 and at most 1, the second not negative", performance, query.Least)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.options.Now()
	advice := protocol.PoolAdvice{
		Unit: s.unit(), Now: now.UTC(), Performance: performance, Awake: s.latest.Capacity(), Total: float64(s.total(now)),
		Settings: []protocol.KnobSetting{}, Workers: []protocol.WorkerAdvice{},
		Power: protocol.PowerAssumption{AwakeWatts: s.options.Power.AwakeWatts, AsleepWatts: s.options.Power.AsleepWatts, DelayMinutes: s.options.Power.DelayMinutes},
		Saved: s.saved(now),
	}
	if err := s.choose(&advice); err != nil {
		return protocol.PoolAdvice{}, err
	}
	if least := float64(query.Least); advice.Method != "" && least > advice.Wanted {
		advice.Wanted, advice.Reason = least, fmt.Sprintf("at least %d stay awake, whatever is forecast", query.Least)
	}
	var steps []demand.Step
	steps, advice.Missing = demand.Plan(s.latest.Hosts, advice.Wanted)
	for _, one := range steps {
		advice.Workers = append(advice.Workers, protocol.WorkerAdvice{
			ID: one.Host.ID, Name: one.Host.Name, Capacity: one.Host.Capacity, Trials: one.Host.Trials, Silent: one.Host.Silent, Action: string(one.Action), Reason: one.Reason,
		})
	}
	return advice, nil
}

// total is how many GPUs there are, awake or not.
func (s *Service) total(now time.Time) int {
	if s.options.Total > 0 {
		return s.options.Total
	}
	return int(math.Ceil(max(s.latest.Capacity(), demand.MostCapacity(s.history.Since(now.Add(-7*day))))))
}

// choose turns the knob. Without one, all that is awake is wanted.
func (s *Service) choose(advice *protocol.PoolAdvice) error {
	advice.Wanted = advice.Awake
	total := int(advice.Total)
	switch {
	case s.latest.Capacity() < s.before && s.options.Now().Sub(s.began) < returning:
		advice.Reason = "leave all as it is: this server started a moment ago, and not all workers are back"
		return nil
	case s.model != nil && (len(s.ahead) == 0 || s.ahead[0].at.Sub(s.options.Now()).Abs() > fresh):
		advice.Reason = "leave all as it is: " + longOver
		return nil
	case s.model == nil:
		series, _ := s.recent()
		advice.Reason = "leave all as it is: a forecast " + tooShort(len(series))
		return nil
	case len(s.model.Judged) == 0:
		advice.Reason = "leave all as it is: the knob " + needs(forecast.LeastForKnob, s.model.length)
		return nil
	case total < 1:
		advice.Reason = "leave all as it is: no worker was seen yet"
		return nil
	}
	knob, err := s.knob(total)
	if err != nil {
		return err
	}
	aim := s.correction.Aim(advice.Performance)
	setting, reached, err := knob.Set(aim)
	if err != nil {
		return err
	}
	present := s.present()
	for _, one := range knob.Settings() {
		advice.Settings = append(advice.Settings, protocol.KnobSetting{
			Quantile: one.Quantile, Served: one.Served, Met: one.Met, Saved: one.Saved, Wanted: float64(knob.Awake(present, one.Quantile)),
		})
	}
	advice.Method, advice.Quantile, advice.Reached = s.model.Method, setting.Quantile, reached
	if s.model.short != "" {
		advice.Method = forecast.Persistence
	}
	advice.Wanted = float64(knob.Awake(present, setting.Quantile))
	advice.Reason = fmt.Sprintf("with %.0f%% the demand of the next minutes is at most %g; on %d recorded minutes this setting served %.1f%% of it", 100*setting.Quantile, advice.Wanted, s.model.JudgedOn, 100*setting.Served)
	if now := math.Ceil(advice.Performance*knob.Reachable(s.latest.Want().Total()) - 1e-9); now > advice.Wanted {
		advice.Wanted, advice.Reason = now, fmt.Sprintf("trials take and could start now on %g, of which %s are asked for; %s", s.latest.Want().Total(), percent(advice.Performance), advice.Reason)
	}
	advice.Correction = s.corrected(advice.Performance, s.options.Now())
	if asked, aimed := percent(advice.Performance), percent(aim); asked != aimed {
		advice.Reason += fmt.Sprintf("; corrected from %s to %s by what was seen", asked, aimed)
	}
	if !reached {
		advice.Reason += fmt.Sprintf("; none serves %s", percent(aim))
	}
	return nil
}

// percent is a share, to a hundredth of a percent at most.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1e4*share)/100, 'f', -1, 64) + "%"
}

// saved is what it saved in the last day that not all GPUs were awake. A GPU of a
// worker that was not heard of counts as asleep; one that is drained draws.
func (s *Service) saved(now time.Time) *protocol.PoolSaving {
	minutes, total := s.history.Since(now.Add(-day)), float64(s.total(now))
	if len(minutes) < leastForSaving || total == 0 {
		return nil
	}
	saving := protocol.PoolSaving{Minutes: len(minutes)}
	wanted, served := 0.0, 0.0
	for _, one := range minutes {
		saving.Joules += 60 * max(0, total-max(one.Capacity, one.Powered)) * (s.options.Power.AwakeWatts - s.options.Power.AsleepWatts)
		wanted += min(one.Total(), total)
		served += min(one.Total(), one.Capacity)
	}
	saving.Share = saving.Joules / (60 * float64(len(minutes)) * total * s.options.Power.AwakeWatts)
	saving.Served = 1
	if wanted > 0 {
		saving.Served = min(1, served/wanted)
	}
	return &saving
}
