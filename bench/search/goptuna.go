package main

import (
	"context"
	"errors"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/successivehalving"
	"github.com/c-bata/goptuna/tpe"

	"github.com/tandem-tune/tandem/study/space"
)

// errSpent ends a run of goptuna whose budget is spent.
var errSpent = errors.New("the budget is spent")

// runGoptuna gives goptuna's TPE sampler with its successive halving, which is as
// Optuna's of 2019, the jobs one after the other.
func runGoptuna(ctx context.Context, jobs []*session) (done []finished, err error) {
	for _, one := range jobs {
		if ctx.Err() != nil {
			break // what it finished counts
		}
		def := one.table.definition
		pruner, err := successivehalving.NewPruner(successivehalving.OptionMinResource(def.Budget.Epochs.Min), successivehalving.OptionReductionFactor(def.Budget.Eta))
		if err != nil {
			return done, err
		}
		study, err := goptuna.CreateStudy("peer", goptuna.StudyOptionLogger(nil), goptuna.StudyOptionPruner(pruner),
			goptuna.StudyOptionSampler(tpe.NewSampler(tpe.SamplerOptionSeed(int64(one.seed))))) //nolint:gosec // a small number
		if err != nil {
			return done, err
		}
		study.WithContext(ctx)
		err = study.Optimize(func(t goptuna.Trial) (float64, error) { return one.objective(t) }, int(one.budget)+1)
		if ctx.Err() == nil && !errors.Is(err, errSpent) {
			return done, errors.Join(err, errors.New("goptuna ended before its budget"))
		}
		done = append(done, one.finished)
	}
	return done, nil
}

// objective trains a configuration epoch by epoch, unless it is pruned.
func (s *session) objective(t goptuna.Trial) (float64, error) {
	params, err := suggested(t, s.table.definition.Space)
	for epoch := 1; err == nil && epoch <= s.table.maxEpochs(); epoch++ {
		var losses []float64
		if losses, err = s.train(training{Params: params, From: epoch, To: epoch, Fraction: 1}); err != nil {
			break
		}
		if s.spent() {
			return 0, errSpent
		}
		if err = t.ShouldPrune(epoch, losses[0]); err == nil && epoch == s.table.maxEpochs() {
			return losses[0], nil
		}
	}
	return 0, err
}

// suggested is a configuration by the trial's sampler.
func suggested(t goptuna.Trial, s space.Space) (space.Configuration, error) {
	params := space.Configuration{}
	for _, p := range s.Parameters {
		var number float64
		var place int
		var err error
		switch {
		case p.Type == space.OrdinalType:
			place, err = t.SuggestInt(p.Name, 0, len(p.Values)-1)
			params[p.Name] = p.Values[max(0, place)]
		case p.Type == space.IntType && !p.Log:
			place, err = t.SuggestInt(p.Name, int(p.Low), int(p.High))
			params[p.Name] = space.Int(int64(place))
		case p.Log:
			number, err = t.SuggestLogFloat(p.Name, p.Low, p.High)
			params[p.Name] = space.Float(number)
		default:
			number, err = t.SuggestFloat(p.Name, p.Low, p.High)
			params[p.Name] = space.Float(number)
		}
		if err != nil {
			return nil, err
		}
		if p.Type == space.IntType && p.Log {
			params[p.Name] = space.Int(int64(number + 0.5))
		}
	}
	return params, nil
}
