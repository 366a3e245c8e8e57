package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/placement"
)

// Type is what machines have in common: a job takes the same on each of a type.
type Type struct {
	Name     string
	Capacity placement.Resources
	// GPUMemoryBytes is that of each GPU; 0: not looked at.
	GPUMemoryBytes int64
	// IdleWatts is what an awake machine draws with nothing running on it, and
	// AsleepWatts what it draws asleep.
	IdleWatts, AsleepWatts float64
	// WakeSeconds is how long it takes to be there again, at IdleWatts.
	WakeSeconds float64
}

// Machine is one of a type.
type Machine struct {
	Name, Type string
}

// Cluster is the machines that jobs run on.
type Cluster struct {
	Types    []Type
	Machines []Machine
}

// Check names the first thing that cannot be.
func (c Cluster) Check() error {
	types := map[string]bool{}
	for _, one := range c.Types {
		watts := []float64{one.IdleWatts, one.AsleepWatts, one.WakeSeconds}
		switch {
		case one.Name == "":
			return fmt.Errorf("a type of machine has no name")
		case types[one.Name]:
			return fmt.Errorf("two types of machines are called %s", one.Name)
		case one.Capacity.Cores < 0 || one.Capacity.GPUs < 0 || one.Capacity.MemoryBytes < 0 || one.GPUMemoryBytes < 0:
			return fmt.Errorf("type %s has %+v and %d bytes of GPU memory: none may be negative", one.Name, one.Capacity, one.GPUMemoryBytes)
		case slices.ContainsFunc(watts, func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) }):
			return fmt.Errorf("type %s draws %g W idle and %g W asleep and wakes in %g s: all must be 0 or more", one.Name, one.IdleWatts, one.AsleepWatts, one.WakeSeconds)
		}
		types[one.Name] = true
	}
	names := map[string]bool{}
	for _, one := range c.Machines {
		switch {
		case one.Name == "":
			return fmt.Errorf("a machine of type %s has no name", one.Type)
		case names[one.Name]:
			return fmt.Errorf("two machines are called %s", one.Name)
		case !types[one.Type]:
			return fmt.Errorf("machine %s is of the type %s, which is not described: the types are %v", one.Name, one.Type, slices.Sorted(maps.Keys(types)))
		}
		names[one.Name] = true
	}
	if len(c.Machines) == 0 {
		return fmt.Errorf("the cluster has no machines")
	}
	return nil
}

// has reports whether there is a machine of the type.
func (c Cluster) has(name string) bool {
	return slices.ContainsFunc(c.Machines, func(one Machine) bool { return one.Type == name })
}

// OneOfEach is a cluster with one machine of each type that there are machines of:
// what can run at all can run there.
func (c Cluster) OneOfEach() Cluster {
	there := map[string]bool{}
	for _, one := range c.Machines {
		there[one.Type] = true
	}
	var types []Type
	var machines []Machine
	for _, one := range c.Types {
		if there[one.Name] {
			types, machines = append(types, one), append(machines, Machine{Name: one.Name, Type: one.Name})
		}
	}
	return Cluster{Types: types, Machines: machines}
}

func (p *Profile) types() []string { return slices.Sorted(maps.Keys(p.On)) }

func checkJobs(cluster Cluster, jobs []Job) error {
	if len(jobs) == 0 {
		return fmt.Errorf("the trace has no jobs")
	}
	small := cluster.OneOfEach() // one machine of each type says the same, sooner
	names := make(map[string]bool, len(jobs))
	for i := range jobs {
		if err := jobs[i].check(small); err != nil {
			return err
		}
		if names[jobs[i].Name] {
			return fmt.Errorf("two jobs are called %s", jobs[i].Name)
		}
		names[jobs[i].Name] = true
	}
	return nil
}
