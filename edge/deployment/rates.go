package deployment

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/edge/device"
	"github.com/tandem-tune/tandem/edge/estimate"
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

// measurements are the inferences of all architectures on the device. The first
// one may come again.
func measurements(known []edge.Architecture, machine string) []estimate.Measurement {
	type dated struct {
		estimate.Measurement
		run edge.Run
	}
	var all []dated
	for i, one := range known {
		if i > 0 && one.Key == known[0].Key {
			continue // the architecture itself is among those that are known
		}
		workload := estimate.Summarize(one.Graph)
		for _, run := range runsOn(one, machine) {
			all = append(all, dated{estimate.Measurement{
				Workload: workload, Configuration: estimate.Configuration{Batch: run.Batch, Cores: run.Threads},
				Seconds: run.Seconds, Joules: run.Joules,
			}, run})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		return cmp.Or(b.run.At.Compare(a.run.At), cmp.Compare(a.run.Batch, b.run.Batch), cmp.Compare(a.run.Threads, b.run.Threads))
	})
	var list []estimate.Measurement
	for _, one := range all[:min(len(all), maxCalibration)] {
		list = append(list, one.Measurement)
	}
	return list
}

func runsOn(a edge.Architecture, machine string) []edge.Run {
	var list []edge.Run
	for _, run := range a.Runs {
		if run.Machine == machine {
			list = append(list, run)
		}
	}
	return list
}
