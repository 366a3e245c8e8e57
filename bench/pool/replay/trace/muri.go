package trace

import (
	"fmt"
	"io"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Muri reads a trace of Muri (Zhao et al., SIGCOMM 2022): Philly's arrivals with
// measured models. Times are in milliseconds; the share of an iteration that
// needs the GPU is the job's utilization. The trace knows one type of machine:
// others are faster or slower by the speed in the machines' file.
func Muri(file string, in io.Reader, machines Machines) (Trace, error) {
	columns := []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "iteration_time", "resource_time_0", "resource_time_1", "resource_time_2", "priority"}
	table, err := newRows(file, in, columns...)
	if err != nil {
		return Trace{}, err
	}
	var trace Trace
	profiles := map[string]*replay.Profile{}
	shares := map[*replay.Profile][3]float64{}
	for table.next() {
		gpus := table.count("num_gpu", 1)
		seconds := table.number("iteration_time", 0.001) / 1000
		needs := placement.Resources{GPUs: gpus}
		var busy [3]float64 // of each resource, as a share of the iteration
		for i := range busy {
			busy[i] = min(1, table.number(fmt.Sprintf("resource_time_%d", i), 0)/1000/seconds)
		}
		name := fmt.Sprintf("%s, batch %s, %d GPUs, %.0f ms", table.text("model_name"), table.text("batch_size"), gpus, 1000*seconds)
		if profiles[name] == nil {
			profiles[name] = machines.everywhere(name, seconds, needs, busy[1])
			shares[profiles[name]] = busy
		}
		trace.Jobs = append(trace.Jobs, replay.Job{
			Name: table.text("job_id"), User: "all", Profile: profiles[name], Work: table.number("iterations", 1),
			Arrives: table.number("submit_time", 0) / 1000, Needs: needs, Utilization: max(0.001, busy[1]), Priority: table.count("priority", 0),
		})
	}
	trace.Slowdown = func(_ string, jobs []*replay.Job) []float64 {
		var sum [3]float64
		for _, one := range jobs {
			for i, share := range shares[one.Profile] {
				sum[i] += share
			}
		}
		speeds := make([]float64, len(jobs))
		for i := range speeds {
			speeds[i] = 1 / max(1, sum[0], sum[1], sum[2])
		}
		return speeds
	}
	trace.leaveOut(machines)
	trace.note("Jobs that share a GPU are slowed down by what all of them together want of the busiest of processor, GPU and network: an estimate that interleaves them as well as can be.")
	trace.note("Joules follow from the watts of the machines' file: estimates.")
	return trace, table.err
}
