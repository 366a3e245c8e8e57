package study

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// outlook predicts what an epoch of a study takes on each type of machine, from
// the epochs that were reported (Rocha, section 3.3). It is kept apart from the
// search, which knows nothing of machines.
type outlook struct {
	cube   *space.Cube
	models *placement.Models
	// usual is what a type's newest epochs had beside their configuration, and
	// estimated of which types the joules were estimates.
	usual     map[string]circumstances
	estimated map[string]bool
	// typical is the mean of all encoded configurations, of so many.
	typical []float64
	seen    int
	// leases has the newest lease that a trial reported under.
	leases map[int]trial.LeaseEpoch
	// learned counts the epochs that it was told of; trials is what was seen by these and
	// by the rest of the basis.
	learned int
	trials  map[int]seen
	basis   basis
	// setup is what a lease spends before it trains, in seconds; 0 before it is
	// known.
	setup float64
}

// circumstances are what an epoch runs in.
type circumstances struct{ threads, neighbours float64 }

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
)

func newOutlook(of space.Space) *outlook {
	return &outlook{
		cube: of.Cube(), models: placement.NewModels(placement.ModelSettings{}), usual: map[string]circumstances{},
		estimated: map[string]bool{}, leases: map[int]trial.LeaseEpoch{},
	}
}

// encode is the configuration as numbers: where a parameter stands on its own
// scale, from 0 to 1, and for each value of a categorical whether it has it.
// Parameters that do not exist are in the middle, or have no value.
func (o *outlook) encode(configuration space.Configuration) []float64 {
	var features []float64
	point := o.cube.Encode(configuration)
	for i, d := range o.cube.Dimensions() {
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
	return append(slices.Clone(encoded), math.Log(fraction), in.threads, in.neighbours, start)
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

// learn takes in an epoch of the trial. Those of which nobody knows where they ran,
// or that took no time, teach nothing.
func (o *outlook) learn(t trial.Trial, report trial.Report) {
	o.learned++
	first := o.leases[t.Number] != report.LeaseEpoch
	o.leases[t.Number] = report.LeaseEpoch
	if report.SetupSeconds > 0 {
		o.setup = mean(o.setup, float64(report.SetupSeconds), o.setup == 0)
	}
	fraction := fractionAt(t, report.Rung)
	took := placement.Prediction{Seconds: float64(report.Seconds-report.SetupSeconds) / fraction}
	if report.Machine == "" || !(took.Seconds > 0) {
		return
	}
	if report.Energy.Method != "" && report.Energy.Joules > 0 {
		took.Joules = float64(report.Energy.Joules) / fraction
		o.estimated[report.Machine] = report.Energy.Estimated()
	}
	encoded := o.encode(t.Configuration)
	in := circumstances{threads: threadsOf(report.System), neighbours: float64(report.Neighbours)}
	one := placement.Observation{Type: report.Machine, Features: features(encoded, fraction, in, first && report.SetupSeconds == 0), Took: took}
	if _, err := o.models.Observe(one); err != nil {
		return // what cannot have been
	}
	before, known := o.usual[report.Machine]
	o.usual[report.Machine] = circumstances{
		threads: mean(before.threads, in.threads, !known), neighbours: mean(before.neighbours, in.neighbours, !known),
	}
	if o.typical == nil {
		o.typical = make([]float64, len(encoded))
	}
	o.seen++
	for i, x := range encoded {
		o.typical[i] += (x - o.typical[i]) / float64(o.seen)
	}
}

// fractionAt is the share of the data that the trial trained with at the rung.
func fractionAt(t trial.Trial, rung int) float64 {
	for _, result := range t.Results {
		if result.Rung == rung {
			return result.Budget.DataFraction
		}
	}
	return t.Budget.DataFraction
}

// mean is the running mean with one more value; the value itself if it is the
// first.
func mean(before, now float64, first bool) float64 {
	if first {
		return now
	}
	return (1-newest)*before + newest*now
}

// sight is what an epoch should take on a type of machine.
type sight struct {
	placement.Prediction
	basis     trial.Basis
	estimated bool
}

// known reports whether anything is.
func (s sight) known() bool { return s.basis != trial.Unknown && s.basis != "" }

// epoch is what an epoch of the encoded configuration should take on the type:
// by the study's own epochs there, else by its epochs elsewhere and what probes
// say of both types.
func (o *outlook) epoch(encoded []float64, fraction float64, machine string, probes map[string][]placement.Probe) sight {
	if p, known := o.own(encoded, fraction, machine); known {
		return sight{Prediction: p, basis: trial.OwnEpochs, estimated: o.estimated[machine]}
	}
	for _, other := range slices.Sorted(maps.Keys(o.usual)) {
		ratio, comparable := placement.Ratio(probes[other], probes[machine])
		if !comparable {
			continue
		}
		if p, known := o.own(encoded, fraction, other); known {
			return sight{Prediction: p.Times(ratio), basis: trial.ProbesOnly, estimated: true}
		}
	}
	return sight{basis: trial.Unknown}
}

func (o *outlook) own(encoded []float64, fraction float64, machine string) (placement.Prediction, bool) {
	in, known := o.usual[machine]
	if !known {
		return placement.Prediction{}, false
	}
	p, known := o.models.Predict(machine, placement.Task{Features: features(encoded, fraction, in, false)})
	return placement.Prediction{Seconds: p.Seconds * fraction, Joules: p.Joules * fraction}, known
}

// outlook is the study's, made from its newest trials when somebody first asks.
func (s *Service) outlook(ctx context.Context, r *session) *outlook {
	if r.outlook != nil {
		return r.outlook
	}
	made := newOutlook(r.study.Definition.Space)
	type epoch struct {
		of     trial.Trial
		report trial.Report
	}
	var epochs []epoch
	for at, left := len(r.trials)-1, recalled; at >= 0 && left > 0; at-- {
		t := r.trials[at]
		if t.Epochs == 0 {
			continue
		}
		left--
		reports, err := s.store.Reports(ctx, t.ID)
		if err != nil {
			s.options.Logger.Warn("placement goes on without what was stored", "study", r.study.Definition.Name, "error", err)
			return made // it is tried again the next time
		}
		for _, one := range reports {
			epochs = append(epochs, epoch{t, one})
		}
	}
	slices.SortStableFunc(epochs, func(a, b epoch) int { return a.report.At.Compare(b.report.At) })
	for _, one := range epochs {
		made.learn(one.of, one.report)
	}
	r.outlook = made
	return made
}

// observe takes in epochs that are durable, where somebody has asked before.
func (r *session) observe(t trial.Trial, accepted []trial.Report) {
	if r.outlook == nil {
		return
	}
	for _, report := range accepted {
		r.outlook.learn(t, report)
	}
}
