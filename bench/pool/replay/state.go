package replay

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/workers/placement"
)

// State is what a policy sees: what is free, what runs and what waits now. It
// is only for reading.
type State struct {
	now     float64
	types   []Type
	hosts   []host
	kinds   map[string]int // the place of a type
	names   map[string]int // the place of a machine
	groups  []*Group
	byFree  map[groupKey]*Group
	live    []*Running
	waiting *queue
	users   users
	// releases counts how often something became free.
	releases int
	most     int // jobs on a GPU
	move     placement.Prediction
	// takenGPUs have jobs on them, takenCores are those of jobs.
	takenGPUs, takenCores int
}

// host is a machine of the cluster.
type host struct {
	Machine
	kind  int
	free  placement.Resources // its GPUs are those that no job is on
	gpus  [][]*Running
	busy  []float64 // how busy each GPU is, from 0 to 1
	jobs  int
	power power
}

type power int

const (
	awake power = iota
	asleep
	waking
)

type groupKey struct {
	kind int
	free placement.Resources
}

// Group is awake machines of one type with the same resources free. Its GPUs
// are those that no job is on.
type Group struct {
	Type     *Type
	Free     placement.Resources
	Machines []int // places of the machines, the first one first
	key      groupKey
	place    int
}

// Running is a job that runs.
type Running struct {
	*Job
	// Machine is the place of its machine, GPUs which of the machine's it is on.
	Machine int
	GPUs    []int
	// Began is when it started here, in seconds of the trace.
	Began float64

	sequence int
	place    int // in State.live
	left     float64
	from     *Waiting
	unit     placement.Prediction
	rate     float64 // units a second
	since    float64
	version  int  // of its speed, which says when it ends
	life     int  // of its stay on this machine
	paused   bool // it loads its checkpoint
	starved  bool // it is out of memory and will fail
	joules   float64
	worked   float64 // seconds alone that it has done here
	busy     float64 // share of each GPU that it keeps busy now
	shared   bool    // it was not alone all of the time
}

// FirstBegan is when it first started anywhere, in seconds of the trace.
func (r *Running) FirstBegan() float64 { return r.from.first }

// KeepsAlone reports whether it has to have GPUs of its own; see [Waiting].
func (r *Running) KeepsAlone() bool { return r.from.Alone }

// Remaining is the share of its work that is left.
func (s *State) Remaining(one *Running) float64 {
	left := one.left - (s.now-one.since)*one.rate
	return min(1, max(0, left/one.from.whole))
}

// Now is in seconds since the trace began.
func (s *State) Now() float64 { return s.now }

// Machines is how many there are. They are known by their place, from 0.
func (s *State) Machines() int { return len(s.hosts) }

// Name is a machine's.
func (s *State) Name(machine int) string { return s.hosts[machine].Name }

// Type is a machine's.
func (s *State) Type(machine int) *Type { return &s.types[s.hosts[machine].kind] }

// Place is that of the machine with the name.
func (s *State) Place(name string) (machine int, known bool) {
	machine, known = s.names[name]
	return machine, known
}

// TypeNamed is the type with the name, which a machine of the cluster has.
func (s *State) TypeNamed(name string) *Type { return &s.types[s.kinds[name]] }

// Jobs is how many run on a machine.
func (s *State) Jobs(machine int) int { return s.hosts[machine].jobs }

// JobsPerGPU is how many jobs may run on a GPU at the same time.
func (s *State) JobsPerGPU() int { return s.most }

// Free is what is free of a machine; GPUs are those that no job is on.
func (s *State) Free(machine int) placement.Resources { return s.hosts[machine].free }

// Awake reports whether a machine takes jobs now.
func (s *State) Awake(machine int) bool { return s.hosts[machine].power == awake }

// On has the jobs on a GPU of a machine.
func (s *State) On(machine, gpu int) []*Running { return s.hosts[machine].gpus[gpu] }

// GPUs is how many a machine has.
func (s *State) GPUs(machine int) int { return len(s.hosts[machine].gpus) }

// Running are the jobs that run, in the order in which they arrived.
func (s *State) Running() []*Running {
	list := slices.Clone(s.live)
	slices.SortFunc(list, func(a, b *Running) int { return cmp.Compare(a.sequence, b.sequence) })
	return list
}

// Waiting has one of the jobs that wait of each kind, the first, in their order:
// what does not fit for it fits for none of its kind.
func (s *State) Waiting() []*Waiting { return s.waiting.heads() }

// WaitingJobs is how many wait, WaitingGPUs how many GPUs they want.
func (s *State) WaitingJobs() int { return s.waiting.count }

// Wanted is how many GPUs are wanted now: by what runs, as many as it is on, and
// by what waits.
func (s *State) Wanted() int {
	wanted := s.waiting.gpus
	for i := range s.hosts {
		wanted += len(s.hosts[i].gpus) - s.hosts[i].free.GPUs
	}
	return wanted
}

// Rooms are the groups of machines that have room for the job by itself, on GPUs
// of its own.
func (s *State) Rooms(job *Waiting) []*Group {
	var rooms []*Group
	for _, one := range s.groups {
		if one.Free.Holds(job.Needs) && job.RunsOn(one.Type) {
			rooms = append(rooms, one)
		}
	}
	return rooms
}

// RunsOn reports whether the profile knows the type, and its GPUs have the memory.
func (j *Job) RunsOn(of *Type) bool {
	_, known := j.Profile.On[of.Name]
	return known && (of.GPUMemoryBytes == 0 || j.GPUMemoryBytes <= of.GPUMemoryBytes)
}

// leave takes a machine out of its group, before what is free of it changes.
func (s *State) leave(at int) {
	one := &s.hosts[at]
	if one.power != awake {
		return
	}
	group := s.byFree[groupKey{one.kind, one.free}]
	place, _ := slices.BinarySearch(group.Machines, at)
	group.Machines = slices.Delete(group.Machines, place, place+1)
	if len(group.Machines) == 0 {
		last := s.groups[len(s.groups)-1]
		s.groups[group.place], last.place = last, group.place
		s.groups = s.groups[:len(s.groups)-1]
		delete(s.byFree, group.key)
	}
}

// join puts it into the group that it belongs to.
func (s *State) join(at int) {
	one := &s.hosts[at]
	if one.power != awake {
		return
	}
	key := groupKey{one.kind, one.free}
	group, known := s.byFree[key]
	if !known {
		group = &Group{Type: &s.types[one.kind], Free: one.free, key: key, place: len(s.groups)}
		s.byFree[key] = group
		s.groups = append(s.groups, group)
	}
	place, _ := slices.BinarySearch(group.Machines, at)
	group.Machines = slices.Insert(group.Machines, place, at)
}

// fits says why a job cannot go to a spot; empty if it can. Moves are asked
// with the job still where it was.
func (s *State) fits(job *Job, spot Spot, alone bool) string {
	if spot.Machine < 0 || spot.Machine >= len(s.hosts) {
		return "there is no such machine"
	}
	one := &s.hosts[spot.Machine]
	needs := job.Needs
	needs.GPUs = 0
	switch {
	case one.power != awake:
		return "it is not awake"
	case !job.RunsOn(&s.types[one.kind]):
		return "the job does not run on its type"
	case !one.free.Holds(needs):
		return "its cores or memory do not suffice"
	case spot.GPUs == nil && one.free.GPUs < job.Needs.GPUs:
		return "it has too few free GPUs"
	case spot.GPUs != nil && len(spot.GPUs) != job.Needs.GPUs:
		return "that is not the number of GPUs the job needs"
	}
	for i, gpu := range spot.GPUs {
		switch {
		case gpu < 0 || gpu >= len(one.gpus) || slices.Contains(spot.GPUs[:i], gpu):
			return "there is no such GPU, or it is named twice"
		case len(one.gpus[gpu]) >= s.most:
			return "a GPU has as many jobs as may share it"
		case len(one.gpus[gpu]) > 0 && alone:
			return "the job has to be alone on its GPUs"
		}
		if slices.ContainsFunc(one.gpus[gpu], func(other *Running) bool { return other.from.Alone }) {
			return "a job on a GPU has to be alone"
		}
	}
	return ""
}

// occupy puts a job on its machine and GPUs, and says on which ones.
func (s *State) occupy(one *Running, spot Spot) {
	at := &s.hosts[spot.Machine]
	gpus := slices.Clone(spot.GPUs)
	if gpus == nil {
		for gpu := range at.gpus {
			if len(gpus) < one.Needs.GPUs && len(at.gpus[gpu]) == 0 {
				gpus = append(gpus, gpu)
			}
		}
	}
	s.leave(spot.Machine)
	for _, gpu := range gpus {
		if len(at.gpus[gpu]) == 0 {
			at.free.GPUs--
			s.takenGPUs++
		}
		at.gpus[gpu] = append(at.gpus[gpu], one)
	}
	at.free.Cores -= one.Needs.Cores
	s.takenCores += one.Needs.Cores
	at.free.MemoryBytes -= one.Needs.MemoryBytes
	at.jobs++
	s.join(spot.Machine)
	one.Machine, one.GPUs = spot.Machine, gpus
}

// vacate takes a job off its machine.
func (s *State) vacate(one *Running) {
	at := &s.hosts[one.Machine]
	s.leave(one.Machine)
	for _, gpu := range one.GPUs {
		place := slices.Index(at.gpus[gpu], one)
		at.gpus[gpu] = slices.Delete(at.gpus[gpu], place, place+1)
		if len(at.gpus[gpu]) == 0 {
			at.free.GPUs++
			s.takenGPUs--
		}
	}
	at.free.Cores += one.Needs.Cores
	s.takenCores -= one.Needs.Cores
	at.free.MemoryBytes += one.Needs.MemoryBytes
	at.jobs--
	s.join(one.Machine)
	s.releases++
}

// MoveCost is what it takes to bring a job to where it goes on.
func (s *State) MoveCost() placement.Prediction { return s.move }
