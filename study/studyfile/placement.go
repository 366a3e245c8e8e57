package studyfile

import (
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readWhen reads at which hours the study starts trials.
func readWhen(s tree.Section) *definition.When {
	s, ok := s.Part("when", "price_below", "co2_below", "latest_start_hours")
	if !ok {
		return nil
	}
	result := definition.When{PriceBelow: readBound(s, "price_below"), CO2Below: readBound(s, "co2_below"), LatestStartHours: 24}
	s.Number("latest_start_hours", 0, year/3600, &result.LatestStartHours)
	if result.PriceBelow == nil && result.CO2Below == nil && len(s.Faults) == 0 {
		s.Fault(s.Path, s.Node, "must name price_below, the price of a kWh, or co2_below, the grams of CO2 of one")
	}
	return &result
}

// readPlacement reads the section.
func readPlacement(s tree.Section) definition.Placement {
	var result definition.Placement
	if s, ok := s.Part("placement", "energy"); ok {
		s.Number("energy", 0, 1, &result.Energy)
	}
	return result
}
