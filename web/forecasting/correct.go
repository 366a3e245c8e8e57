package forecasting

import (
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// decision is what the knob wants awake for the next minutes. It is compared with
// what comes, whether anybody keeps to it or not.
type decision struct {
	knob *forecast.Knob
	// from is the first minute that it is for; before is how many were wanted until
	// then, and wanted how many are.
	from           time.Time
	before, wanted int
}

// knob is set on what the model was judged on. The lock is held, and the model has
// judged.
func (s *Service) knob(total int) (*forecast.Knob, error) {
	return forecast.NewKnob(s.model.Judged, total, s.options.Power)
}

// present is the forecast of the next minutes. The lock is held.
func (s *Service) present() forecast.Forecast {
	present := forecast.Forecast{Quantiles: forecast.Quantiles()}
	for _, one := range s.ahead {
		present.Demand = append(present.Demand, one.demand)
	}
	return present
}

// compare holds what the knob wanted awake against the minute that is over, keeps
// that with it, and corrects. The lock is held.
func (s *Service) compare(minute *demand.Minute) {
	d := s.decision
	if d == nil || minute.At.Before(d.from) {
		return
	}
	since := int(minute.At.Sub(d.from) / time.Minute)
	if since >= forecast.Horizon { // minutes are missing
		s.decision = nil
		return
	}
	wanted := d.knob.Reachable(minute.Total())
	served := min(wanted, float64(d.knob.Serving(d.before, d.wanted, since)))
	s.correction = s.correction.Seen(s.options.Performance, wanted, served, d.knob.MeanDemand())
	minute.Knob = &demand.Knob{Served: served, Missed: wanted - served, Debt: s.correction.Debt}
}

// decide asks the knob again when what it wanted last is over, for the minutes
// behind the newest. The lock is held.
func (s *Service) decide(newest, now time.Time) {
	from := newest.Add(time.Minute)
	if s.decision != nil && from.Sub(s.decision.from) < forecast.Horizon*time.Minute {
		return
	}
	last := s.decision
	s.decision = nil
	total := s.total(now)
	if s.model == nil || len(s.model.Judged) == 0 || len(s.ahead) < forecast.Horizon || total < 1 {
		return
	}
	knob, err := s.knob(total)
	if err != nil { // the options were checked
		s.options.Logger.Error("the knob could not be set", "error", err)
		return
	}
	setting, _, err := knob.Set(s.correction.Aim(s.options.Performance))
	if err != nil {
		s.options.Logger.Error("the knob could not be set", "error", err)
		return
	}
	wanted := knob.Awake(s.present(), setting.Quantile)
	s.decision = &decision{knob: knob, from: from, before: wanted, wanted: wanted}
	if last != nil {
		s.decision.before = last.wanted
	}
}

// corrected is what the knob served by what was seen in the last week, and what it
// therefore aims at for a performance; nil where it was never compared. The lock is
// held.
func (s *Service) corrected(performance float64, now time.Time) *protocol.KnobCorrection {
	seen := protocol.KnobCorrection{Aim: s.correction.Aim(performance), Debt: s.correction.Debt, MostDebt: forecast.MostDebt(), Served: 1}
	served, missed := 0.0, 0.0
	for _, one := range s.history.Since(now.Add(-7 * day)) {
		if one.Knob != nil {
			seen.Minutes++
			served += one.Knob.Served
			missed += one.Knob.Missed
		}
	}
	if seen.Minutes == 0 {
		return nil
	}
	if served+missed > 0 {
		seen.Served = served / (served + missed)
	}
	return &seen
}
