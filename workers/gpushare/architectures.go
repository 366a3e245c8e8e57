package gpushare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// architectures say what a study's trials train, by their parameters, before a script
// has said so: trials whose parameters differ in nothing that changes the model
// share an architecture (Rocha, section 7.3.4).
type architectures struct {
	// deciding are the parameters that change the model, as far as is known.
	deciding []string
	// known has the architecture by the values of these; conflicts counts the trials
	// that have the same ones as others and train different models.
	known     map[string]string
	conflicts int
	// prepared says that all of these are in memory: see [Model.Prepare].
	prepared bool
}

// batchNames are the names that a parameter has which says how many samples a
// step of the training takes.
func batchNames() []string {
	return []string{"batch_size", "batch", "train_batch_size", "per_device_train_batch_size", "minibatch_size", "mini_batch_size"}
}

// batchOf is how many samples a step of the training takes; 0 where no parameter
// says so.
func batchOf(configuration space.Configuration) int64 {
	for _, name := range batchNames() {
		if value, has := configuration[name]; has {
			if n, number := value.Number(); number && n >= 1 && n <= 1<<32 {
				return int64(n)
			}
		}
	}
	return 0
}

// architecturesOf finds what decides the architecture. Where the study tells parameters
// of the model from others (kind: model), these do. Where it does not, or where
// trials contradict that, all do but those in which two trials differ that train
// the same model; and where trials contradict that, too (a parameter may change the
// model together with another one only), all that are no ranges of real numbers.
func architecturesOf(of space.Space, trials []trial.Trial) architectures {
	var all, counted, declared []string
	for _, p := range of.Parameters {
		all = append(all, p.Name)
		if p.Type != space.FloatType {
			counted = append(counted, p.Name)
		}
		if p.Kind == space.Model {
			declared = append(declared, p.Name)
		}
	}
	met := modelled(trials)
	if len(declared) > 0 {
		if d := tableOf(declared, met); d.conflicts == 0 {
			return d
		}
	}
	d := tableOf(slices.DeleteFunc(all, func(name string) bool { return changesNothing(name, met) }), met)
	if d.conflicts > 0 {
		return tableOf(counted, met)
	}
	return d
}

// modelled are the trials whose script has said what they train.
func modelled(trials []trial.Trial) (met []trial.Trial) {
	for _, t := range trials {
		if t.Inference != nil && t.Inference.Architecture != "" {
			met = append(met, t)
		}
	}
	return met
}

// changesNothing reports whether two trials differ in the parameter that train the
// same model.
func changesNothing(name string, met []trial.Trial) bool {
	values := map[string]string{}
	for _, t := range met {
		value := valuesOf([]string{name}, t.Configuration)
		if other, known := values[t.Inference.Architecture]; known && other != value {
			return true
		}
		values[t.Inference.Architecture] = value
	}
	return false
}

func tableOf(deciding []string, met []trial.Trial) architectures {
	d := architectures{deciding: deciding, known: map[string]string{}}
	for _, t := range met {
		values := valuesOf(deciding, t.Configuration)
		if other, known := d.known[values]; known && other != t.Inference.Architecture {
			d.conflicts++
		}
		d.known[values] = t.Inference.Architecture
	}
	return d
}

// valuesOf are the values of the parameters; one that a configuration does not have
// has a place of its own.
func valuesOf(names []string, configuration space.Configuration) string {
	values := make([]*space.Value, len(names))
	for i, name := range names {
		if value, has := configuration[name]; has {
			values[i] = &value
		}
	}
	text, _ := json.Marshal(values) // values have a text
	return string(text)
}

// architecture is what a trial with the parameters trains, and how that is known;
// empty where it is not, and the words say why.
func (d architectures) architecture(configuration space.Configuration) (key, how string) {
	if len(d.known) == 0 {
		return "", "no script has said yet what it trains: call trial.save_model"
	}
	if d.conflicts > 0 {
		return "", "trials train different models, and no parameters say which (kind: model tells them from others)"
	}
	key, known := d.known[valuesOf(d.deciding, configuration)]
	switch {
	case !known:
		return "", "no trial with the same " + strings.Join(d.deciding, ", ") + " has said what it trains"
	case len(d.deciding) == 0:
		return key, "all trials train this model"
	}
	return key, "trials with the same " + strings.Join(d.deciding, ", ") + " train this model"
}

// Prepare reads what is asked of a study's trials later, while locks are held under
// which nothing may be read: what they train.
func (m *Model) Prepare(ctx context.Context, of Study) {
	if !of.Definition.SharesGPUs() || !m.fitted() {
		return
	}
	if of.architectures == nil {
		m.architecture(ctx, of, trial.Trial{})
	}
	if of.architectures.prepared {
		return
	}
	of.architectures.prepared = true
	for _, key := range of.architectures.known {
		m.features(ctx, key, 1)
	}
}

// architecture is what the trial trains, or will, and how that is known; empty
// where it is not. The trial may be one that the search has not started.
func (m *Model) architecture(ctx context.Context, of Study, t trial.Trial) (key, how string) {
	if t.Inference != nil && t.Inference.Architecture != "" {
		return t.Inference.Architecture, "its script has said so"
	}
	if of.architectures == nil {
		made := architecturesOf(of.Definition.Space, slices.Concat(m.earlierTrials(ctx, of), of.Trials))
		of.architectures = &made
	}
	return of.architectures.architecture(t.Configuration)
}

// architectureOf is what the trial trains, as far as it is in memory; empty where it is
// not.
func (s Study) architectureOf(t trial.Trial) string {
	if t.Inference != nil && t.Inference.Architecture != "" {
		return t.Inference.Architecture
	}
	if s.architectures == nil {
		return ""
	}
	key, _ := s.architectures.architecture(t.Configuration)
	return key
}

// mostEarlier is of how many earlier studies the models are looked at.
const mostEarlier = 3

// earlierTrials are trials of the newest earlier studies of the same owner that run the
// same command with the same parameters: they train the same models. They are read
// once.
func (m *Model) earlierTrials(ctx context.Context, of Study) []trial.Trial {
	if of.earlier != nil {
		return *of.earlier
	}
	var found []trial.Trial
	studies, err := m.store.Studies(ctx)
	left := mostEarlier
	for _, one := range studies {
		if left == 0 || err != nil {
			break
		}
		if one.ID == of.ID || one.Owner != of.Owner || !sameScript(one, of) {
			continue
		}
		left--
		var trials []trial.Trial
		if trials, err = m.store.Trials(ctx, one.ID); err == nil {
			found = append(found, modelled(trials)...)
		}
	}
	if err != nil {
		m.options.Logger.Warn("what earlier studies train is not known", "study", of.Definition.Name, "error", err)
		return nil // it is tried again the next time
	}
	of.earlier = &found
	return found
}

// sameScript reports whether two studies run the same command with the same
// parameters.
func sameScript(a journal.Study, b Study) bool {
	one, other := a.Definition, b.Definition
	return len(one.Command) > 0 && slices.Equal(one.Command, other.Command) && one.Directory == other.Directory && one.Space.SameParameters(other.Space)
}

// kindOf is the kind of training that the trial is, as far as it is in memory.
func (s Study) kindOf(t trial.Trial) string {
	return kindOf(s.ID, s.architectureOf(t), batchOf(t.Configuration))
}

// kindOf names trainings that take as long as each other, of one study: those of
// the same model and batch.
func kindOf(study, architecture string, batch int64) string {
	return fmt.Sprintf("%s/%s/%d", study, architecture, batch)
}
