package knob

import "github.com/tandem-tune/tandem/study/space"

// deviceKnob is a knob that sets the machine itself.
type deviceKnob struct {
	name    string
	devices *devices
	// places says what is to be set where for a run, and for none what could be
	// set at all: then with the values that are there.
	places func(s *Subject, value space.Value) (map[string]string, error)
	// untold says that what is there cannot be read, so that writing it back
	// would change it.
	untold bool
}

func (k *deviceKnob) available() (string, error) {
	places, err := k.places(nil, space.Value{})
	if err != nil {
		return "", err
	}
	if k.untold {
		return "", rootOnly()
	}
	return "", k.devices.try(k.name, places)
}

func (k *deviceKnob) set(s *Subject, value space.Value) (string, error) {
	wanted, err := k.places(s, value)
	if err != nil {
		return "", err
	}
	return "", k.devices.set(s, k.name, wanted)
}

func (k *deviceKnob) unset(s *Subject) { k.devices.release(s, k.name) }

func (k *deviceKnob) held(s *Subject) bool { return k.devices.held(s, k.name) }
