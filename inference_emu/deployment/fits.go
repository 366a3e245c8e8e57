package deployment

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// maxFits bounds the machines whose fits are remembered.
const maxFits = 64

// Fits remembers the fit of each machine's estimates while its measurements stay the same:
// all architectures share it. It is not safe for concurrent use.
type Fits struct{ last map[string]fit }

// fit is what was fitted.
type fit struct {
	rates        estimate.Device
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
func (f *Fits) of(target Target, measurements []estimate.Measurement, prior estimate.Knowledge) fit {
	machine, rates := target.Machine, Rates(target.Device)
	if f != nil {
		if known, ok := f.last[machine]; ok && known.rates == rates && slices.Equal(known.measurements, measurements) {
			return known
		}
	}
	made, used := fit{rates: rates, measurements: measurements}, measurements
	if target.Judged && !estimate.Helps(estimate.LeftOut(rates, measurements, prior, parts)) {
		made.unused, used = len(measurements), nil
	}
	made.model = estimate.Fit(rates, used, prior)
	if timed(used) {
		made.plain = estimate.Fit(rates, nil, prior)
	}
	if f != nil {
		if f.last == nil || len(f.last) >= maxFits {
			f.last = make(map[string]fit)
		}
		f.last[machine] = made
	}
	return made
}
