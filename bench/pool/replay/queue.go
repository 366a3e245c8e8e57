package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Waiting is a job that waits, for the first time or again.
type Waiting struct {
	*Job
	// Left is the work that there is still to do.
	Left float64
	// Alone says that it ran out of memory beside others and has to have GPUs of
	// its own.
	Alone bool
	// Since is when it began to wait this time, in seconds of the trace.
	Since float64

	sequence int
	before   int     // jobs after it that had started when it began to wait
	first    float64 // when it began to run; negative before
	waited   float64
	whole    float64 // its work, without what is dropped
	moved    bool    // it has a checkpoint to load
	joules   float64
	class    *class
}

// classKey is what makes jobs alike: where one does not fit, none does.
type classKey struct {
	priority int
	needs    placement.Resources
	memory   int64
	profile  *Profile
	claim    Claim
	alone    bool
	user     string // where users take turns or have quotas
}

// class is jobs that are alike, in their order.
type class struct {
	key     classKey
	jobs    []*Waiting
	blocked int // the releases at which it found no room; -1: never
	place   int
}

// queue is what waits, by class.
type queue struct {
	policy  *Policy
	classes []*class
	byKey   map[classKey]*class
	count   int
	gpus    int
	users   *users
	bounded bool // some user has a quota
	started starts
	passes  int                // see Policy.MostPassed
	running map[string]int     // by user
	came    map[string]float64 // when a user's first job arrived
}

func newQueue(policy *Policy) *queue {
	return &queue{policy: policy, byKey: map[classKey]*class{}, running: map[string]int{}, came: map[string]float64{}}
}

func (q *queue) before(a, b *Waiting) int {
	if q.policy.Order != nil {
		if c := q.policy.Order(a, b); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.sequence, b.sequence)
}

func (q *queue) push(one *Waiting) {
	key := classKey{priority: one.Priority, needs: one.Needs, memory: one.GPUMemoryBytes, profile: one.Profile, alone: one.Alone}
	if q.policy.Shares {
		key.claim = one.Claim()
	}
	q.users.by[one.User].waiting++
	if q.policy.Turns || q.bounded {
		key.user = one.User
	}
	if q.policy.Turns {
		if _, known := q.came[one.User]; !known {
			q.came[one.User] = one.Arrives
		}
	}
	of, known := q.byKey[key]
	if !known {
		of = &class{key: key, blocked: -1}
		q.byKey[key] = of
	}
	if len(of.jobs) == 0 {
		of.place = len(q.classes)
		q.classes = append(q.classes, of)
	}
	place, _ := slices.BinarySearchFunc(of.jobs, one, q.before)
	of.jobs = slices.Insert(of.jobs, place, one)
	one.class = of
	one.before = 0
	one.before = q.passed(one)
	q.count++
	q.gpus += one.Needs.GPUs
}

// pop takes the first of a class.
func (q *queue) pop(one *Waiting) {
	of := one.class
	q.users.by[one.User].waiting--
	of.jobs = of.jobs[1:]
	if len(of.jobs) == 0 {
		last := q.classes[len(q.classes)-1]
		q.classes[of.place], last.place = last, of.place
		q.classes = q.classes[:len(q.classes)-1]
	}
	q.count--
	q.gpus -= one.Needs.GPUs
}

// next is the job that the policy asks about next: the first of those that may
// have room, given how often something became free; nil if there is none.
func (q *queue) next(releases int) *Waiting {
	var best *Waiting
	if q.policy.Turns {
		return q.turn(releases)
	}
	for _, one := range q.classes {
		if one.blocked == releases || q.bounded && q.users.refuses(one.jobs[0]) {
			continue
		}
		if head := one.jobs[0]; best == nil || q.sooner(head, best) < 0 {
			best = head
		}
	}
	return best
}

// turn is the first job of the user whom the pool's order puts first: the order
// in which the server gives free workers to studies.
func (q *queue) turn(releases int) *Waiting {
	type turn struct {
		user     string
		priority int
	}
	first := map[turn]*Waiting{}
	var candidates []pool.Candidate
	for _, one := range q.classes {
		if one.blocked == releases || q.bounded && q.users.refuses(one.jobs[0]) {
			continue
		}
		head := one.jobs[0]
		of := turn{head.User, head.Priority}
		known := first[of]
		if known == nil {
			came := time.Unix(0, int64(min(q.came[head.User]*1e9, math.MaxInt64/2)))
			candidates = append(candidates, pool.Candidate{Study: head.User, Owner: head.User, Share: q.users.share(head.User), Priority: head.Priority, Running: q.running[head.User], Created: came})
		}
		if known == nil || q.before(head, known) < 0 {
			first[of] = head
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	// Candidates that are equal for the pool keep the order of their names, not
	// that of the classes.
	slices.SortFunc(candidates, func(a, b pool.Candidate) int { return cmp.Compare(a.Study, b.Study) })
	pool.Order(candidates)
	return first[turn{candidates[0].Study, candidates[0].Priority}]
}

// heads are the first of each class, in their order.
func (q *queue) heads() []*Waiting {
	heads := make([]*Waiting, 0, len(q.classes))
	for _, one := range q.classes {
		heads = append(heads, one.jobs[0])
	}
	slices.SortFunc(heads, q.before)
	return heads
}
