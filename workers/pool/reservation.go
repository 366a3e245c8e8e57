package pool

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Reservation keeps a worker, or some GPUs of whatever workers, for a user or a
// study from a time to a time. What runs when it begins goes on to its end.
type Reservation struct {
	ID string
	// User is whom it is for; empty with a Study.
	User string
	// Study is the id of the study it is for; empty with a User. Name is how people
	// call it.
	Study, Name string
	// Worker is the name of the worker that is kept; empty with GPUs, which is how
	// many are.
	Worker string
	GPUs   int
	// From is when it begins, To when it is over.
	From, To time.Time
}

// Active reports whether it holds at the time.
func (r Reservation) Active(now time.Time) bool { return !now.Before(r.From) && now.Before(r.To) }

// covers reports whether it is for the study, which is the owner's.
func (r Reservation) covers(owner, study string) bool {
	return r.User != "" && r.User == owner || r.Study != "" && r.Study == study
}

// Clashes reports whether both keep the same worker, at a time, for different ones.
func (r Reservation) Clashes(other Reservation) bool {
	return r.Worker != "" && r.Worker == other.Worker && (r.User != other.User || r.Study != other.Study) &&
		r.From.Before(other.To) && other.From.Before(r.To)
}

// whom says who it is for to those whom it keeps away: they may not see the study.
func (r Reservation) whom() string {
	if r.User != "" {
		return "user " + r.User
	}
	return "another study"
}

// left is how many of its GPUs nobody has taken yet whom it is for.
func (r Reservation) left(held Holdings) int {
	taken := held.GPUsOf[r.Study]
	if r.User != "" {
		taken = held.ByOwner[r.User].GPUs
	}
	return max(0, r.GPUs-int(math.Ceil(taken-rounding)))
}

// Asker is a study that wants to start a trial with the need.
type Asker struct {
	Owner, Study string
	Need         Need
}

// KeepsWorker says which reservation keeps the worker with the name from the
// asker at the time, in words; empty: none.
func KeepsWorker(reservations []Reservation, worker string, asker Asker, now time.Time) string {
	kept := ""
	for _, one := range reservations {
		if one.Worker == "" || one.Worker != worker || !one.Active(now) {
			continue
		}
		if one.covers(asker.Owner, asker.Study) {
			return "" // it may be kept for several
		}
		kept = fmt.Sprintf("worker %s is reserved for %s until %s", worker, one.whom(), shown(one.To))
	}
	return kept
}

// ReservedFor says for whom the worker with the name is kept at the time, and until
// when, in words; empty: for nobody.
func ReservedFor(reservations []Reservation, worker string, now time.Time) string {
	var all []string
	for _, one := range reservations {
		if one.Worker == "" || one.Worker != worker || !one.Active(now) {
			continue
		}
		whom := "one study"
		if one.User != "" {
			whom = one.whom()
		}
		all = append(all, whom+" until "+shown(one.To))
	}
	return strings.Join(all, " and ")
}

// KeepsGPUs says which reservation keeps from the asker the GPUs that it needs
// at the time, in words; empty: none. held is what everybody has.
func KeepsGPUs(reservations []Reservation, held Holdings, asker Asker, now time.Time) string {
	if asker.Need.GPUs == 0 {
		return ""
	}
	kept, last := 0, Reservation{}
	for _, one := range reservations {
		if one.GPUs > 0 && one.Active(now) && !one.covers(asker.Owner, asker.Study) {
			if left := one.left(held); left > 0 {
				kept, last = kept+left, one
			}
		}
	}
	if kept == 0 || held.FreeGPUs-asker.Need.GPUs >= kept {
		return ""
	}
	return fmt.Sprintf("%d GPUs are reserved, the last for %s until %s, and %d are free", kept, last.whom(), shown(last.To), max(0, held.FreeGPUs))
}

func shown(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
