package deployment

import (
	"slices"
	"time"

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
	last map[fitted]fit
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

// fit is what was fitted.
type fit struct {
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

// of is the fit to the measurements; judged, only if they make estimates of other models
// better.
func (f *Fits) of(target Target, measurements []estimate.Measurement) (fit, error) {
	rates := Rates(target.Device)
	to := fitted{target.Machine, rates}
	if f == nil {
		f = &Fits{}
	}
	made := fit{measurements: measurements}
	if f.Now != nil {
		made.at = f.Now()
	}
	if known, ok := f.last[to]; ok && (slices.Equal(known.measurements, measurements) || !target.Fresh && f.Now != nil && known.lasts(made)) {
		return known, nil
	}
	prior, err := estimate.Known()
	if err != nil {
		return made, err
	}
	f.Made++
	made.model = estimate.Fit(rates, measurements, prior)
	used := measurements
	if target.Judged && !estimate.Helps(estimate.LeftOut(rates, measurements, prior, parts, made.model)) {
		made.unused, used = len(measurements), nil
		made.model = estimate.Fit(rates, nil, prior)
	}
	if timed(used) {
		made.plain = estimate.Fit(rates, nil, prior)
	}
	if f.last == nil || len(f.last) >= maxFits {
		f.last = make(map[fitted]fit)
	}
	f.last[to] = made
	return made, nil
}

// lasts reports whether the fit is still good for what is known now.
func (known fit) lasts(now fit) bool {
	others := 0
	for _, one := range now.measurements {
		if !slices.Contains(known.measurements, one) {
			others++
		}
	}
	return now.at.Sub(known.at) < staleTerm && float64(others) < staleShare*float64(len(known.measurements))
}
