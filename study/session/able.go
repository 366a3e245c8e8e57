package session

import (
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/starts"
)

// couldStart reports whether one more trial could start by the study's own limits, given a
// place.
func (r *State) couldStart(now time.Time) bool {
	if r.Study.Status != protocol.StudyRunning || r.Full(0) {
		return false
	}
	return !r.waiting || slices.ContainsFunc(r.Queue, func(number int) bool {
		until, rests := r.Resting[number]
		return !rests || !now.Before(until)
	})
}

// noteAble notes since when that is so, at each moment at which it may have changed.
func (r *State) noteAble(now time.Time) {
	if can := r.couldStart(now); !can {
		r.Able, r.overQuota = time.Time{}, false
	} else if r.Able.IsZero() {
		r.Able = now
	}
}

// Waited is how long a trial that starts now had no place: from when it could have
// started by the study's own limits. What its owner's quota kept back waited for none.
func (r *State) Waited(now time.Time) time.Duration {
	if r.Able.IsZero() || r.overQuota {
		return 0
	}
	return now.Sub(r.Able)
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

func (r *State) shown() unstored {
	return unstored{resting: maps.Clone(r.Resting), able: r.Able, overQuota: r.overQuota, waiting: r.waiting, starts: r.Starts, at: r.Sequence}
}
