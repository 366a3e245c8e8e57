package deployment

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// maxFits bounds the machines whose fits are remembered.
const maxFits = 64

// Fits remembers the fit of each machine's estimates while its measurements stay the same:
// all architectures share it. It is not safe for concurrent use.
type Fits struct {
	// Now is the time. If it is set, a fit is used for [staleTerm] while few measurements are new.
	Now  func() time.Time
	Made int // counts them
	last map[fitted]Fit
}

const (
	staleTerm  = time.Minute
	staleShare = 0.25 // of its measurements that may be new
)

// fitted is what was fitted to: workers of one type may find out different rates.
type fitted struct {
	machine string
	rates   estimate.Device
}

// Fit is what was fitted to the measurements on a device.
type Fit struct {
	at           time.Time
	measurements []estimate.Measurement
	model        *estimate.Model
	// plain stands on no measurement; nil unless times alone were measured.
	plain *estimate.Model
	// unused are measurements that make estimates of other models worse.
	unused int
}

// parts is into how many parts measurements are divided to see whether they help.
const parts = 8

// Wanted is a fit that a target needs. To make it takes long.
type Wanted struct {
	Machine       string
	to            fitted
	judged, fresh bool
	made          Fit
	own           []estimate.Measurement // of the model that is asked about
}

// Want is the fit for the target to what is known.
func Want(target Target, a emu.Architecture, known []emu.Architecture) Wanted {
	a = withRuns(a, known)
	w := target.want(target.calibrating(a, known))
	w.own = target.measurements([]emu.Architecture{a})
	return w
}

// Knows reports whether the fit stands on what was measured of the model itself.
func (w Wanted) Knows(last *Fit) bool {
	return !slices.ContainsFunc(w.own, func(one estimate.Measurement) bool {
		return slices.Contains(w.made.measurements, one) && !slices.Contains(last.measurements, one)
	})
}

func (t Target) want(measurements []estimate.Measurement) Wanted {
	return Wanted{Machine: t.Machine, to: fitted{t.Machine, Rates(t.Device)}, judged: t.Judged, fresh: t.Fresh, made: Fit{measurements: measurements}}
}

// Last is the last fit for the same, nil if there is none, and whether it will do.
func (f *Fits) Last(w Wanted) (last *Fit, good bool) {
	known, ok := f.last[w.to]
	if !ok {
		return nil, false
	}
	if slices.Equal(known.measurements, w.made.measurements) {
		return &known, true
	}
	if f.Now != nil {
		w.made.at = f.Now()
	}
	return &known, !w.fresh && f.Now != nil && known.lasts(w.made)
}

// Quick reports whether the fit takes no time, since nothing was measured.
func (w Wanted) Quick() bool { return len(w.made.measurements) == 0 }

// Make makes the fit; judged, it stands on the measurements only if they make estimates of
// other models better.
func (w Wanted) Make() (*Fit, error) {
	made, rates, measurements := w.made, w.to.rates, w.made.measurements
	prior, err := estimate.Known()
	if err != nil {
		return nil, err
	}
	made.model = estimate.Fit(rates, measurements, prior)
	used := measurements
	if w.judged && !estimate.Helps(estimate.LeftOut(rates, measurements, prior, parts, made.model)) {
		made.unused, used = len(measurements), nil
		made.model = estimate.Fit(rates, nil, prior)
	}
	if timed(used) {
		made.plain = estimate.Fit(rates, nil, prior)
	}
	return &made, nil
}

// Keep remembers a fit as the last one.
func (f *Fits) Keep(w Wanted, made Fit) {
	f.Made++
	if f.Now != nil {
		made.at = f.Now()
	}
	if f.last == nil || len(f.last) >= maxFits {
		f.last = make(map[fitted]Fit)
	}
	f.last[w.to] = made
}

// of is the fit to the measurements: the last one, or one that is made.
func (f *Fits) of(target Target, measurements []estimate.Measurement) (Fit, error) {
	if f == nil {
		f = &Fits{}
	}
	wanted := target.want(measurements)
	if last, good := f.Last(wanted); good {
		return *last, nil
	}
	made, err := wanted.Make()
	if err != nil {
		return Fit{}, err
	}
	f.Keep(wanted, *made)
	return *made, nil
}

// lasts reports whether the fit is still good for what is known now.
func (known Fit) lasts(now Fit) bool {
	others := 0
	for _, one := range now.measurements {
		if !slices.Contains(known.measurements, one) {
			others++
		}
	}
	return now.at.Sub(known.at) < staleTerm && float64(others) < staleShare*float64(len(known.measurements))
}
