package deployment

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
)

// CheckAfter is how old a measurement is before it is made again.
const CheckAfter = 24 * time.Hour

// Checking is by what measurements are old.
type Checking struct {
	Now time.Time
	// Software is what the device's boards run with, as far as it is known.
	Software []string
}

// Again are the settings to measure again for what is recommended, instead of trusting it for
// ever: its own setting, once the measurement is old or no board has the software any more
// with which it was made. If that contradicts what the setting took before, the device
// drifted: then all settings that were measured before. So for each provider of the device.
func Again(a emu.Architecture, target Target, known []emu.Architecture, settings Settings, by Checking) ([]Cell, error) {
	var cells []Cell
	for _, target.Provider = range append([]string{""}, target.having(settings)...) {
		target.Ran = target.Provider != ""
		answer, err := Find(a, target, known, settings)
		if err != nil {
			return nil, err
		}
		if answer.Estimated() {
			continue
		}
		s := site{architecture: a, device: target.Device, settings: settings, runs: target.runsOf(a)}
		space := s.space()
		drifted := emu.DriftedAt(s.runs)
		for _, run := range s.runs {
			deployed := run.Batch == s.batches(answer.Configuration.BatchSize) && run.Threads == answer.Configuration.Cores
			if s.holds(space, run) && run.At.Before(drifted) || deployed && by.old(run) {
				cells = append(cells, Cell{run.Batch, run.Threads, run.Provider})
			}
		}
	}
	return cells, nil
}

func (by Checking) old(run emu.Run) bool {
	other := run.Software != "" && len(by.Software) > 0 && !slices.Contains(by.Software, run.Software)
	return other || by.Now.Sub(run.At) >= CheckAfter
}
