package replay

// Standby keeps as many GPUs awake as are wanted, and some to spare: what can be
// done without a forecast.
func Standby(spare int) Knob { return standby(spare) }

type standby int

func (s standby) Awake(state *State) int { return state.Wanted() + int(s) }
