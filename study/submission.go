package study

import (
	"maps"
	"time"
)

// unstored is what is known of a study beside what is stored of it: what a change has
// done to it is taken back when the change is refused.
type unstored struct {
	resting   map[int]time.Time
	able      time.Time
	overQuota bool
	waiting   bool
	starts    starts
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
