package policies

import "github.com/tandem-tune/tandem/bench/pool/replay"

// Standby keeps as many GPUs awake as are wanted, and some to spare: what can be
// done without a forecast.
func Standby(spare int) replay.Knob { return standby(spare) }

type standby int

func (s standby) Awake(state *replay.State) int { return state.Wanted() + int(s) }
