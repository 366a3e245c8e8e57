// Package packed places several waiting jobs on GPUs at once, as the scheduler of Yeung,
// Borowiec, Friday, Harper and Garraghan does (Towards GPU Utilization Prediction for
// Cloud Deep Learning, HotCloud 2020, section 6). Each job gets its GPU by the server's
// own rule (workers/gpushare/packing).
package packed

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/workers/gpushare/packing"
)

// Job is what waits for a GPU, or a share of one: a [packing.Job].
type Job struct {
	Name        string
	Utilization float64
	MemoryBytes int64
	// Passed is how many jobs that came later have started since it waits: see
	// Settings.MostPassed.
	Passed int
}

// job is the job by itself.
func (j Job) job() packing.Job {
	return packing.Job{Name: j.Name, Utilization: j.Utilization, MemoryBytes: j.MemoryBytes}
}

// GPU is a GPU with what it holds already: a [packing.GPU] with a name.
type GPU struct {
	Name        string
	Utilization float64
	FreeBytes   int64
	Jobs        int
	Residents   []string
	Closed      bool
	// MemoryBytes is what it has in all; 0: enough for every job.
	MemoryBytes int64
}

// Placement is a job that starts.
type Placement struct {
	Job, GPU string
	// Alone says that nothing may join it at the moment: nothing is known of it.
	Alone bool
}

// Settings bound what is shared. The zero value is the paper's.
type Settings struct {
	// MostJobs and MostUtilization are those of [packing.Settings].
	MostJobs        int
	MostUtilization float64
	// MostPassed bounds how many jobs that came later start before one that waits,
	// since they are larger or fill gaps that it does not fit into: one that was
	// passed so often goes first, and where it has no room a GPU is kept for it, which
	// nothing joins. As many as all GPUs hold at once when 0; any number, as in the
	// paper, when negative.
	MostPassed int
	// Refuses and Prefers are those of [packing.Settings], asked with the waiting job
	// first.
	Refuses func(waiting, resident string) bool
	Prefers func(waiting, resident string) float64
}

// of are the settings for one job.
func (s Settings) of(job string) packing.Settings {
	one := packing.Settings{MostJobs: s.MostJobs, MostUtilization: s.MostUtilization}
	if s.Refuses != nil {
		one.Refuses = func(resident string) bool { return s.Refuses(job, resident) }
	}
	if s.Prefers != nil {
		one.Prefers = func(resident string) float64 { return s.Prefers(job, resident) }
	}
	return one
}

// Proactive places waiting jobs by what is predicted of them: those that need
// most of a GPU first, so that the largest jobs start alone and small ones fill what
// they leave. Jobs of one utilization go in the order in which they are given. What does
// not fit waits.
//
// First-fit decreasing alone lets a large job wait for as long as small ones come and
// fill what others leave, and a small one for as long as larger ones come. What was
// passed too often (see Settings.MostPassed) goes before all others therefore, and a
// GPU is kept for the first of these that has no room.
func Proactive(waiting []Job, gpus []GPU, settings Settings) []Placement {
	s := &site{settings: settings, names: gpus}
	for _, one := range gpus {
		s.gpus = append(s.gpus, packing.GPU{Utilization: one.Utilization, FreeBytes: one.FreeBytes, Jobs: one.Jobs, Residents: slices.Clone(one.Residents), Closed: one.Closed})
	}
	overdue, others := s.turns(waiting)
	placed := s.pack(overdue)
	for _, job := range overdue {
		if !slices.ContainsFunc(placed, func(p Placement) bool { return p.Job == job.Name }) {
			s.keep(job)
			break
		}
	}
	slices.SortStableFunc(others, func(a, b Job) int { return cmp.Compare(share(b), share(a)) })
	return append(placed, s.pack(others)...)
}

// share is the utilization that a job counts with: a whole GPU where it is not
// known.
func share(j Job) float64 {
	if !j.job().Known() {
		return 1
	}
	return j.Utilization
}

// site is the GPUs as they are filled.
type site struct {
	settings Settings
	names    []GPU
	gpus     []packing.GPU
}

// pack puts each job on its GPU.
func (s *site) pack(jobs []Job) []Placement {
	var placed []Placement
	for _, job := range jobs {
		at, fits := packing.Place(job.job(), s.gpus, s.settings.of(job.Name))
		if !fits {
			continue
		}
		gpu := &s.gpus[at]
		gpu.Jobs++
		gpu.Utilization += share(job)
		gpu.FreeBytes -= max(job.MemoryBytes, 0)
		gpu.Residents = append(gpu.Residents, job.Name)
		gpu.Closed = !job.job().Known()
		placed = append(placed, Placement{Job: job.Name, GPU: s.names[at].Name, Alone: gpu.Closed})
	}
	return placed
}
