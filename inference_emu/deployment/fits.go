package deployment

import (
	"reflect"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// maxFits bounds the machines whose fits are remembered.
const maxFits = 64

// Fits remembers the fit of each machine's estimates while its measurements stay the same:
// all architectures share it. It is not safe for concurrent use.
type Fits struct{ last map[string]fit }

type fit struct {
	rates        estimate.Device
	measurements []estimate.Measurement
	model, plain *estimate.Model
}

// of is the fit to the measurements, and without any where times alone were measured.
func (f *Fits) of(machine string, rates estimate.Device, measurements []estimate.Measurement, prior estimate.Knowledge) (model, plain *estimate.Model) {
	if f != nil {
		if known, ok := f.last[machine]; ok && known.rates == rates && reflect.DeepEqual(known.measurements, measurements) {
			return known.model, known.plain
		}
	}
	model = estimate.Fit(rates, measurements, prior)
	if timed(measurements) {
		plain = estimate.Fit(rates, nil, prior)
	}
	if f != nil {
		if f.last == nil || len(f.last) >= maxFits {
			f.last = make(map[string]fit)
		}
		f.last[machine] = fit{rates, measurements, model, plain}
	}
	return model, plain
}
