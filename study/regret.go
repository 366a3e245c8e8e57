package study

import (
	"math"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/regret"
	"github.com/tandem-tune/tandem/trial"
)

// boundRegret bounds what is left to gain after a trial was measured, when the
// study asks for it and it is time: at the first results that are enough, and
// then with every tenth more. How often depends on counts alone.
func (tx *transaction) boundRegret(t trial.Trial) *protocol.RegretBound {
	def := tx.session.study.Definition
	if def.Stop.Regret <= 0 || t.Rung != len(tx.session.ladder)-1 {
		return nil
	}
	trials, results := make([]trial.Trial, len(tx.session.trials)), 0
	for number := range trials {
		trials[number] = tx.trial(number)
		if trials[number].MeasuredAt(t.Rung) {
			results++
		}
	}
	if more := results - regret.Least(def.Space); more < 0 || more%max(1, results/10) != 0 {
		return nil
	}
	tx.regret = regretOf(def, trials)
	return tx.regret
}

// regretOf is the bound for a study's trials, if it asks for one and they are
// enough.
func regretOf(def definition.Definition, trials []trial.Trial) *protocol.RegretBound {
	if def.Stop.Regret <= 0 {
		return nil
	}
	var list []regret.Observation
	for _, t := range trial.Searched(trials) {
		for _, result := range t.Results {
			score := float64(result.Values[0])
			if def.Objectives[0].Direction == definition.Minimize {
				score = -score
			}
			if result.Violation > 0 {
				score = math.NaN() // nothing that may be taken
			}
			list = append(list, regret.Observation{Configuration: t.Configuration, Rung: result.Rung, Score: score})
		}
	}
	bound, ok := regret.Of(def.Space, len(def.Ladder())-1, list)
	if !ok {
		return nil
	}
	return &protocol.RegretBound{
		Value: trial.Float(bound.Value), Threshold: def.Stop.Regret, Confidence: regret.Confidence, Results: bound.Results,
	}
}
