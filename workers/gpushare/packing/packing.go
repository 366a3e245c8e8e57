// Package packing answers: which GPU does a training get that waits, where several may
// share one?
//
// It is the rule of Yeung, Borowiec, Friday, Harper and Garraghan (Towards GPU
// Utilization Prediction for Cloud Deep Learning, HotCloud 2020, section 6) for one
// training ([Place]): first fit by the utilization that was predicted before it ever ran.
// The paper leaves its modification of first-fit decreasing open; ours is that idle GPUs
// are tried before shared ones. A training that ran out of memory comes back with the
// need that was learned ([Resubmit]).
//
// Its one invariant: what shares a GPU fits into its memory and under the bounds
// of utilization and of jobs, by what is said of the jobs; only a job alone may
// exceed the bound of utilization. It does no I/O and knows no clock.
package packing

import (
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
}

// Known reports whether enough is known of the job to share a GPU.
func (j Job) Known() bool {
	return j.Utilization >= 0 && j.Utilization <= 1 && !math.IsNaN(j.Utilization) && j.MemoryBytes > 0
}

// GPU is a GPU with what it holds already.
type GPU struct {
	// Utilization is the sum of those of the jobs on it, FreeBytes what is left
	// of its memory by their needs, Jobs how many there are.
	Utilization float64
	FreeBytes   int64
	Jobs        int
	// Residents are the names of the jobs on it, for Settings.Refuses; they may
	// be left out where nothing is refused.
	Residents []string
	// Closed says that nothing may join what runs there: it is observed alone
	// now, or is a job of which nothing is known.
	Closed bool
}

// Settings bound what is shared. The zero value is the paper's.
type Settings struct {
	// MostJobs is how many jobs share a GPU at most; 3 when 0.
	MostJobs int
	// MostUtilization bounds the sum of utilizations on a shared GPU; 1 when 0.
	// Above 1, jobs are expected to fill each other's gaps and to slow down.
	MostUtilization float64
	// Refuses says that the job must not share a GPU with another, by name, as when
	// they are predicted to slow each other down too much; nil refuses nothing.
	Refuses func(resident string) bool
	// Prefers says how good it is that the job shares a GPU with another, by name, as
	// by how much they do together: of the GPUs that have room beside others, it gets
	// the one whose worst companion is best, the first of equal ones. nil takes the
	// first that has room.
	Prefers func(resident string) float64
}

// MostJobs is how many jobs share a GPU at most, where nothing else is said.
const MostJobs = 3

// rounding is by how much a sum of utilizations may be above its bound: a half and a
// half is one.
const rounding = 1e-9

// Place is the GPU that the job gets, by its place in the list: the first idle one that
// has the memory, else one on which it fits beside others. It does not fit where there
// is none.
func Place(job Job, gpus []GPU, settings Settings) (at int, fits bool) {
	for at, gpu := range gpus {
		if gpu.Jobs == 0 && !gpu.Closed && job.MemoryBytes <= gpu.FreeBytes {
			return at, true
		}
	}
	best := math.Inf(-1)
	for place, gpu := range gpus {
		if !settings.join(job, gpu) {
			continue
		}
		if settings.Prefers == nil {
			return place, true
		}
		worst := math.Inf(1)
		for _, resident := range gpu.Residents {
			worst = min(worst, settings.Prefers(resident))
		}
		if !fits || worst > best {
			at, best, fits = place, worst, true
		}
	}
	return at, fits
}

// join reports whether the job may run beside what is on the GPU.
func (s Settings) join(job Job, gpu GPU) bool {
	jobs, utilization := s.MostJobs, s.MostUtilization
	if jobs <= 0 {
		jobs = MostJobs
	}
	if !(utilization > 0) {
		utilization = 1
	}
	return gpu.Jobs > 0 && !gpu.Closed && gpu.Jobs < jobs && job.Known() &&
		job.MemoryBytes <= gpu.FreeBytes && gpu.Utilization+job.Utilization <= utilization+rounding &&
		!(s.Refuses != nil && slices.ContainsFunc(gpu.Residents, s.Refuses))
}
