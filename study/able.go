package study

import (
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/starts"
)

// couldStart reports whether one more trial could start by the study's own limits, given a
// place.
func (r *session) couldStart(now time.Time) bool {
	if r.study.Status != protocol.StudyRunning || r.full(0) {
		return false
	}
	return !r.waiting || slices.ContainsFunc(r.queue, func(number int) bool {
		until, rests := r.resting[number]
		return !rests || !now.Before(until)
	})
}

// noteAble notes since when that is so, at each moment at which it may have changed.
func (r *session) noteAble(now time.Time) {
	if can := r.couldStart(now); !can {
		r.able, r.overQuota = time.Time{}, false
	} else if r.able.IsZero() {
		r.able = now
	}
}

// waited is how long a trial that starts now had no place: from when it could have
// started by the study's own limits. What its owner's quota kept back waited for none.
func (r *session) waited(now time.Time) time.Duration {
	if r.able.IsZero() || r.overQuota {
		return 0
	}
	return now.Sub(r.able)
}

// unstored is what is known of a study beside what is stored of it: what a change has
// done to it is taken back when the change is refused.
type unstored struct {
	resting   map[int]time.Time
	able      time.Time
	overQuota bool
	waiting   bool
	starts    starts.Known
	// at is the number of the newest event then.
	at int64
}

func (r *session) shown() unstored {
	return unstored{resting: maps.Clone(r.resting), able: r.able, overQuota: r.overQuota, waiting: r.waiting, starts: r.starts, at: r.sequence}
}

// awaits notes that the search, as it is shown, has nothing until the next
// observation.
func (r *session) awaits(now time.Time) {
	r.waiting = true
	r.noteAble(now)
	r.noted()
}

// noted notes what became known of the study without a change, unless one is on its
// way: that one notes it when it is durable.
func (r *session) noted() {
	if r.durable.at == r.sequence {
		r.durable = r.shown()
	}
}

// endures notes that a change is durable, behind which it was like this. Of several
// changes that wait together the last one may hear of it first.
func (r *session) endures(shown unstored) {
	if shown.at >= r.durable.at {
		r.durable = shown
	}
}
