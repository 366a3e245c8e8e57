// Package packing answers: which waiting jobs start now, and on which GPU,
// where several may share one?
//
// It is the scheduler of Yeung, Borowiec, Friday, Harper and Garraghan (Towards
// GPU Utilization Prediction for Cloud Deep Learning, HotCloud 2020, section 6):
// first-fit decreasing by the utilization that was predicted before a job ever
// ran ([Proactive]). A job that ran out of memory comes back with the need that
// was learned ([Resubmit]).
//
// Its one invariant: what shares a GPU fits into its memory and under the bounds
// of utilization and of jobs, by what is said of the jobs; only a job alone may
// exceed the bound of utilization. It does no I/O and knows no clock.
package packing

import (
	"cmp"
	"math"
	"slices"
)

// Job is what waits for a GPU, or a share of one.
type Job struct {
	Name string
	// Utilization is the share of the time in which the job keeps one GPU busy
	// when it has it to itself, from 0 to 1: predicted, or seen. What is
	// negative, above 1 or not a number is unknown: such a job runs alone.
	Utilization float64
	// MemoryBytes is the most that it holds of a GPU's memory; a job for which
	// that is not known (0 or less) runs alone.
	MemoryBytes int64
	// Passed is how many jobs that came later have started since it waits: see
	// Settings.MostPassed.
	Passed int
}

// GPU is a GPU with what it holds already.
type GPU struct {
	Name string
	// Utilization is the sum of those of the jobs on it, FreeBytes what is left
	// of its memory by their needs, Jobs how many there are.
	Utilization float64
	FreeBytes   int64
	Jobs        int
	// MemoryBytes is what it has in all; 0: enough for every job.
	MemoryBytes int64
	// Residents are the names of the jobs on it, for Settings.Refuses; they may
	// be left out where nothing is refused.
	Residents []string
	// Closed says that nothing may join what runs there: it is observed alone
	// now, or is a job of which nothing is known.
	Closed bool
}

// Placement is a job that starts.
type Placement struct {
	Job, GPU string
	// Alone says that nothing may join it at the moment: nothing is known of it.
	Alone bool
}

// Settings bound what is shared. The zero value is the paper's.
type Settings struct {
	// MostJobs is how many jobs share a GPU at most; 3 when 0.
	MostJobs int
	// MostUtilization bounds the sum of utilizations on a shared GPU; 1 when 0.
	// Above 1, jobs are expected to fill each other's gaps and to slow down.
	MostUtilization float64
	// MostPassed bounds how many jobs that came later start before one that waits,
	// since they are larger or fill gaps that it does not fit into: one that was
	// passed so often goes first, and where it has no room a GPU is kept for it, which
	// nothing joins. As many as all GPUs hold at once when 0; any number, as in the
	// paper, when negative.
	MostPassed int
	// Refuses says that two jobs, by name, must not share a GPU, as when they are
	// predicted to slow each other down too much; nil refuses nothing. It is
	// asked with the waiting job first.
	Refuses func(waiting, resident string) bool
	// Prefers says how good it is that two jobs, by name, share a GPU, as by how
	// much they do together: of the GPUs that have room beside others, a job gets
	// the one whose worst companion is best, the first of equal ones. nil takes the
	// first that has room.
	Prefers func(waiting, resident string) float64
}

// MostJobs is how many jobs share a GPU at most, where nothing else is said.
const MostJobs = 3

const (
	mostUtilization = 1.0
	// rounding is by how much a sum of utilizations may be above its bound: a
	// half and a half is one.
	rounding = 1e-9
)

func (s Settings) complete() Settings {
	if s.MostJobs <= 0 {
		s.MostJobs = MostJobs
	}
	if !(s.MostUtilization > 0) {
		s.MostUtilization = mostUtilization
	}
	return s
}

// Proactive places waiting jobs by what is predicted of them: those that need
// most of a GPU first, each on the first GPU that has room. The paper calls that
// a modified first-fit decreasing and leaves the modification open; ours is that
// idle GPUs are tried before shared ones, so that the
// largest jobs start alone and small ones fill what they leave. Jobs of one
// utilization go in the order in which they are given. What does not fit waits.
//
// First-fit decreasing alone lets a large job wait for as long as small ones come and
// fill what others leave, and a small one for as long as larger ones come. What was
// passed too often (see Settings.MostPassed) goes before all others therefore, and a
// GPU is kept for the first of these that has no room.
func Proactive(waiting []Job, gpus []GPU, settings Settings) []Placement {
	s := newSite(gpus, settings)
	overdue, others := s.turns(waiting)
	placed := s.pack(overdue)
	for _, job := range overdue {
		if !slices.ContainsFunc(placed, func(p Placement) bool { return p.Job == job.Name }) {
			s.keep(job)
			break
		}
	}
	return append(placed, s.pack(falling(others))...)
}

// falling are the jobs in the order of first-fit decreasing.
func falling(jobs []Job) []Job {
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(b.share(), a.share()) })
	return jobs
}

// share is the utilization that a job counts with: a whole GPU where it is not
// known.
func (j Job) share() float64 {
	if !j.known() {
		return 1
	}
	return j.Utilization
}

func (j Job) known() bool {
	return j.Utilization >= 0 && j.Utilization <= 1 && !math.IsNaN(j.Utilization) && j.MemoryBytes > 0
}

// site is the GPUs as they are filled.
type site struct {
	settings Settings
	gpus     []GPU
}

func newSite(gpus []GPU, settings Settings) *site {
	s := &site{settings: settings.complete(), gpus: slices.Clone(gpus)}
	for i := range s.gpus {
		s.gpus[i].Residents = slices.Clone(s.gpus[i].Residents)
	}
	return s
}

// pack puts each job on the first GPU with room.
func (s *site) pack(jobs []Job) []Placement {
	var placed []Placement
	for _, job := range jobs {
		at := s.first(&job, s.alone)
		if at < 0 {
			at = s.beside(&job)
		}
		if at >= 0 {
			placed = append(placed, s.take(at, job, !job.known()))
		}
	}
	return placed
}

func (s *site) first(job *Job, fits func(*Job, *GPU) bool) int {
	for at := range s.gpus {
		if fits(job, &s.gpus[at]) {
			return at
		}
	}
	return -1
}

// beside is the GPU on which a job joins others; negative if there is none.
func (s *site) beside(job *Job) int {
	if s.settings.Prefers == nil {
		return s.first(job, s.joins)
	}
	best, most := -1, math.Inf(-1)
	for at := range s.gpus {
		gpu := &s.gpus[at]
		if !s.joins(job, gpu) {
			continue
		}
		worst := math.Inf(1)
		for _, resident := range gpu.Residents {
			worst = min(worst, s.settings.Prefers(job.Name, resident))
		}
		if best < 0 || worst > most {
			best, most = at, worst
		}
	}
	return best
}

// alone reports whether the job has the GPU to itself there.
func (s *site) alone(job *Job, gpu *GPU) bool {
	return gpu.Jobs == 0 && !gpu.Closed && job.MemoryBytes <= gpu.FreeBytes
}

// joins reports whether the job may run beside what is there.
func (s *site) joins(job *Job, gpu *GPU) bool {
	return gpu.Jobs > 0 && !gpu.Closed && gpu.Jobs < s.settings.MostJobs && job.known() &&
		job.MemoryBytes <= gpu.FreeBytes && gpu.Utilization+job.Utilization <= s.settings.MostUtilization+rounding &&
		!s.refused(job, gpu)
}

func (s *site) refused(job *Job, gpu *GPU) bool {
	return s.settings.Refuses != nil && slices.ContainsFunc(gpu.Residents, func(resident string) bool {
		return s.settings.Refuses(job.Name, resident)
	})
}

func (s *site) take(at int, job Job, alone bool) Placement {
	gpu := &s.gpus[at]
	gpu.Jobs++
	gpu.Utilization += job.share()
	gpu.FreeBytes -= max(job.MemoryBytes, 0)
	gpu.Residents = append(gpu.Residents, job.Name)
	gpu.Closed = alone
	return Placement{Job: job.Name, GPU: gpu.Name, Alone: alone}
}
