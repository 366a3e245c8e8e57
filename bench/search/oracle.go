package main

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/space"
)

// mark says that from a cost on, in data passes, a search has this regret; the
// simulated time is then so many seconds.
type mark struct{ cost, seconds, regret float64 }

// milestone says from which cost on a value is missing so much.
type milestone struct{ cost, missing float64 }

// finished is one whole run of a method on a problem.
type finished struct {
	method, problem string
	seed            uint64
	workers         int
	budget          float64
	seconds         float64 // at the end
	marks           []mark  // of the incumbent, in the order of cost
	// full are of the best value that was measured at the full budget, with what it
	// is missing of the best there is.
	full []milestone
}

// measure is what runs are compared by; less is better.
type measure func(finished) float64

// regretAt is the regret once a share of the budget was spent.
func (f finished) regretAt(share float64) float64 {
	regret := 1.0
	for _, m := range f.marks {
		if m.cost > share*f.budget*(1+1e-9) {
			break
		}
		regret = m.regret
	}
	return regret
}

// reaches is the share of the budget that was spent when a value that is missing no
// more had been measured at the full budget; infinite if none was.
func (f finished) reaches(missing float64) float64 {
	for _, m := range f.full {
		if m.missing <= missing {
			return m.cost / f.budget
		}
	}
	return math.Inf(1)
}

// follow takes in a trace of Tandem, with what it costs.
func (f *finished) follow(t *table, points []simulator.Point, cost func(simulator.Point) float64) {
	incumbent, full := -1, math.NaN()
	for _, p := range points {
		if p.Incumbent != incumbent {
			incumbent = p.Incumbent
			f.marks = append(f.marks, mark{cost(p), p.Seconds, t.regret(p.True)})
		}
		if !math.IsNaN(p.Full) && p.Full != full {
			full = p.Full
			f.full = append(f.full, milestone{cost(p), t.missing(p.Full)})
		}
	}
}

// regretBy is the regret at a simulated time.
func (f finished) regretBy(seconds float64) float64 {
	regret := 1.0
	for _, m := range f.marks {
		if m.seconds > seconds*(1+1e-9) {
			break
		}
		regret = m.regret
	}
	return regret
}

// session is one run of a peer: it charges each epoch that the peer trains, be
// it for the first time or again, and follows the peer's incumbent by the rule
// that Tandem has: of all configurations measured with the largest budget so
// far the one with the least loss.
type session struct {
	finished
	table *table
	cost  float64

	largest float64 // the incumbent's budget, in data passes
	least   float64 // its loss there
}

func newSession(method string, t *table, seed uint64, budget float64) *session {
	return &session{finished: finished{method: method, problem: t.name, seed: seed, workers: 1, budget: budget}, table: t}
}

// spent reports whether nothing more may be trained.
func (s *session) spent() bool { return s.cost >= s.budget*(1-1e-9) }

// training is a request to train epochs of a configuration.
type training struct {
	Params space.Configuration `json:"params"`
	// From and To are the first and the last epoch; those before From are in a
	// checkpoint, or the peer pays for them too.
	From     int     `json:"from"`
	To       int     `json:"to"`
	Fraction float64 `json:"fraction"`
}

// train charges the epochs and returns the loss after each. It stops where the
// budget does, so there may be fewer than asked for.
func (s *session) train(asked training) ([]float64, error) {
	if asked.From < 1 || asked.To < asked.From || asked.To > s.table.maxEpochs() || asked.Fraction != 1 {
		return nil, fmt.Errorf("cannot train epochs %d to %d on %v of the data", asked.From, asked.To, asked.Fraction)
	}
	of := s.table.definition.Space
	params, err := of.Part(clamped(of, asked.Params))
	if err != nil {
		return nil, err
	}
	if faults := of.Check(params); len(faults) > 0 {
		return nil, fmt.Errorf("the parameters do not fit the search space: %+v", faults)
	}
	row := s.table.nearest(params)
	losses := []float64{}
	for epoch := asked.From; epoch <= asked.To && !s.spent(); epoch++ {
		s.cost += asked.Fraction
		measured := s.table.at(row, epoch, asked.Fraction)
		s.seconds += measured.Seconds
		loss := s.table.loss(measured.Value)
		losses = append(losses, loss)
		budget := float64(epoch) * asked.Fraction
		if math.IsNaN(loss) || budget < s.largest || budget == s.largest && loss >= s.least {
			continue
		}
		s.largest, s.least = budget, loss
		s.marks = append(s.marks, mark{s.cost, s.seconds, s.table.regret(s.table.full(row))})
		if epoch == s.table.maxEpochs() {
			s.full = append(s.full, milestone{s.cost, s.table.missing(measured.Value)})
		}
	}
	return losses, nil
}

// clamped pulls numbers into their range that a peer's own logarithms have
// pushed over its end.
func clamped(s space.Space, c space.Configuration) space.Configuration {
	result := make(space.Configuration, len(c))
	for name, value := range c {
		result[name] = value
		p, known := s.Parameter(name)
		number, isNumber := value.Number()
		if known && isNumber && p.Type == space.FloatType {
			result[name] = space.Float(min(max(number, p.Low), p.High))
		}
	}
	return result
}
