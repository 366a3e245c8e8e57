package trace

import (
	"fmt"
	"io"
	"time"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Helios reads a demand curve of Helios (Hu et al., SC 2021): how many GPUs of a
// virtual cluster ran and were waited for, each minute. Jobs are made from it
// that want as many GPUs at each minute: one GPU each, and what came first ends
// first. Whose jobs these were, and how large, the curve does not say.
func Helios(file string, in io.Reader, machines Machines) (Trace, error) {
	table, err := newRows(file, in, "time", "running_gpu_num", "pending_gpu_num")
	if err != nil {
		return Trace{}, err
	}
	needs := placement.Resources{GPUs: 1}
	profile := machines.everywhere("a GPU", 1, needs, 1)
	trace := Trace{Guessed: true}
	var begin time.Time
	now, ended := 0.0, 0
	for first := true; table.next(); first = false {
		at, err := time.Parse(time.DateTime, table.text("time"))
		if err != nil {
			table.fault("time", "is not a time such as 2020-05-01 00:00:00")
			break
		}
		if first {
			begin = at
		}
		seconds := at.Sub(begin).Seconds()
		if seconds < now {
			table.fault("time", "is before the line above")
		}
		now = seconds
		wanted := table.count("running_gpu_num", 0) + table.count("pending_gpu_num", 0)
		for len(trace.Jobs)-ended < wanted {
			trace.Jobs = append(trace.Jobs, replay.Job{Name: fmt.Sprint(len(trace.Jobs)), User: "all", Profile: profile, Arrives: now, Needs: needs, Utilization: 1})
		}
		for ; len(trace.Jobs)-ended > wanted; ended++ {
			trace.Jobs[ended].Work = max(1, now-trace.Jobs[ended].Arrives)
		}
	}
	for ; ended < len(trace.Jobs); ended++ {
		trace.Jobs[ended].Work = now + 60 - trace.Jobs[ended].Arrives // the last minute lasts, too
	}
	trace.note("Jobs of one GPU are made so that as many GPUs are wanted at each minute as the curve says; which jobs these were it does not say. Joules follow from the watts of the machines' file: estimates.")
	return trace, table.err
}
