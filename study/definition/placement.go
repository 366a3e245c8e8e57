package definition

// Placement is the placement section: on which machines trials run, where there
// are several types to choose from.
type Placement struct {
	// Energy is how much energy counts against time, H in Rocha's chapter 3: 0 as
	// fast as possible (the default), 1 with the least energy.
	//
	// The chapter names no default. Who says nothing gets 0, so that nobody waits
	// longer for the sake of energy that they did not ask to save, and so that
	// studies run as well where no energy is known.
	Energy float64 `json:"energy"`
}
