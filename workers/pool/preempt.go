package pool

import (
	"cmp"
	"slices"
	"time"
)

// Host is a worker that a trial could run on, with what it runs.
type Host struct {
	Member Member
	Held   []Lease
	// Allows reports whether the trial may start there beside those leases, as far as
	// others than its room decide; nil: it may.
	Allows func(left []Lease) bool
}

// Victims are the trials that have to make way for one with the priority and the
// need: the fewest of one machine, each of a lower priority, and of those the
// youngest of the lowest priority. One without a checkpoint, which would have to
// start again, is chosen only where no other choice makes room; one that was
// asked to make way less than pause ago is not chosen at all. None: there is room
// already, or will be once those have left that were asked, or nothing makes it that
// the trial would be allowed to have.
func Victims(priority int, need Need, hosts []Host, now time.Time, pause time.Duration) []Lease {
	var chosen []Lease
	for _, host := range hosts {
		staying := slices.DeleteFunc(slices.Clone(host.Held), func(l Lease) bool { return l.Leave != "" })
		if roomy(host.Member, staying, need) {
			return nil
		}
		victims := host.clear(staying, need, func(l Lease) bool {
			return l.Priority < priority && (l.Preempted.IsZero() || now.Sub(l.Preempted) >= pause)
		})
		if victims != nil && (chosen == nil || compareVictims(victims, chosen) < 0) {
			chosen = victims
		}
	}
	return chosen
}

// roomy reports whether a worker with these leases takes a trial with the need.
func roomy(member Member, held []Lease, need Need) bool {
	room := RoomOf(member, held)
	return room.Trials < room.Slots && room.Fits(need)
}

// clear chooses leases that make room; nil if none do.
func (h Host) clear(staying []Lease, need Need, may func(Lease) bool) []Lease {
	var eligible []Lease
	for _, lease := range staying {
		if may(lease) {
			eligible = append(eligible, lease)
		}
	}
	slices.SortFunc(eligible, sooner)
	for count := range eligible {
		victims := eligible[:count+1]
		left := slices.DeleteFunc(slices.Clone(staying), func(l Lease) bool {
			return slices.ContainsFunc(victims, func(v Lease) bool { return v.Trial == l.Trial })
		})
		if roomy(h.Member, left, need) {
			return h.spare(left, victims, need)
		}
	}
	return nil
}

// spare leaves out the victims without which there is room all the same, those
// first that should be the last to go; nil where the trial may not have that room.
func (h Host) spare(left, victims []Lease, need Need) []Lease {
	kept := slices.Clone(victims)
	for _, one := range slices.Backward(victims) {
		if with := append(slices.Clone(left), one); roomy(h.Member, with, need) {
			left = with
			kept = slices.DeleteFunc(kept, func(l Lease) bool { return l.Trial == one.Trial })
		}
	}
	if h.Allows != nil && !h.Allows(left) {
		return nil
	}
	return kept
}

// sooner orders leases by who makes way first.
func sooner(a, b Lease) int {
	if a.Resumable != b.Resumable {
		if a.Resumable {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Granted.Compare(a.Granted), cmp.Compare(a.Trial, b.Trial))
}

// compareVictims orders choices: by how many lose what they have trained, how
// many there are, and then by who makes way first.
func compareVictims(a, b []Lease) int {
	lost := func(list []Lease) (count int) {
		for _, lease := range list {
			if !lease.Resumable {
				count++
			}
		}
		return count
	}
	return cmp.Or(cmp.Compare(lost(a), lost(b)), cmp.Compare(len(a), len(b)), sooner(a[0], b[0]))
}
