// Package costmodel estimates what an epoch of a study takes on each type of machine,
// from the epochs that were reported (HEATS: Rocha, section 3.3). It does no I/O and
// knows no clock.
package costmodel

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Model estimates the epochs of one study. It is not safe for concurrent use.
type Model struct {
	cube   *space.Cube
	models *placement.Models
	// earlier has learned from an earlier study of the same command; nil where there is
	// none. judged is how good it and the own models were, by type of machine.
	earlier *Model
	judged  map[string]judged
	// usual is what a type's newest epochs had beside their configuration, and
	// estimated of which types the joules were estimates.
	usual     map[string]circumstances
	estimated map[string]bool
	// typical is the mean of all encoded configurations, of so many.
	typical []float64
	seen    int
	// leases has the newest lease that a trial reported under.
	leases map[int]trial.LeaseEpoch
	// learned counts the epochs that were learned from. trials has the estimates of trials,
	// which hold for as long as the basis is the same.
	learned int
	trials  map[int]estimates
	basis   basis
	// setup is what a lease spends before it trains, in seconds; 0 before it is
	// known.
	setup float64
}

// circumstances are what an epoch runs in.
type circumstances struct{ threads, colocated float64 }

const (
	// newest is how much the newest observation counts in a running mean.
	newest = 0.2
	// mostChoices is up to how many values of a categorical each get a feature of
	// their own.
	mostChoices = 12
	// usualSetup is what a lease is taken to spend before it trains while nothing
	// is known of that, in seconds.
	usualSetup = 5
	// recalled is how many trials of a stored study are learned from again.
	recalled = 64
	// leastJudged is on how many epochs an earlier study must have been better than the
	// own ones, before these give way to it.
	leastJudged = 3
)

// judged are the errors of the logarithm of the seconds of epochs that both the own
// models and the earlier study predicted before they were learned from.
type judged struct {
	own, earlier float64
	epochs       int
}

// Knows reports whether the model has learned of any machine.
func (m *Model) Knows() bool { return len(m.usual) > 0 }

// New returns a model that knows nothing yet, for configurations of the space.
func New(of space.Space) *Model {
	return &Model{
		cube: of.Cube(), models: placement.NewModels(placement.ModelSettings{}), usual: map[string]circumstances{},
		estimated: map[string]bool{}, leases: map[int]trial.LeaseEpoch{}, judged: map[string]judged{},
	}
}

// Encode is the configuration as numbers: where a parameter stands on its own
// scale, from 0 to 1, and for each value of a categorical whether it has it.
// Parameters that do not exist are in the middle, or have no value.
func (m *Model) Encode(configuration space.Configuration) []float64 {
	var features []float64
	point := m.cube.Encode(configuration)
	for i, d := range m.cube.Dimensions() {
		u := point[i]
		if d.Kind != space.Unordered || d.Choices > mostChoices {
			if math.IsNaN(u) {
				u = 0.5
			}
			features = append(features, u)
			continue
		}
		values := make([]float64, d.Choices)
		if !math.IsNaN(u) {
			values[d.Choice(u)] = 1
		}
		features = append(features, values...)
	}
	return features
}

// features are those of an epoch. Its seconds are learned for a pass over all
// data: that they grow with the share of it is known before.
func features(encoded []float64, fraction float64, in circumstances, unmeasuredStart bool) []float64 {
	start := 0.0
	if unmeasuredStart {
		start = 1
	}
	return append(slices.Clone(encoded), math.Log(fraction), in.threads, in.colocated, start)
}

// threadsOf is how many threads or cores a configuration gives a training, as a
// power of two; 0 where it leaves that to the machine.
func threadsOf(configuration map[string]space.Value) float64 {
	const all = math.MaxInt32
	if demand := system.Configuration(configuration).Demand(all); demand < all {
		return math.Log2(float64(demand)) + 1
	}
	return 0
}

// Learn learns from an epoch of the trial. One of which nobody knows where it ran, or
// that took no time, teaches nothing.
func (m *Model) Learn(t trial.Trial, report trial.Report) {
	m.learned++
	first := m.leases[t.Number] != report.LeaseEpoch
	m.leases[t.Number] = report.LeaseEpoch
	if report.SetupSeconds > 0 {
		m.setup = mean(m.setup, float64(report.SetupSeconds), m.setup == 0)
	}
	fraction := t.FractionAt(report.Rung)
	took := placement.Prediction{Seconds: float64(report.Seconds-report.SetupSeconds) / fraction}
	if report.Machine == "" || !(took.Seconds > 0) {
		return
	}
	if report.Energy.Method != "" && report.Energy.Joules > 0 {
		training := float64(1 - report.SetupSeconds/report.Seconds) // of the seconds, and so of the joules
		took.Joules = float64(report.Energy.Joules) * training / fraction
		m.estimated[report.Machine] = report.Energy.Estimated()
	}
	encoded := m.Encode(t.Configuration)
	in := circumstances{threads: threadsOf(report.System), colocated: float64(report.Neighbours)}
	one := placement.Observation{Type: report.Machine, Features: features(encoded, fraction, in, first && report.SetupSeconds == 0), Took: took}
	m.judge(one)
	if _, err := m.models.Observe(one); err != nil {
		return // what cannot have been
	}
	before, known := m.usual[report.Machine]
	m.usual[report.Machine] = circumstances{
		threads: mean(before.threads, in.threads, !known), colocated: mean(before.colocated, in.colocated, !known),
	}
	if m.typical == nil {
		m.typical = make([]float64, len(encoded))
	}
	m.seen++
	for i, x := range encoded {
		m.typical[i] += (x - m.typical[i]) / float64(m.seen)
	}
}

// judge compares what the own models and the earlier study say of an epoch that neither
// has learned from.
func (m *Model) judge(one placement.Observation) {
	if m.earlier == nil {
		return
	}
	task := placement.Task{Features: one.Features}
	own, known := m.models.Predict(one.Type, task)
	earlier, too := m.earlier.models.Predict(one.Type, task)
	if known && too {
		j := m.judged[one.Type]
		off := func(p placement.Prediction) float64 { return math.Abs(math.Log(p.Seconds / one.Took.Seconds)) }
		m.judged[one.Type] = judged{j.own + off(own), j.earlier + off(earlier), j.epochs + 1}
	}
}

// mean is the running mean with one more value; the value itself if it is the
// first.
func mean(before, now float64, first bool) float64 {
	if first {
		return now
	}
	return (1-newest)*before + newest*now
}

// Recall returns a model that has learned from the newest trials of a stored study. Where
// these taught nothing, or less, it goes by an earlier study of the same command; nil:
// there is none. If their reports cannot be read, it returns the error and a model that
// has learned nothing from them.
func Recall(of space.Space, earlier *Model, trials []trial.Trial, read func(trial.ID) ([]trial.Report, error)) (*Model, error) {
	m := New(of)
	if m.earlier = earlier; earlier != nil {
		m.setup = earlier.setup
	}
	type epoch struct {
		of     trial.Trial
		report trial.Report
	}
	var epochs []epoch
	for at, left := len(trials)-1, recalled; at >= 0 && left > 0; at-- {
		t := trials[at]
		if t.Epochs == 0 {
			continue
		}
		left--
		reports, err := read(t.ID)
		if err != nil {
			return m, err
		}
		for _, one := range reports {
			epochs = append(epochs, epoch{t, one})
		}
	}
	slices.SortStableFunc(epochs, func(a, b epoch) int { return a.report.At.Compare(b.report.At) })
	for _, one := range epochs {
		m.Learn(one.of, one.report)
	}
	return m, nil
}
