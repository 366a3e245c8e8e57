package launches_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/launches"
)

// TestTheBoardIsBounded: one token's launchers push out those of that token alone, and who
// was silent for long is forgotten.
func TestTheBoardIsBounded(t *testing.T) {
	var board launches.Board
	now := time.Unix(1e9, 0)
	of := func(token string) access.Caller { return access.Caller{Holder: access.CrewHolder("ann", token)} }
	names := func(at time.Time) (names []string) {
		for _, one := range board.Launchers(access.Caller{}, at) {
			names = append(names, one.Name)
		}
		return names
	}
	board.Report(of("b"), "other", crew.LauncherState{}, now)
	for i := range 100 {
		board.Report(of("a"), fmt.Sprintf("n%03d", i), crew.LauncherState{}, now.Add(time.Duration(i)*time.Second))
		board.Report(of("a"), fmt.Sprintf("n%03d", i), crew.LauncherState{}, now.Add(time.Duration(i)*time.Second))
	}
	if got := names(now); len(got) != 17 || got[0] != "n084" || got[16] != "other" {
		t.Errorf("it shows %v", got)
	}
	for i := range 1000 {
		board.Report(of(fmt.Sprint("t", i)), "tandem", crew.LauncherState{}, now.Add(time.Hour))
	}
	if got := names(now.Add(time.Hour)); len(got) != 256 {
		t.Errorf("it shows %d", len(got))
	}
	if got := names(now.Add(26 * time.Hour)); len(got) != 0 {
		t.Errorf("a day later it shows %v", got)
	}
}

// TestAStudyThatWaitsNamesTheLauncher whose workers its trials may get, and what keeps them;
// one that is silent, is another's, or orders nothing, is not named.
func TestAStudyThatWaitsNamesTheLauncher(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ann := access.CrewHolder("ann", "t")
	shapes := func(pending, starting int) []crew.LaunchShape {
		return []crew.LaunchShape{{Name: "cpu", Pending: pending, Starting: starting, Waits: []crew.LaunchWait{{Workers: 2, Why: "jobs of others go first"}}}}
	}
	const none = protocol.NoWorker + ": start one with 'tandem worker'"
	for _, test := range []struct {
		name, holder, owner, before, after string
		state                              crew.LauncherState
		later                              time.Duration
	}{
		{"workers pend", ann, "ann", none, protocol.NoWorker + "; the launcher tandem has 2 workers pending in slurm: jobs of others go first", crew.LauncherState{Shapes: shapes(2, 0)}, 0},
		{"a worker starts", ann, "ann", none, protocol.NoWorker + "; the launcher tandem has 1 worker that slurm has started", crew.LauncherState{Shapes: shapes(2, 1)}, 0},
		{"too small ones are connected", ann, "ann", "no worker has a GPU", "no worker has a GPU; the launcher tandem has 2 workers pending in slurm: jobs of others go first", crew.LauncherState{Shapes: shapes(2, 0)}, 0},
		{"it is on hold", ann, "ann", none, protocol.NoWorker + "; the launcher tandem says that small waits: no shape has that", crew.LauncherState{Shapes: shapes(2, 0), Notes: []crew.LaunchNote{{StudyID: "s", Says: "small waits: no shape has that"}}}, 0},
		{"its engine is gone", ann, "ann", none, protocol.NoWorker + "; the launcher tandem does not see slurm: squeue is not there", crew.LauncherState{Trouble: "squeue is not there"}, 0},
		{"it orders nothing", ann, "ann", none, none, crew.LauncherState{Shapes: shapes(0, 0), Notes: []crew.LaunchNote{{StudyID: "other", Says: "other waits"}}}, 0},
		{"it is silent", ann, "ann", none, none, crew.LauncherState{Shapes: shapes(2, 0)}, time.Hour},
		{"it is another's", access.CrewHolder("bob", "t"), "ann", none, none, crew.LauncherState{Shapes: shapes(2, 0)}, 0},
	} {
		var board launches.Board
		test.state.Engine, test.state.EverySeconds = "slurm", 10
		board.Report(access.Caller{Holder: test.holder}, "tandem", test.state, now)
		study := protocol.StudyView{ID: "s", Owner: test.owner, Waits: []protocol.Wait{{Cause: protocol.WaitUnfit, Reason: test.before}, {Cause: protocol.WaitQuota, Reason: "quota"}}}
		waits := board.Explain(access.Caller{Sight: access.All}, study, now.Add(test.later))
		if waits[0].Reason != test.after || (waits[0].Launcher == "tandem") != (test.after != test.before) || waits[1].Reason != "quota" || waits[1].Launcher != "" {
			t.Errorf("%s: %+v, want %s", test.name, waits, test.after)
		}
	}
}
