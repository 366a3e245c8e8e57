package inference

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
)

// fitPatience is how long a request waits for a newer fit where there is an older one.
const fitPatience = 50 * time.Millisecond

// making is a fit that is made behind the requests that want it.
type making struct {
	done chan struct{} // closed when it is kept, or failed
	err  error
}

// fitted is the target with the fit to what is known. Fits are made behind: after a moment
// the last one serves. Who wants it fresh waits, and so does who has no last one, or one
// that was made before the model itself was measured: a page asks once for what it was told of.
func (s *Service) fitted(ctx context.Context, target deployment.Target, a emu.Architecture, others []emu.Architecture) (deployment.Target, error) {
	wanted := deployment.Want(target, a, others)
	for {
		s.mutex.Lock()
		last, good := s.fits.Last(wanted)
		if good {
			s.mutex.Unlock()
			target.Fit = last
			return target, nil
		}
		one, ok := s.makes[wanted.Machine]
		if !ok {
			one = &making{done: make(chan struct{})}
			s.makes[wanted.Machine] = one
			go s.makeFit(one, wanted)
		}
		s.mutex.Unlock()
		patience, cancel := ctx, func() {}
		if last != nil && !target.Fresh && wanted.Knows(last) {
			patience, cancel = context.WithTimeout(ctx, fitPatience)
		}
		select {
		case <-one.done:
			cancel()
			if one.err != nil {
				return target, one.err
			}
		case <-patience.Done():
			cancel()
			if ctx.Err() != nil {
				return target, problem.New(problem.Unavailable, "the caller gave up: %w", ctx.Err())
			}
			target.Fit = last
			return target, nil
		}
	}
}

// makeFit makes a fit and keeps it. What is answered meanwhile is looked at again after
// [staleTerm].
func (s *Service) makeFit(one *making, wanted deployment.Wanted) {
	_ = s.fitting.Enter(context.Background()) // which has no end
	made, err := wanted.Make()
	s.fitting.Leave()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.makes, wanted.Machine)
	if one.err = err; err == nil {
		s.fits.Keep(wanted, *made)
		if !wanted.Quick() {
			s.learned++
		}
	}
	close(one.done)
}

// Warm makes the fits that the studies need, so that no request after a start waits for
// them. They stand on what is stored: nothing is measured again.
func (s *Service) Warm(ctx context.Context, sections []definition.Inference) error {
	others, err := s.store.Architectures(ctx, knownArchitectures)
	if err != nil {
		return err
	}
	warm := warming{s, others, make(map[string]bool)}
	for _, section := range sections {
		devices, err := devicesOf(section)
		if err != nil {
			return err
		}
		for _, name := range section.Names() {
			for _, a := range others {
				if err := warm.on(ctx, devices, a, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// warming makes the fits of each machine once.
type warming struct {
	service *Service
	others  []emu.Architecture
	met     map[string]bool
}

// on makes the fits for a device, or for the machines that the architecture was seen on.
func (w warming) on(ctx context.Context, devices []device.Device, a emu.Architecture, name string) error {
	machines := []string{name}
	if name == device.ThisMachine {
		machines = nil
		for _, site := range a.Sites {
			machines = append(machines, site.Machine)
		}
	}
	for _, machine := range machines {
		at := name + " " + machine
		target, err := w.service.target(devices, a, name, machine)
		if w.met[at] || err != nil { // a board may not be there yet
			continue
		}
		w.met[at] = true
		if _, err := w.service.fitted(ctx, target, a, w.others); err != nil {
			return err
		}
	}
	return nil
}
