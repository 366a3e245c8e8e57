package prior

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/kde"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// newExpected is what users expect of a space as a source beside results, or nil where that
// is nothing: a prior as in BOPrO (Souza et al. 2021), πBO (Hvarfner et al. 2022) and
// PriorBand (Mallik et al. 2023). Its density is a product over the parameters, uniform
// where nothing is expected.
func newExpected(h *ladder.History, s space.Space) *source {
	dimensions := h.Cube.Dimensions()
	centre, width := space.Configuration{}, make([]float64, len(dimensions))
	for i, p := range s.Parameters {
		width[i] = 1
		if p.Expect != nil {
			centre[p.Name], width[i] = p.Expect.Value, widthOf(dimensions[i], p.Expect.Sure)
		}
	}
	if len(centre) == 0 {
		return nil
	}
	nowhere := make([]float64, len(dimensions))
	for i := range nowhere {
		nowhere[i] = math.NaN()
	}
	one := &source{name: "what is expected", origin: propose.OriginExpected, centre: centre, fitted: 1}
	one.model.Good.Dimensions, one.model.Good.Bandwidth = dimensions, width
	one.model.Good.Place([][]float64{h.Cube.Encode(centre)})
	one.model.Bad.Like(&one.model.Good, [][]float64{nowhere})
	one.model.Pending.Like(&one.model.Bad, nil)
	return one
}

// widthOf is the bandwidth of a kernel around an expected value. The constants are those of
// NePS: a standard deviation in parts of the range, and how much likelier an expected
// choice is than another one.
func widthOf(d space.Dimension, sure space.Sureness) float64 {
	deviation, odds := 0.25, 4.0
	switch sure {
	case space.Low:
		deviation, odds = 0.5, 2
	case space.High:
		deviation, odds = 0.125, 6
	}
	switch others := float64(d.Choices - 1); d.Kind {
	case space.Unordered:
		return others / (odds + others)
	case space.Ordered:
		return kde.Spread(deviation * float64(d.Choices))
	}
	return deviation
}

// begin gives what is expected first, and then draws around it for every other trial, up to
// the test: so few that little is lost if it is bad. A method without a model of its own
// stays what it is called, and takes the first one only.
func (p *Prior) begin(h *ladder.History, r *rand.Rand, where Footing) (ladder.Proposal, bool) {
	if len(p.sources) == 0 || p.sources[len(p.sources)-1].centre == nil {
		return ladder.Proposal{}, false
	}
	s := p.sources[len(p.sources)-1]
	made := 0
	for _, t := range h.Trials {
		if t.Origin == propose.OriginExpected {
			made++
		}
	}
	if made == 0 {
		if complete, err := h.Cube.Complete(s.centre, r); err == nil && !h.Taken[complete.Key()] {
			return ladder.Proposal{Configuration: complete, Origin: propose.OriginExpected, Reason: "what is expected to be good"}, true
		}
	}
	if tested, _ := s.tested(h); tested || !where.Models || !where.Cheap || made >= untestedDraws || len(h.Trials) < 2*made {
		return ladder.Proposal{}, false
	}
	configuration, ok := s.draw(h, r)
	return ladder.Proposal{Configuration: configuration, Origin: propose.OriginExpected, Reason: "drawn around what is expected, which is not tested yet"}, ok
}

// around draws from what is expected, which is not what a density of good results is: the
// best of several draws would always be in its middle.
func (s *source) around(h *ladder.History, r *rand.Rand) (space.Configuration, bool) {
	point := make([]float64, len(h.Cube.Dimensions()))
	for range propose.Redraws {
		s.model.Good.DrawFrom(r, 0, 1, point)
		h.Cube.Mask(point)
		if h.Cube.Forbids(point) {
			continue
		}
		if configuration, ok := propose.Fresh(h, point); ok {
			return configuration, true
		}
	}
	return nil, false
}
