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
	return "", k.dials.try(k.name, places)
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
