package deployment

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// Held are the bytes of weights and of what flows between the operators for so many
// batches: no process takes less.
func Held(a emu.Architecture, batches int) int64 {
	return max(1, a.StoredBytes+a.ActivationBytes*int64(batches))
}

// peaksOf are the provider's runs with the most memory of each batch, the smallest batch first.
func peaksOf(runs []emu.Run, provider string) []emu.Run {
	list := slices.DeleteFunc(slices.Clone(runs), func(one emu.Run) bool { return one.MemoryBytes == 0 || one.Provider != provider })
	slices.SortFunc(list, func(a, b emu.Run) int { return cmp.Or(a.Batch-b.Batch, cmp.Compare(b.MemoryBytes, a.MemoryBytes)) })
	return slices.CompactFunc(list, func(a, b emu.Run) bool { return a.Batch == b.Batch })
}

// memory is what a batch takes, and what that is: where the device ran it, what it took
// there; else what was measured anywhere, linear between batches; else what is held. It is a
// matter of model and runtime more than of the processor.
func (s site) memory(batch int, here emu.Run) (bytes int64, what string) {
	n := s.batches(batch)
	held := Held(s.architecture, n)
	if took := s.took(n, here); took > held {
		return took, "by a run"
	}
	return held, "for weights and activations"
}

// took is what a run of so many batches takes by those that are known; 0 if none is.
func (s site) took(n int, here emu.Run) int64 {
	if here.MemoryBytes > 0 || len(s.peaks) == 0 {
		return here.MemoryBytes
	}
	at := slices.IndexFunc(s.peaks, func(one emu.Run) bool { return one.Batch >= n })
	switch {
	case at < 0:
		last := s.peaks[len(s.peaks)-1]
		return last.MemoryBytes + s.architecture.ActivationBytes*int64(n-last.Batch)
	case at == 0:
		return s.peaks[0].MemoryBytes // a smaller batch takes no more
	}
	low, high := s.peaks[at-1], s.peaks[at]
	return low.MemoryBytes + (high.MemoryBytes-low.MemoryBytes)*int64(n-low.Batch)/int64(high.Batch-low.Batch)
}

// scarce is what part of a device's memory weights and activations take at most if it is
// sure to have enough: runs were seen to take up to a few times as much.
const scarce = 0.25

// Scarce reports whether it matters on the device what a process takes.
func Scarce(a emu.Architecture, on device.Device, settings Settings) bool {
	asked := func(one tuning.Constraint) bool { return one.Metric == tuning.Memory }
	return settings.MemoryBytes > 0 || settings.Objective == tuning.Memory || slices.ContainsFunc(settings.Constraints, asked) ||
		float64(Held(a, 1)) > scarce*float64(on.Memory.Bytes.Value)
}
