package launches_test

import (
	"fmt"
	"testing"
	"time"

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
