package trace

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Machines is a cluster as its file describes it.
type Machines struct {
	Cluster replay.Cluster
	// Quotas are those of users, by name.
	Quotas map[string]pool.Quota
	types  map[string]MachineType
	order  []string
}

// MachineType is a type of machine in a file.
type MachineType struct {
	// GPUs, Cores and MemoryGiB are what a machine has; GPUMemoryGiB is that of
	// each GPU (0: not looked at).
	GPUs         int     `yaml:"gpus"`
	Cores        int     `yaml:"cores"`
	MemoryGiB    float64 `yaml:"memory_gib"`
	GPUMemoryGiB float64 `yaml:"gpu_memory_gib"`
	// IdleWatts is what the whole machine draws with nothing running on it, and
	// AsleepWatts what it draws asleep; WakeSeconds is how long it wakes up.
	IdleWatts   float64 `yaml:"idle_watts"`
	AsleepWatts float64 `yaml:"asleep_watts"`
	WakeSeconds float64 `yaml:"wake_seconds"`
	// GPUWatts and CoreWatts are what a GPU and a core add that work all of the
	// time, where the trace has no joules.
	GPUWatts  float64 `yaml:"busy_watts_per_gpu"`
	CoreWatts float64 `yaml:"busy_watts_per_core"`
	// Speed is how fast it is relative to what the trace was recorded on, where
	// the trace does not say; 1 when left out.
	Speed float64 `yaml:"speed"`
	// As is what the trace calls it; its own name when left out.
	As string `yaml:"as"`
	// Hosts are the machines of one's own that were of this type, in recorded
	// studies.
	Hosts []string `yaml:"hosts"`
}

type machinesFile struct {
	Types    map[string]MachineType `yaml:"types"`
	Machines []struct {
		Type  string `yaml:"type"`
		Count int    `yaml:"count"`
	} `yaml:"machines"`
	Quotas map[string]UserQuota `yaml:"quotas"`
}

const (
	// MaxMachinesBytes bounds a file of machines.
	MaxMachinesBytes = 1 << 20
	mostMachines     = 100_000
)

// ReadMachines reads a file that describes machines, YAML or JSON. One without
// machines describes types only, which may then leave their sizes to whatever says
// how many there are.
func ReadMachines(file string, data []byte) (Machines, error) {
	var read machinesFile
	if len(data) > MaxMachinesBytes {
		return Machines{}, problem.New(problem.Invalid, "%s has %d bytes: a file of machines has at most %d", file, len(data), MaxMachinesBytes)
	}
	if err := yaml.UnmarshalWithOptions(data, &read, yaml.Strict()); err != nil {
		return Machines{}, problem.New(problem.Invalid, "%s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	m := Machines{types: map[string]MachineType{}}
	if len(read.Types) == 0 {
		return m, problem.New(problem.Invalid, "%s: it has no types: describe machines as types: {name: {gpus: 8, cores: 64, idle_watts: 500, ...}}, and how many there are as machines: [{type: name, count: 4}]", file)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Types)) {
		if err := read.Types[name].check(); err != nil {
			return m, problem.New(problem.Invalid, "%s: types.%s.%w", file, name, err)
		}
		m.AddType(name, read.Types[name])
	}
	for i, one := range read.Machines {
		of, known := read.Types[one.Type]
		if !known {
			return m, problem.New(problem.Invalid, "%s: machines[%d].type is %q, which is none of the types", file, i, one.Type)
		}
		if of.GPUs+of.Cores == 0 {
			return m, problem.New(problem.Invalid, "%s: types.%s.gpus is 0 and cores 0: a machine has some of at least one", file, one.Type)
		}
		if one.Count < 1 || len(m.Cluster.Machines)+one.Count > mostMachines {
			return m, problem.New(problem.Invalid, "%s: machines[%d].count is %d: it must be at least 1, and all together at most %d", file, i, one.Count, mostMachines)
		}
		m.Add(one.Type, one.Count)
	}
	for _, user := range slices.Sorted(maps.Keys(read.Quotas)) {
		if err := read.Quotas[user].check(); err != nil {
			return m, problem.New(problem.Invalid, "%s: quotas.%s.%w", file, user, err)
		}
		if m.Quotas == nil {
			m.Quotas = map[string]pool.Quota{}
		}
		m.Quotas[user] = read.Quotas[user].quota()
	}
	return m, nil
}

func (t MachineType) check() error {
	if t.GPUs < 0 || t.Cores < 0 || t.GPUs > 1000 || t.Cores > 100_000 {
		return fmt.Errorf("gpus is %d and cores %d: neither may be below 0, nor above 1000 and 100000", t.GPUs, t.Cores)
	}
	for _, one := range []struct {
		name  string
		value float64
	}{
		{"memory_gib", t.MemoryGiB}, {"gpu_memory_gib", t.GPUMemoryGiB}, {"idle_watts", t.IdleWatts}, {"asleep_watts", t.AsleepWatts},
		{"wake_seconds", t.WakeSeconds}, {"busy_watts_per_gpu", t.GPUWatts}, {"busy_watts_per_core", t.CoreWatts}, {"speed", t.Speed},
	} {
		if !(one.value >= 0) || math.IsInf(one.value, 0) || one.value > 1e9 {
			return fmt.Errorf("%s is %g: it must be 0 or more", one.name, one.value)
		}
	}
	return nil
}

// AddType adds a type of machine.
func (m *Machines) AddType(name string, one MachineType) {
	if m.types == nil {
		m.types = map[string]MachineType{}
	}
	if one.Speed == 0 {
		one.Speed = 1
	}
	if one.As == "" {
		one.As = name
	}
	m.types[name] = one
	m.order = append(m.order, name)
	m.Cluster.Types = append(m.Cluster.Types, replay.Type{
		Name: name, Capacity: placement.Resources{Cores: one.Cores, GPUs: one.GPUs, MemoryBytes: gibibytes(one.MemoryGiB)},
		GPUMemoryBytes: gibibytes(one.GPUMemoryGiB), IdleWatts: one.IdleWatts, AsleepWatts: one.AsleepWatts, WakeSeconds: one.WakeSeconds,
	})
}

// Add adds machines of a type, which are called after it.
func (m *Machines) Add(name string, count int) {
	for range count {
		m.Cluster.Machines = append(m.Cluster.Machines, replay.Machine{Name: fmt.Sprintf("%s-%d", name, len(m.Cluster.Machines)), Type: name})
	}
}

func gibibytes(size float64) int64 { return int64(size * (1 << 30)) }

// joules is what so many seconds of work add on a machine of the type, by its
// file: an estimate.
func (t MachineType) joules(seconds float64, needs placement.Resources, utilization float64) float64 {
	return seconds * (float64(needs.GPUs)*utilization*t.GPUWatts + float64(needs.Cores)*t.CoreWatts)
}

// everywhere is a profile that takes so many seconds for a unit wherever there
// are the resources, by the speed of the types.
func (m Machines) everywhere(name string, seconds float64, needs placement.Resources, utilization float64) *replay.Profile {
	profile := &replay.Profile{Name: name, On: map[string]placement.Prediction{}}
	for _, kind := range m.order {
		one := m.types[kind]
		if one.GPUs >= needs.GPUs {
			took := seconds / one.Speed
			profile.On[kind] = placement.Prediction{Seconds: took, Joules: one.joules(took, needs, utilization)}
		}
	}
	return profile
}
