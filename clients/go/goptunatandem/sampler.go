package goptunatandem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/c-bata/goptuna"
	tandem "github.com/tandem-tune/tandem/clients/go"
)

// record is a trial of this process.
type record struct {
	frozen goptuna.FrozenTrial // under the bridge's lock
	// trial is what the server proposed; nil for a trial that looks at the space, or
	// whose values its user has fixed. It and the rest belong to who runs the trial.
	trial     *tandem.Trial
	end       context.CancelFunc
	exploring bool
	stopped   bool // the server wants no more of it
	lost      bool // another process has it now

	gone     bool  // the server had none to give: it was not run
	onServer bool  // it was recorded there
	left     error // why it was not
}

func (r *record) asked() asked {
	return asked{maps.Clone(r.frozen.Distributions), maps.Clone(r.frozen.InternalParams)}
}

// steps are those at which it reported, in their order.
func (r *record) steps() []int { return slices.Sorted(maps.Keys(r.frozen.IntermediateValues)) }

// SampleRelative asks the server for the trial, before goptuna runs it. Its error ends
// goptuna's Optimize: tandem.ErrStudyOver when the study has ended.
func (b *Bridge) SampleRelative(study *goptuna.Study, frozen goptuna.FrozenTrial, _ map[string]any) (map[string]float64, error) {
	one, err := b.find(frozen.ID)
	if err != nil {
		return nil, err
	}
	err = b.ask(study, one)
	if err != nil {
		b.forget(one)
	}
	return nil, err
}

func (b *Bridge) ask(study *goptuna.Study, one *record) error {
	ctx, end := context.WithCancel(b.ctx) //nolint:gosec // the trial's: finish ends it
	one.end = end
	if outer := (&goptuna.Trial{Study: study}).GetContext(); outer != nil {
		stop := context.AfterFunc(outer, end)
		defer stop()
	}
	release, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	if b.fixed(one) {
		return nil
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	found := b.Study()
	if found == nil {
		one.exploring = true
		return nil
	}
	trial, err := found.Ask(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	one.trial, one.frozen.Number = trial, trial.Number
	b.mu.Unlock()
	return nil
}

// fixed reports whether the user has given values, by goptuna's EnqueueTrial.
func (b *Bridge) fixed(one *record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, has := one.frozen.SystemAttrs["fixed_params"]
	return has
}

// Sample is a parameter's value as the server proposed it. What the server cannot
// propose is drawn at random.
func (b *Bridge) Sample(study *goptuna.Study, frozen goptuna.FrozenTrial, name string, distribution any) (float64, error) {
	one, err := b.find(frozen.ID)
	if err != nil {
		return 0, err
	}
	if single, err := goptuna.DistributionIsSingle(distribution); err != nil || single {
		value, failed := b.draws.Sample(study, frozen, name, distribution)
		return value, errors.Join(err, failed)
	}
	switch {
	case one.trial != nil:
		if value, has := one.trial.Params()[serverName(name)]; has {
			if found, fits := fromServer(distribution, value); fits {
				return found, nil
			}
		}
		b.warnOfStrange(study, name)
	case one.exploring:
		if count, is := few(distribution); is {
			b.mu.Lock()
			defer b.mu.Unlock()
			return at(distribution, b.looked.choose(name, count)), nil
		}
	}
	return b.draws.Sample(study, frozen, name, distribution)
}

func (b *Bridge) warnOfStrange(study *goptuna.Study, name string) {
	b.mu.Lock()
	told := b.strange[name]
	b.strange[name] = true
	b.mu.Unlock()
	if !told {
		study.GetLogger().Warn("The server cannot propose a parameter, which is drawn at random: it, or its range, was not seen in the trials that looked at the space.", "name="+name)
	}
}

// Prune reports the trial's newest value to the server, and says whether it stops the
// trial.
func (b *Bridge) Prune(_ *goptuna.Study, frozen goptuna.FrozenTrial) (bool, error) {
	one, err := b.find(frozen.ID)
	if err != nil || one.trial == nil {
		return false, err
	}
	epoch := len(frozen.IntermediateValues)
	step, has := frozen.GetLatestStep()
	if !has || epoch >= one.trial.LastEpoch || epoch <= one.trial.FirstEpoch-1 || one.stopped || one.lost { // the last epoch is the result's
		return one.stopped || one.lost, nil
	}
	err = one.trial.Report(epoch, tandem.Metrics{one.trial.Objectives[0]: frozen.IntermediateValues[step]})
	if tandem.IsCode(err, tandem.LeaseLost) {
		one.lost = true
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, one.stopped = one.trial.Stopped()
	return one.stopped, nil
}

// finish brings the server what became of a trial of this process.
func (b *Bridge) finish(one *record, state goptuna.TrialState) error {
	if one.end != nil {
		defer one.end()
	}
	if one.trial == nil {
		if state != goptuna.TrialStateComplete {
			return nil
		}
		return b.bring(one)
	}
	study := b.Study()
	var err error
	switch {
	case one.lost:
		_, err = study.Interrupt(b.ctx, one.trial, "another process has it")
	case one.stopped:
		_, err = study.Tell(b.ctx, one.trial, 0)
	case state == goptuna.TrialStatePruned:
		_, err = study.Fail(b.ctx, one.trial, fmt.Sprintf("pruned by the program after %d reports", len(one.steps())))
	case state != goptuna.TrialStateComplete:
		_, err = study.Fail(b.ctx, one.trial, "the objective returned an error; the program's log says which")
	default:
		err = b.complete(study, one)
	}
	if tandem.IsCode(err, tandem.LeaseLost) {
		return nil // another process tries it
	}
	return err
}

// complete reports the result; a trial that did not run with the values that were
// proposed becomes one of its own.
func (b *Bridge) complete(study *tandem.Study, one *record) error {
	b.mu.Lock()
	other := differences(b.configuration(one), one.trial.Params())
	metrics := b.besides(one, one.trial.Params())
	b.mu.Unlock()
	if other != "" {
		if _, err := study.Fail(b.ctx, one.trial, "not run as proposed: "+other); err != nil {
			return err
		}
		b.mu.Lock()
		one.trial = nil
		b.mu.Unlock()
		return b.bring(one)
	}
	if err := one.trial.Report(one.trial.LastEpoch, metrics); err != nil {
		_, failed := study.Interrupt(b.ctx, one.trial, err.Error())
		return errors.Join(err, failed)
	}
	_, err := study.Tell(b.ctx, one.trial, one.frozen.Value)
	return err
}

// bring records a completed trial that the server did not propose, and creates the study
// there when the trials have shown its space.
func (b *Bridge) bring(one *record) error {
	release, err := b.take(b.ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := b.look(b.ctx); err != nil { // another process may have created it
		return err
	}
	b.mu.Lock()
	waits, created := !one.onServer && one.left == nil, b.study != nil
	var trials []asked
	if !created {
		b.looked.learn(one.asked())
		for _, before := range b.records {
			if before.frozen.State == goptuna.TrialStateComplete {
				trials = append(trials, before.asked())
			}
		}
		b.looked.doubt(shapeOf(trials))
	}
	b.mu.Unlock()
	switch {
	case created && waits:
		return b.record(one)
	case !created && shapeOf(trials).settled():
		return b.create(b.ctx)
	}
	return nil
}

// configuration is what a trial ran with, as far as the server knows the parameters. The
// caller has the lock.
func (b *Bridge) configuration(one *record) map[string]any {
	found := map[string]any{}
	for name, value := range one.frozen.InternalParams {
		if known := serverName(name); b.known[known] {
			found[known] = toServer(one.frozen.Distributions[name], value)
		}
	}
	return found
}

// besides is a trial's result, and as metrics the numbers that the server's trial does
// not have. The caller has the lock.
func (b *Bridge) besides(one *record, proposed map[string]any) tandem.Metrics {
	found := tandem.Metrics{b.metric: one.frozen.Value}
	for name, value := range one.frozen.InternalParams {
		_, text := one.frozen.Distributions[name].(goptuna.CategoricalDistribution)
		_, has := proposed[serverName(name)]
		if !text && !has && !b.known[serverName(name)] && !math.IsNaN(value) && !math.IsInf(value, 0) {
			found["params."+notInNames.ReplaceAllString(strings.ReplaceAll(serverName(name), "-", "_"), "_")] = value
		}
	}
	return found
}

// differences says where a trial ran with another value than the one proposed.
func differences(ran, proposed map[string]any) string {
	var found []string
	for name, value := range ran {
		if wanted, has := proposed[name]; has && !alike(value, wanted) {
			found = append(found, fmt.Sprintf("%s was %v instead of %v", name, value, wanted))
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// alike compares values up to rounding: the server puts a number next to a step onto it.
func alike(one, other any) bool {
	a, numeric := number(one)
	b, too := number(other)
	if !numeric || !too {
		return one == other
	}
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-3)
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}
