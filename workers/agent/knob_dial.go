package agent

import "github.com/tandem-tune/tandem/study/space"

// dialKnob is a knob that sets the machine itself.
type dialKnob struct {
	name  string
	dials *dials
	// places says what is to be set where for a run, and for none what could be
	// set at all: then with the values that are there.
	places func(s *subject, value space.Value) (map[string]string, error)
	// untold says that what is there cannot be read, so that writing it back
	// would change it.
	untold bool
}

func (k *dialKnob) available() (string, error) {
	places, err := k.places(nil, space.Value{})
	if err != nil {
		return "", err
	}
	if k.untold {
		return "", rootOnly()
	}
	for where := range places {
		t := k.dials.turners[k.name]
		present, err := t.read(where)
		if err == nil {
			// What is there already: that asks for the right and changes nothing.
			err = t.write(where, present)
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

func (k *dialKnob) set(s *subject, value space.Value) (string, error) {
	wanted, err := k.places(s, value)
	if err != nil {
		return "", err
	}
	return "", k.dials.set(s, k.name, wanted)
}

func (k *dialKnob) unset(s *subject) { k.dials.release(s, k.name) }

func (k *dialKnob) held(s *subject) bool { return k.dials.held(s, k.name) }
