package trace

import (
	"fmt"
	"io"
	"math"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// AlibabaNodes reads the nodes of Alibaba's cluster trace of 2023 (openb): a
// type for each model of GPU, number of GPUs and size. The trace says nothing of
// power: watts are those of the named types of described, where it has them
// ("G2", "T4", ..., or "cpu").
func AlibabaNodes(file string, in io.Reader, described Machines) (Machines, error) {
	table, err := newRows(file, in, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return Machines{}, err
	}
	machines := Machines{Quotas: described.Quotas}
	for table.next() {
		model := table.text("model")
		if model == "" {
			model = "cpu"
		}
		of := described.types[model]
		of.As = model
		of.GPUs, of.Cores, of.MemoryGiB = table.count("gpu", 0), int(table.number("cpu_milli", 0)/1000), table.number("memory_mib", 0)/1024
		name := fmt.Sprintf("%s x%d, %d cores, %.0f GiB", model, of.GPUs, of.Cores, of.MemoryGiB)
		if _, known := machines.types[name]; !known {
			machines.AddType(name, of)
		}
		machines.Cluster.Machines = append(machines.Cluster.Machines, replay.Machine{Name: table.text("sn"), Type: name})
	}
	return machines, table.err
}

// AlibabaPods reads the pods of that trace. A pod ran from when it was scheduled
// to when it was deleted, as long on every machine; the share of a GPU that it
// asked for counts as its utilization, which was not measured.
func AlibabaPods(file string, in io.Reader, machines Machines) (Trace, error) {
	table, err := newRows(file, in, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time")
	if err != nil {
		return Trace{}, err
	}
	var trace Trace
	never, instant := 0, 0
	profiles := map[string]*replay.Profile{}
	for table.next() {
		created, deleted := table.number("creation_time", 0), table.number("deletion_time", 0)
		needs := placement.Resources{
			Cores: int(math.Ceil(table.number("cpu_milli", 0) / 1000)), GPUs: table.count("num_gpu", 0),
			MemoryBytes: int64(table.number("memory_mib", 0)) << 20,
		}
		share := table.number("gpu_milli", 0) / 1000
		if share > 1 {
			table.fault("gpu_milli", "is more than a whole GPU: write 1000 for each of num_gpu")
		}
		if table.text("scheduled_time") == "" {
			never++
			continue
		}
		if deleted <= table.number("scheduled_time", 0) {
			instant++
			continue
		}
		key := fmt.Sprint(needs.Cores, needs.GPUs, share)
		if profiles[key] == nil {
			profiles[key] = machines.everywhere(key, 1, needs, share)
		}
		trace.Jobs = append(trace.Jobs, replay.Job{
			Name: table.text("name"), User: table.text("qos"), Profile: profiles[key], Work: deleted - table.number("scheduled_time", 0),
			Arrives: created, Needs: needs, Utilization: share,
		})
	}
	trace.leaveOut(machines)
	trace.note("%d pods were never scheduled and %d had no time: they are left out.", never, instant)
	trace.note("Pods run as long on every machine, and the share of a GPU that they ask for counts as what they use: the trace has neither measured. Joules follow from the watts of the machines' file: estimates.")
	return trace, table.err
}
