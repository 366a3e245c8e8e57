package replay

import (
	"cmp"
	"slices"
)

// starts counts the jobs that have started, by the order in which they came (a
// Fenwick tree: Fenwick, Software: Practice and Experience 24(3), 1994).
type starts struct {
	tree  []int
	total int
}

func (s *starts) add(sequence int) {
	s.total++
	for at := sequence + 1; at < len(s.tree); at += at & -at {
		s.tree[at]++
	}
}

// after is how many have started that came after that one.
func (s *starts) after(sequence int) int {
	count := s.total
	for at := sequence + 1; at > 0; at -= at & -at {
		count -= s.tree[at]
	}
	return count
}

// passed is how many jobs that came later have started since it waits this time.
func (q *queue) passed(one *Waiting) int {
	if q.policy.MostPassed == nil {
		return 0
	}
	return q.started.after(one.sequence) - one.before
}

// overdue reports whether a job was passed as often as the policy lets it be.
func (q *queue) overdue(one *Waiting) bool {
	if q.policy.MostPassed == nil {
		return false
	}
	most, passed := q.passes, q.passed(one)
	return most >= 0 && passed >= most && passed > 0
}

// sooner orders what waits: what is overdue first, and of that what was passed most
// often.
func (q *queue) sooner(a, b *Waiting) int {
	if q.policy.MostPassed == nil {
		return q.before(a, b)
	}
	first, second := q.overdue(a), q.overdue(b)
	switch {
	case first && second:
		return cmp.Or(cmp.Compare(q.passed(b), q.passed(a)), cmp.Compare(a.sequence, b.sequence))
	case first:
		return -1
	case second:
		return 1
	}
	return q.before(a, b)
}

// Overdue are the first jobs of each kind that were passed as often as may be, the
// one that was passed most often first.
func (s *State) Overdue() (list []*Waiting) {
	if s.waiting.policy.MostPassed == nil {
		return nil
	}
	for _, one := range s.waiting.classes {
		if s.waiting.overdue(one.jobs[0]) {
			list = append(list, one.jobs[0])
		}
	}
	slices.SortFunc(list, s.waiting.sooner)
	return list
}

// Cleared is the machine that is kept for the first overdue job, if that cannot share
// GPUs or needs several: of those that it fits on when they are empty, the one with
// the fewest jobs. Negative: none is.
func (s *State) Cleared(overdue []*Waiting) (machine int, whose *Waiting) {
	if len(overdue) == 0 || overdue[0].Shares() {
		return -1, nil
	}
	first, best := overdue[0], -1
	for at := range s.hosts {
		if of := s.Type(at); s.Awake(at) && of.Capacity.Holds(first.Needs) && first.RunsOn(of) && (best < 0 || s.hosts[at].jobs < s.hosts[best].jobs) {
			best = at
		}
	}
	return best, first
}

// Shares reports whether it may share the GPU that it needs.
func (w *Waiting) Shares() bool { return w.Needs.GPUs == 1 && !w.Alone }

// Passed is how many jobs that came later have started since the job waits.
func (s *State) Passed(job *Waiting) int { return s.waiting.passed(job) }

// MostPassed is how many may pass a job, by the policy; see [Policy].
func (s *State) MostPassed() int { return s.waiting.passes }
