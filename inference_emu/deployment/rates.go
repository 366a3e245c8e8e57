package deployment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// Rates are the device as the estimate takes it: its fastest cluster of cores,
// on which inference runs, and the whole board's power.
func Rates(d device.Device) estimate.Device {
	fastest := d.Clusters[0]
	return estimate.Device{
		Name: d.Name, Engine: d.Runtime.Value, Cores: fastest.Cores.Value, ClockHertz: fastest.HighestHertz.Value,
		Float32PerCycle: fastest.Float32OperationsPerCycle.Value, Int8PerCycle: fastest.Int8OperationsPerCycle.Value,
		MemoryBytesPerSecond: d.Memory.BytesPerSecond.Value,
		IdleWatts:            d.Power.IdleWatts.Value, LoadWatts: d.Power.LoadWatts.Value,
	}
}

// maxCalibration bounds the measurements that an estimate stands on: the newest.
const maxCalibration = 60

// calibrating are the measurements that an estimate for the architecture stands on.
func (t Target) calibrating(a emu.Architecture, known []emu.Architecture) []estimate.Measurement {
	return t.measurements(append([]emu.Architecture{a}, known...))
}

// measurements are the inferences of all architectures on the device's CPU, which alone is
// estimated. The first one may come again.
func (t Target) measurements(known []emu.Architecture) []estimate.Measurement {
	t.Provider = ""
	type dated struct {
		estimate.Measurement
		run emu.Run
		key string
	}
	var all []dated
	for i, one := range known {
		if i > 0 && one.Key == known[0].Key {
			continue // the architecture itself is among those that are known
		}
		workload := estimate.Summarize(one.Graph)
		for _, run := range t.runsOf(one) {
			all = append(all, dated{estimate.Measurement{
				Workload: workload, Configuration: estimate.Configuration{Batch: run.Batch, Cores: run.Threads},
				Seconds: run.Seconds, Joules: run.Joules,
			}, run, one.Key})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		return cmp.Or(b.run.At.Compare(a.run.At), cmp.Compare(a.run.Batch, b.run.Batch), cmp.Compare(a.run.Threads, b.run.Threads), cmp.Compare(a.key, b.key))
	})
	var list []estimate.Measurement
	for _, one := range all[:min(len(all), maxCalibration)] {
		list = append(list, one.Measurement)
	}
	return list
}

// withRuns is the architecture with what is known of it elsewhere; its own runs go
// before those.
func withRuns(a emu.Architecture, known []emu.Architecture) emu.Architecture {
	for _, one := range known {
		if one.Key == a.Key {
			a.Runs = one.With(a.Runs).Runs
		}
	}
	return a
}

// runsOf are the architecture's real inferences on the target by its provider. Joules that no meter
// told were computed from an assumed power of a core, which says nothing of a board
// whose power the catalogue knows: they are left out. What a worker assumes of its
// own machine is as good as the catalogue's assumption, and is that of the training.
func (t Target) runsOf(a emu.Architecture) []emu.Run {
	var list []emu.Run
	for _, run := range a.Runs {
		if run.Machine != t.Machine || run.Provider != t.Provider {
			continue
		}
		if t.Device.Name != device.ThisMachine && strings.HasPrefix(run.EnergyMethod, "estimate") {
			run.Joules, run.EnergyMethod = 0, ""
		}
		list = append(list, run)
	}
	return list
}
