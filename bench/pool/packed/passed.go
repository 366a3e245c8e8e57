package packed

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/workers/gpushare/packing"
)

// Passes is how many jobs that came later may start before one that waits, on so
// many GPUs: MostPassed, or else as many as all of these hold at once. Negative: any
// number.
func (s Settings) Passes(gpus int) int {
	if s.MostPassed != 0 {
		return max(-1, s.MostPassed)
	}
	jobs := s.MostJobs
	if jobs <= 0 {
		jobs = packing.MostJobs
	}
	return jobs * max(1, gpus)
}

// Overdue reports whether a job was passed as often as may be.
func (s Settings) Overdue(passed, gpus int) bool {
	passes := s.Passes(gpus)
	return passes >= 0 && passed >= passes && passed > 0
}

// turns parts the jobs that are overdue, the one that was passed most often first,
// from the others.
func (s *site) turns(jobs []Job) (overdue, others []Job) {
	for _, job := range jobs {
		if s.settings.Overdue(job.Passed, len(s.gpus)) {
			overdue = append(overdue, job)
		} else {
			others = append(others, job)
		}
	}
	slices.SortStableFunc(overdue, func(a, b Job) int { return cmp.Compare(b.Passed, a.Passed) })
	return overdue, others
}

// keep closes a GPU for a job that has no room: of those that would hold it, the one
// with the fewest jobs, the first of equal ones. Since nothing joins these, no other
// GPU is chosen instead until one has fewer still, which is so at most as often as
// there are jobs on it; so the job waits until what runs has ended, and no longer.
func (s *site) keep(job Job) {
	best := -1
	for at, gpu := range s.gpus {
		if whole := s.names[at].MemoryBytes; whole > 0 && job.MemoryBytes > whole {
			continue
		}
		if best < 0 || gpu.Jobs < s.gpus[best].Jobs {
			best = at
		}
	}
	if best >= 0 {
		s.gpus[best].Closed = true
	}
}
