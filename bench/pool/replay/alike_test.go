package replay_test

import (
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
)

// TestEnergyIsComparedOverTheSameTime plays a job on a fast and on a slow machine: what
// machines draw without jobs is the same in both, and one whose machines sleep draws
// what they draw asleep.
func TestEnergyIsComparedOverTheSameTime(t *testing.T) {
	c := cluster(2, 1)
	jobs := func(work float64) []replay.Job { return []replay.Job{oneGPU("one", 0, work)} }
	fast, slow := play(t, c, jobs(100), policies.FirstFit(), replay.Settings{}), play(t, c, jobs(400), policies.FirstFit(), replay.Settings{})
	sleeps := policies.FirstFit()
	sleeps.Name, sleeps.Knob, sleeps.Every = "sleeps", always(0), 10
	idle := play(t, c, jobs(100), sleeps, replay.Settings{Move: placement.Prediction{}})
	near(t, "what the fast one draws idle, by itself", fast.Energy.Idle, 2*100*100, exact)
	asleep := idle.Energy.Asleep
	all := []replay.Outcome{fast, slow, idle}
	near(t, "the time that counts", replay.Alike(all), 400, exact)
	near(t, "what the fast one draws idle", all[0].Energy.Idle, all[1].Energy.Idle, exact)
	near(t, "what the slow one draws idle", all[1].Energy.Idle, 2*100*400, exact)
	near(t, "what the fast one saves", all[1].Total-all[0].Total, slow.Energy.Work-fast.Energy.Work, exact)
	near(t, "what sleeping machines draw behind the last job", all[2].Energy.Asleep-asleep, 2*10*300, exact)
	near(t, "the makespan", all[0].Makespan, 100, exact)
	near(t, "the total", all[2].Total, all[2].Energy.Total(), exact)
}
