package costmodel

import (
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Estimate is what an epoch should take on a type of machine.
type Estimate struct {
	placement.Prediction
	Basis trial.Basis
	// Estimated says that the joules were not measured there.
	Estimated bool
}

// Known reports whether anything is known of the type.
func (e Estimate) Known() bool { return e.Basis != trial.Unknown && e.Basis != "" }

// Estimate is what an epoch of the encoded configuration should take on the type: by the
// study's own epochs there, else by an earlier study's there, else by its epochs elsewhere
// and the probes of both types. The earlier study goes first where it was better on epochs
// that neither had learned from.
func (m *Model) Estimate(encoded []float64, fraction float64, machine string, probes map[string][]placement.Probe) Estimate {
	p, known := m.own(encoded, fraction, machine)
	if j := m.judged[machine]; known && (j.epochs < leastJudged || j.own <= j.earlier) {
		return Estimate{p, trial.OwnEpochs, m.estimated[machine]}
	}
	if p, some := m.before(encoded, fraction, machine, known); some {
		return Estimate{p, trial.EarlierEpochs, m.earlier.estimated[machine]}
	}
	for _, other := range slices.Sorted(maps.Keys(m.usual)) {
		ratio, comparable := placement.Ratio(probes[other], probes[machine])
		if !comparable {
			continue
		}
		if p, known := m.own(encoded, fraction, other); known {
			return Estimate{p.Times(ratio), trial.ProbesOnly, true}
		}
	}
	return Estimate{Basis: trial.Unknown}
}

// before is what the earlier study says of the type. Where the study has run elsewhere
// only, that is corrected by how it differed from the earlier one there.
func (m *Model) before(encoded []float64, fraction float64, machine string, here bool) (placement.Prediction, bool) {
	if m.earlier == nil {
		return placement.Prediction{}, false
	}
	said, known := m.earlier.own(encoded, fraction, machine)
	if !known || here {
		return said, known
	}
	for _, other := range slices.Sorted(maps.Keys(m.usual)) {
		own, _ := m.own(encoded, fraction, other)
		if there, too := m.earlier.own(encoded, fraction, other); too {
			ratio := own.Seconds / there.Seconds
			return said.Times(placement.Prediction{Seconds: ratio, Joules: ratio}), true
		}
	}
	return said, true
}

func (m *Model) own(encoded []float64, fraction float64, machine string) (placement.Prediction, bool) {
	in, known := m.usual[machine]
	if !known {
		return placement.Prediction{}, false
	}
	p, known := m.models.Predict(machine, placement.Task{Features: features(encoded, fraction, in, false)})
	return placement.Prediction{Seconds: p.Seconds * fraction, Joules: p.Joules * fraction}, known
}

// Types are types of machine, each with its probes.
type Types struct {
	Names  []string
	probes map[string][]placement.Probe
	// joined are the names as one, and changes says as of which change the probes are.
	joined  string
	changes uint64
}

// TypesOf are the types with these names, with the probes as of so many changes.
func TypesOf(names []string, probes map[string][]placement.Probe, changes uint64) Types {
	return Types{names, probes, strings.Join(names, "\x00"), changes}
}

// Each is the estimate on each of the types.
func (m *Model) Each(encoded []float64, fraction float64, of Types) map[string]Estimate {
	all := make(map[string]Estimate, len(of.Names))
	for _, machine := range of.Names {
		all[machine] = m.Estimate(encoded, fraction, machine, of.probes)
	}
	return all
}

// Typical is the estimate on each of the types of a configuration that is the mean of
// those that were trained, in an earlier study where none was yet.
func (m *Model) Typical(fraction float64, of Types) map[string]Estimate {
	if m.typical == nil && m.earlier != nil {
		return m.Each(m.earlier.typical, fraction, of)
	}
	return m.Each(m.typical, fraction, of)
}

// estimates are those of a trial, with the scores by them. Plans share both, so they are
// not changed.
type estimates struct {
	fraction float64
	epochs   map[string]Estimate
	scores   map[string]float64
}

// basis is what estimates of trials were made from.
type basis struct {
	loads, learned int
	types          string
	probes         uint64
}

// Reuse forgets the estimates of trials unless they were made for the same types and
// nothing was learned since. loads counts how often the study was read.
func (m *Model) Reuse(of Types, loads int) {
	now := basis{loads, m.learned, of.joined, of.changes}
	if m.trials == nil || m.basis != now {
		m.trials, m.basis = map[int]estimates{}, now
	}
}

// OfTrial is the estimate on each of the types that [Model.Reuse] was called with, and
// the scores by them.
func (m *Model) OfTrial(t *trial.Trial, energy float64, of Types) (map[string]Estimate, map[string]float64) {
	one, known := m.trials[t.Number]
	if !known || one.fraction != t.Budget.DataFraction {
		one = estimates{fraction: t.Budget.DataFraction, epochs: m.Each(m.Encode(t.Configuration), t.Budget.DataFraction, of)}
		one.scores = Scores(one.epochs, energy)
		m.trials[t.Number] = one
	}
	return one.epochs, one.scores
}

// Scores are those of all types of which something is known.
func Scores(epochs map[string]Estimate, energy float64) map[string]float64 {
	var types []string
	var predictions []placement.Prediction
	for machine, one := range epochs {
		if one.Known() {
			types, predictions = append(types, machine), append(predictions, one.Prediction)
		}
	}
	scores := map[string]float64{}
	for i, score := range placement.Scores(predictions, energy) {
		scores[types[i]] = score
	}
	return scores
}

// Moving is what it costs to migrate a trial: to carry its checkpoint over, and to start
// its command again, at the power that its training has here.
func (m *Model) Moving(t trial.Trial, here Estimate) placement.Prediction {
	setup := m.setup
	if setup == 0 {
		setup = usualSetup
	}
	cost := placement.Prediction{Seconds: setup + float64(t.Checkpoint.Bytes)/carried}
	if here.Joules > 0 {
		cost.Joules = cost.Seconds * here.Joules / here.Seconds
	}
	return cost
}

// carried is how fast a checkpoint is taken to be written, carried over and read, in
// bytes a second.
const carried = 20e6

// Summary is what people are shown of the model on each of the types, but for whose it is.
func (m *Model) Summary(fraction float64, of Types) []protocol.PoolModel {
	list, typical := []protocol.PoolModel(nil), m.Typical(fraction, of)
	for _, machine := range of.Names {
		one := protocol.PoolModel{Machine: machine, Basis: typical[machine].Basis, Estimated: typical[machine].Estimated}
		if accuracy, some := m.models.Accuracy(machine); some {
			one.Epochs, one.Learned = accuracy.Observations, accuracy.Learned
			if accuracy.Judged > 0 {
				one.SecondsError = new(trial.Float(accuracy.Seconds))
			}
			if accuracy.Metered > 0 {
				one.JoulesError = new(trial.Float(accuracy.Joules))
			}
		}
		list = append(list, one)
	}
	return list
}
