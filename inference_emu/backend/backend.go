// Package backend answers: on which backend is a model served best?
//
// A backend is a place to deploy at a price: some cores and memory of a device. Of those
// that keep to the study's bounds, the best by the user's priorities is chosen (Patidar and
// others, DOPE-ML, sections 4 and 4.2). What a model takes there was measured, or is an
// estimate that measurements calibrate (package deployment). An estimate is never chosen:
// it says what is likely, and which backends are worth measuring.
//
// The package is pure.
package backend

import (
	"time"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
)

// BackendOffer is what a backend is.
type BackendOffer struct {
	Device string `json:"device" minLength:"1" maxLength:"128" doc:"a name of the catalogue, or board/ and the name that an edge agent was given"`
	// Cores and MemoryMiB are those that a deployment gets; 0: all that the device has.
	Cores     int `json:"cores,omitempty" minimum:"0" maximum:"4096" doc:"cores that a deployment gets; 0 or absent: all of the device"`
	MemoryMiB int `json:"memory_mib,omitempty" minimum:"0" maximum:"16777216" doc:"memory that weights and activations may take; 0 or absent: that of the device"`
	// PricePerHour is in any one currency, for a deployment that is up.
	PricePerHour float64 `json:"price_per_hour" minimum:"0" maximum:"1000000" doc:"in any one currency, for a deployment that is up; 0: it is free"`
	// MaxRate is how many requests a second it takes; 0: no limit beside its speed.
	MaxRate float64 `json:"max_rate,omitempty" minimum:"0" maximum:"1000000000" doc:"requests a second that it takes at most; 0 or absent: what it is able to"`
}

// Backend is a backend with its name.
type Backend struct {
	Name string `json:"name"`
	BackendOffer
	// Seen is when a board of the device asked for work last; nil: none did in the last day.
	Seen *time.Time `json:"seen,omitempty" doc:"when a board of the device asked for work last; absent: none did in the last day, and nothing is measured"`
}

// Fault says what is wrong with the name; the bounds of the offer are the API's.
func Fault(name string) error {
	if device.IsName(name) && len(name) <= 64 {
		return nil
	}
	return problem.WithFields("the backend is not valid", []problem.Field{{Path: "backend", Value: name, Message: "must be a name of up to 64 small letters, digits and single hyphens"}})
}

// State is what is known of a backend for a model.
type State string

// The states.
const (
	Keeps    State = "keeps"    // it keeps to the bounds, at the bad end of the band as well
	Doubtful State = "doubtful" // it keeps to them, but not at the bad end
	Misses   State = "misses"   // it does not
	Unknown  State = "unknown"  // nothing can be said of it yet
)

// BackendOption is one backend for a model.
type BackendOption struct {
	Backend Backend `json:"backend"`
	State   State   `json:"state" enum:"keeps,doubtful,misses,unknown"`
	// Measured says that the numbers were measured there; else they are estimates.
	Measured bool     `json:"measured"`
	Reasons  []string `json:"reasons" doc:"why it misses the bounds, or may"`
	// Deployment is how the model is best run there; nil where that is not known.
	Deployment *deployment.Deployment `json:"deployment,omitempty"`
	// Cost is of one sample: of the time it takes, or, with a rate of requests, of the time
	// until the next, since the deployment stays up.
	Cost float64 `json:"cost_per_sample"`
	// Worse is by which part it is worse than the best, all priorities together.
	Worse *float64 `json:"worse,omitempty" doc:"by which part it is worse than the best one that keeps the bounds, all priorities together"`
	// Wanted says that a board shall measure the model there: it could be the best.
	Wanted bool `json:"wanted" doc:"it could be the best, and was not measured: boards are asked to"`
}

// Judge is the backend for a model that is best deployed there so, under the load; nil: one
// sample after the other.
func Judge(b Backend, d deployment.Deployment, load *deployment.Load) BackendOption {
	d.Front = nil
	o := BackendOption{Backend: b, State: Keeps, Reasons: []string{}, Deployment: &d, Measured: d.Runs() && !d.Estimated()}
	rate := 0.0
	if load != nil {
		rate = load.Rate
	}
	switch {
	case b.MaxRate > 0 && rate > b.MaxRate:
		o.State, o.Reasons = Misses, append(o.Reasons, limit(b.MaxRate, rate))
	case !d.Runs() || !d.Feasible:
		o.State, o.Reasons = Misses, append(o.Reasons, d.Unmet...)
	case len(d.Doubtful) > 0:
		o.State, o.Reasons = Doubtful, append(o.Reasons, d.Doubtful...)
	}
	if hour := 3600.0; rate > 0 {
		o.Cost = b.PricePerHour / hour / rate
	} else if d.Runs() {
		o.Cost = b.PricePerHour / hour / d.SamplesPerSecond
	}
	return o
}

// Settling reports whether the backend keeps to the bounds as measured, so that other settings
// may be still better.
func (o BackendOption) Settling() bool {
	return o.Measured && (o.State == Keeps || o.State == Doubtful)
}

// Known reports whether the backend was measured, which counts until it drifts.
func (o BackendOption) Known() bool { return o.Measured && !o.refused() }

// Unjudged is a backend of which nothing can be said, and why.
func Unjudged(b Backend, why string) BackendOption {
	return BackendOption{Backend: b, State: Unknown, Reasons: []string{why}}
}
