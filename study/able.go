package study

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
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
