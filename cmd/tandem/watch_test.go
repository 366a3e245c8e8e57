package main

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestWhatKeepsAStudyFromRunningIsSaidOnce: at the second look, again when it is
// another reason, and not while something of the study runs.
func TestWhatKeepsAStudyFromRunningIsSaidOnce(t *testing.T) {
	var out strings.Builder
	d := newDisplay(&out)
	look := func(reason string, trials map[trial.State]int) {
		view := protocol.StudyView{Status: protocol.StudyRunning, Progress: protocol.Progress{Trials: trials}}
		if reason != "" {
			view.Waits = []protocol.Wait{{Reason: reason}}
		}
		d.show(view)
	}
	said := func(reason string) int { return strings.Count(out.String(), "Waits: "+reason+"\n") }
	look("no worker has a GPU", nil)
	if said("no worker has a GPU") != 0 {
		t.Errorf("said at the first look:\n%s", out.String())
	}
	for range 3 {
		look("no worker has a GPU", nil)
	}
	for range 3 {
		look("all are busy", map[trial.State]int{trial.Running: 1})
	}
	for range 3 {
		look("the quota is used up", map[trial.State]int{trial.Paused: 2})
	}
	if said("no worker has a GPU") != 1 || said("all are busy") != 0 || said("the quota is used up") != 1 {
		t.Errorf("said:\n%s", out.String())
	}
}
