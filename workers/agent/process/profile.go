package process

import (
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/trial"
)

// maxEvents is how many events are counted: what a report has room for beside
// the metrics of host and GPUs, of which there are fewer than 40. It is bounded
// where they are opened, so that all epochs of a run have the same ones.
const maxEvents = trial.MaxProfileValues - 40

// CompactProfile is a profile as it goes with a report: values per second, as
// many as a report may have, events first and in the order of the tables. Nil
// when nothing was seen.
func CompactProfile(p profiler.Profile) *trial.Profile {
	if p.Seconds <= 0 {
		return nil
	}
	compact := &trial.Profile{Level: string(p.Level), Events: map[string]trial.Float{}, Host: map[string]trial.Float{}}
	fraction := 1.0
	for _, event := range p.Events[:min(len(p.Events), maxEvents)] {
		compact.Events[event.Name] = trial.Float(event.PerSecond)
		fraction = min(fraction, event.RunFraction)
	}
	for _, metric := range p.Host {
		if len(compact.Events)+len(compact.Host) < trial.MaxProfileValues {
			compact.Host[metric.Name] = trial.Float(metric.Value)
		}
	}
	if fraction < 1 {
		compact.RunFraction = trial.Float(fraction)
	}
	return compact
}
