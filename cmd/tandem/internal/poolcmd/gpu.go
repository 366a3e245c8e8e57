package poolcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
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
		said += ": " + show.GPUShare(*one.Share)
	default:
		said += besideWhom(one, runs) + ": " + show.GPUShare(*one.Share)
	}
	if one.Use != nil {
		said += "; seen: " + show.GPUUse(*one.Use)
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
