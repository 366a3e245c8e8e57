package study

import (
	"strconv"

	"github.com/tandem-tune/tandem/workers/pool"
)

// field is the workers that wait, in classes of those that no study tells apart: what
// is asked of thousands of workers for each of a thousand studies is asked of a few.
type field struct {
	stands []stand
	of     []int // the class of each
	first  []int // the first of each class
	// answers are those that were given of the classes.
	answers map[string]*answer
}

// answer says of each worker whether it may.
type answer struct {
	may []bool // not to be changed: studies share it
	// first is the first that may, -1 for none, and trials how many those ask for
	// together that may.
	first, trials int
}

// fieldOf sorts the workers into classes. A worker without a kind is a class of its own.
func fieldOf(stands []stand) *field {
	type class struct {
		kind   string
		caller Caller
	}
	f := &field{stands: stands, of: make([]int, len(stands)), answers: map[string]*answer{}}
	known := map[class]int{}
	for i := range stands {
		key := class{stands[i].kind, stands[i].caller}
		at, some := known[key]
		if !some || key.kind == "" {
			at = len(f.first)
			known[key] = at
			f.first = append(f.first, i)
		}
		f.of[i] = at
	}
	return f
}

// answer is what holds of the workers where this holds of their classes.
func (f *field) answer(classes []byte) *answer {
	if known, some := f.answers[string(classes)]; some {
		return known
	}
	made := &answer{may: make([]bool, len(f.stands)), first: -1}
	for i, class := range f.of {
		if made.may[i] = classes[class] == 1; made.may[i] {
			made.trials += f.stands[i].trials
			if made.first < 0 {
				made.first = i
			}
		}
	}
	f.answers[string(classes)] = made
	return made
}

// kindOf is what no study tells the worker apart from others by, with the room that it
// has; empty for one that may be special to some study. The pool's lock is held.
func (s *Service) kindOf(member *pool.Member, room pool.Room, idle bool) string {
	id := member.Registration.ID
	if _, vacant := s.vacancies[id]; vacant || len(member.Refuses)+len(member.Excluded) > 0 || member.Reserved != 0 || s.gangs.Cleared() == id {
		return ""
	}
	if _, claimed := s.leases.Claimed(id); claimed {
		return ""
	}
	if len(s.rules.drains) > 0 && s.drainOf(*member) != nil {
		return ""
	}
	for _, one := range s.rules.reservations {
		if one.Worker == member.Registration.Name {
			return ""
		}
	}
	kind := member.Kind
	if member.Only != "" {
		kind += "\x00only " + member.Only
	}
	if idle {
		return kind
	}
	for _, lease := range s.heldOf(id) {
		if lease.Leave != "" || lease.LeaveFor != (pool.Claim{}) || lease.GPUShare != nil {
			return ""
		}
	}
	text := append([]byte(kind), 0)
	for _, n := range append([]int{room.Trials, room.Cores, int(room.MemoryBytes)}, room.GPUs...) {
		text = append(strconv.AppendInt(text, int64(n), 10), ' ')
	}
	return string(text)
}
