package artifact

import (
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
)

// The band is from the fastest round to the slowest: so far the same may differ.
func TestRoundsAreTakenTogether(t *testing.T) {
	var rounds [][]emu.Run
	for _, seconds := range []float64{5, 1, 4, 2, 3} {
		rounds = append(rounds, []emu.Run{
			{Batch: 1, Threads: 1, Seconds: seconds, Low: 0.9 * seconds, High: 1.1 * seconds, Repetitions: 10, Joules: 6 - seconds},
			{Batch: 1, Threads: 2, Seconds: 2 * seconds, Low: 0.9 * seconds, High: 1.1 * seconds, Repetitions: 10},
		})
	}
	rounds[4] = rounds[4][:1] // it was ended early
	got := together(rounds)
	if len(got) != 2 || got[0].Seconds != 3 || got[0].Low != 1 || got[0].High != 5 || got[0].Repetitions != 50 || got[0].Joules != 3 || got[1].Threads != 2 || got[1].Repetitions != 40 {
		t.Errorf("%+v", got)
	}
	if one := together(rounds[:1]); one[0].Low != 4.5 || one[0].High != 5.5 {
		t.Errorf("of one round: %+v", one)
	}
	if none := together(nil); none != nil {
		t.Errorf("of no round: %+v", none)
	}
}
