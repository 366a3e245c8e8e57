package knob

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// devices are settings of the machine itself, such as a core's frequency. Several
// runs may want to set the same one: the last to come has its way, and when it
// ends the one before it. What was there before anybody came is in a journal
// before it is changed, and is put back after the last.
type devices struct {
	accesses map[string]access // by knob

	mutex   sync.Mutex
	journal *journal
	claims  map[place][]*claim
}

// access reads and writes the places of one knob.
type access interface {
	read(where string) (string, error)
	write(where, value string) error
	// same reports whether what is there is what was wanted.
	same(wanted, present string) bool
}

// place is one setting: a file or a GPU, under the knob that sets it.
type place struct{ Knob, Where string }

// claim is what a run wants of a place.
type claim struct {
	owner *Subject
	value string
	// broken says that another value was in force for a while.
	broken bool
}

func newDevices(accesses map[string]access) *devices {
	return &devices{accesses: accesses, journal: &journal{}, claims: map[place][]*claim{}}
}

// set has the knob's places at the wanted values for the owner, and nothing else
// of that knob's. On an error nothing of it is left.
func (d *devices) set(owner *Subject, knob string, wanted map[string]string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, at := range d.owned(owner, knob) {
		if _, stays := wanted[at.Where]; !stays {
			d.drop(owner, at)
		}
	}
	if err := d.remember(knob, wanted); err != nil {
		return fmt.Errorf("note what it was before: %w", err)
	}
	for _, where := range slices.Sorted(maps.Keys(wanted)) {
		if err := d.claim(owner, place{knob, where}, wanted[where]); err != nil {
			for _, at := range d.owned(owner, knob) {
				d.drop(owner, at)
			}
			return err
		}
	}
	return nil
}

// claim has the place at the value, unless somebody else came later.
func (d *devices) claim(owner *Subject, at place, value string) error {
	mine := d.claimOf(owner, at)
	if mine == nil {
		mine = &claim{owner: owner}
		d.claims[at] = append(d.claims[at], mine)
	} else if mine.value == value {
		return nil
	}
	mine.value = value
	if d.claims[at][len(d.claims[at])-1] != mine {
		mine.broken = true
		return nil
	}
	return d.turn(at, value)
}

// try writes to each place what is there already: that asks for the right and
// changes nothing, as long as no run sets it meanwhile.
func (d *devices) try(knob string, places map[string]string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	t := d.accesses[knob]
	for where := range places {
		present, err := t.read(where)
		if err == nil {
			err = t.write(where, present)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remember notes the present values of places that nobody has claimed.
func (d *devices) remember(knob string, wanted map[string]string) error {
	var fresh []entry
	for where := range wanted {
		if at := (place{knob, where}); !d.journal.has(at) {
			before, err := d.accesses[knob].read(where)
			if err != nil {
				return err
			}
			fresh = append(fresh, entry{at, before})
		}
	}
	return d.journal.add(fresh)
}

// turn writes a value and looks whether it is there. Whoever wants another one
// is disturbed.
func (d *devices) turn(at place, value string) error {
	t := d.accesses[at.Knob]
	err := t.write(at.Where, value)
	if err == nil {
		var now string
		if now, err = t.read(at.Where); err == nil && !t.same(value, now) {
			err = fmt.Errorf("it was set to %s and is %s", value, now)
		}
	}
	for _, c := range d.claims[at] {
		c.broken = c.broken || err != nil || c.value != value
	}
	return err
}

// release takes back what the owner has set by the knob.
func (d *devices) release(owner *Subject, knob string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, at := range d.owned(owner, knob) {
		d.drop(owner, at)
	}
}

// drop ends the owner's claim of a place. What cannot be put back stays in the
// journal, for the next agent to try.
func (d *devices) drop(owner *Subject, at place) {
	before := d.claims[at]
	left := slices.DeleteFunc(slices.Clone(before), func(c *claim) bool { return c.owner == owner })
	d.claims[at] = left
	switch {
	case len(left) == 0:
		delete(d.claims, at)
		if old, known := d.journal.before(at); known && d.accesses[at.Knob].write(at.Where, old) == nil {
			_ = d.journal.remove(at) // then it is put back once more, at worst
		}
	case before[len(before)-1].owner == owner:
		_ = d.turn(at, left[len(left)-1].value) // it marks the claims that fail
	}
}

// held reports whether all claims of the owner were in force since it was asked
// last.
func (d *devices) held(owner *Subject, knob string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	all := true
	for _, at := range d.owned(owner, knob) {
		c, last := d.claimOf(owner, at), d.claims[at][len(d.claims[at])-1]
		all = all && !c.broken
		c.broken = c.value != last.value
	}
	return all
}

func (d *devices) owned(owner *Subject, knob string) []place {
	var list []place
	for at := range d.claims {
		if at.Knob == knob && d.claimOf(owner, at) != nil {
			list = append(list, at)
		}
	}
	return list
}

func (d *devices) claimOf(owner *Subject, at place) *claim {
	for _, c := range d.claims[at] {
		if c.owner == owner {
			return c
		}
	}
	return nil
}

// restore puts back what a dead agent has noted in its journal.
func (d *devices) restore(path string) error {
	entries, err := readJournal(path)
	if err != nil {
		return err
	}
	for _, one := range entries {
		t, known := d.accesses[one.Knob]
		if !known {
			err = errors.Join(err, fmt.Errorf("this version knows no %s", one.Knob))
			continue
		}
		if failed := t.write(one.Where, one.Before); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s of %s was %q: %w", one.Knob, one.Where, one.Before, failed))
		}
	}
	return err
}
