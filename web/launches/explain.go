package launches

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
)

// Explain is why the study's next trial does not start. Where no connected worker can train
// it, that names the launcher whose workers are on their way, or that is kept from starting
// some; of several the first by name.
func (b *Board) Explain(caller access.Caller, study protocol.StudyView, now time.Time) []protocol.Wait {
	waits := slices.Clone(study.Waits)
	for i, wait := range waits {
		if wait.Cause != protocol.WaitUnfit {
			continue
		}
		for _, one := range b.Launchers(caller, now) {
			if said := does(one, study.ID); said != "" && !one.Silent && (one.User == "" || one.User == study.Owner) {
				reason := wait.Reason
				if strings.HasPrefix(reason, protocol.NoWorker) {
					reason = protocol.NoWorker // its advice is to start one
				}
				waits[i].Launcher, waits[i].Reason = one.Name, fmt.Sprintf("%s; the launcher %s %s", reason, one.Name, said)
				break
			}
		}
	}
	return waits
}

// does says what the launcher does about a study that waits; empty: nothing that it told.
func does(one crew.Launcher, study string) string {
	for _, note := range one.Notes {
		if note.StudyID == study {
			return "says that " + note.Says
		}
	}
	if one.Trouble != "" {
		return "does not see " + one.Engine + ": " + one.Trouble
	}
	pending, starting, why := 0, 0, ""
	for _, shape := range one.Shapes {
		pending, starting = pending+shape.Pending, starting+shape.Starting
		for _, wait := range shape.Waits {
			why = ": " + wait.Why
		}
	}
	if starting > 0 {
		return "has " + format.Count(starting, "worker") + " that " + one.Engine + " has started"
	}
	if pending > 0 {
		return "has " + format.Count(pending, "worker") + " pending in " + one.Engine + why
	}
	return ""
}
