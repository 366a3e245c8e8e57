package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// shownPoolGPU says what a trial has of its machine's GPUs, and beside which of those
// that run there.
func shownPoolGPU(one protocol.PoolGPU, runs []protocol.PoolRun) string {
	said := "GPU "
	if len(one.Places) > 1 {
		said = "GPUs "
	}
	said += strings.Trim(strings.ReplaceAll(fmt.Sprint(one.Places), " ", ", "), "[]")
	switch {
	case one.Share == nil:
		said += " for itself"
	case one.Share.Alone:
		said += ": " + shownGPUShare(*one.Share)
	default:
		said += besideWhom(one, runs) + ": " + shownGPUShare(*one.Share)
	}
	if one.Use != nil {
		said += "; seen: " + shownGPUUse(*one.Use)
	}
	return said
}

// besideWhom names the trials that share the GPU.
func besideWhom(one protocol.PoolGPU, runs []protocol.PoolRun) string {
	var names []string
	for _, id := range one.Beside {
		at := slices.IndexFunc(runs, func(run protocol.PoolRun) bool { return run.Trial == id })
		if at >= 0 {
			names = append(names, shownRun(runs[at]))
		} else {
			names = append(names, string(id))
		}
	}
	if one.Others > 0 {
		names = append(names, format.Count(one.Others, "trial")+" of other users")
	}
	if len(names) == 0 {
		return ", which others may share"
	}
	return " beside " + strings.Join(names, ", ")
}

// shownGPUShare says which part of a GPU a trial should take.
func shownGPUShare(share trial.GPUShare) string {
	if share.Alone {
		return "nobody joins it there at the moment: " + format.Plain(share.Basis)
	}
	return fmt.Sprintf("should keep it busy for %.0f %% of the time and hold %s (an estimate: %s)", 100*share.Utilization, gib(share.MemoryBytes), format.Plain(share.Basis))
}

// shownGPUUse says what a trial was seen to use.
func shownGPUUse(use trial.GPUUse) string {
	with := "beside others"
	if use.Alone {
		with = "alone"
	}
	if use.Seconds == 0 {
		return "at most " + gib(use.MemoryBytes) + " held (how busy it keeps a shared GPU is not told here)"
	}
	return fmt.Sprintf("busy for %.0f %% of %s %s, at most %s held", 100*use.Utilization, format.Seconds(use.Seconds), with, gib(use.MemoryBytes))
}

// gib is an amount of memory.
func gib(bytes int64) string { return fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30)) }
