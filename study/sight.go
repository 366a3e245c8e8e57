package study

import (
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// sights is what an epoch should take on each of the types.
func sights(known *outlook, encoded []float64, fraction float64, q question) map[string]sight {
	all := make(map[string]sight, len(q.types))
	for _, machine := range q.types {
		all[machine] = known.epoch(encoded, fraction, machine, q.probes.Known)
	}
	return all
}

// seen is what a trial should take on each type of machine, and the scores by that: both
// are shared by plans, and not changed.
type seen struct {
	fraction float64
	epochs   map[string]sight
	scores   map[string]float64
}

// basis is by what trials were looked at: for as long as nothing of it changes, what was
// seen holds.
type basis struct {
	loads, learned int // how often the study was read, and of how many epochs it learned
	types          string
	probes         uint64
}

func joined(types []string) string { return strings.Join(types, "\x00") }

// ask forgets what was seen of trials, if that was another question, or an epoch was
// learned from since.
func (o *outlook) ask(q question, loads int) {
	if q.joined == "" {
		q.joined = joined(q.types)
	}
	now := basis{loads, o.learned, q.joined, q.probes.Changes}
	if o.trials == nil || o.basis != now {
		o.trials, o.basis = map[int]seen{}, now
	}
}

// sighted is what the trial should take on each type of machine, with the scores by
// that, of what was asked last.
func (o *outlook) sighted(t *trial.Trial, energy float64, q question) (map[string]sight, map[string]float64) {
	one, known := o.trials[t.Number]
	if !known || one.fraction != t.Budget.DataFraction {
		one = seen{t.Budget.DataFraction, sights(o, o.encode(t.Configuration), t.Budget.DataFraction, q), nil}
		one.scores = (&offer{epochs: one.epochs, energy: energy}).scores()
		o.trials[t.Number] = one
	}
	return one.epochs, one.scores
}

// outlooks predict by name.
type outlooks map[string]map[string]sight

// Predict is what was predicted before.
func (o outlooks) Predict(machine string, task placement.Task) (placement.Prediction, bool) {
	one := o[task.Name][machine]
	return one.Prediction, one.known()
}

// sightsOf predict of offers that are named by their places.
type sightsOf []offer

// Predict is what was predicted before.
func (s sightsOf) Predict(machine string, task placement.Task) (placement.Prediction, bool) {
	at, _ := strconv.Atoi(task.Name)
	one := s[at].epochs[machine]
	return one.Prediction, one.known()
}

// scores are those of all types of which something is known.
func (o *offer) scores() map[string]float64 {
	var types []string
	var predictions []placement.Prediction
	for machine, one := range o.epochs {
		if one.known() {
			types, predictions = append(types, machine), append(predictions, one.Prediction)
		}
	}
	scores := map[string]float64{}
	for i, score := range placement.Scores(predictions, o.energy) {
		scores[types[i]] = score
	}
	return scores
}
