package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// wanting is a study file of trials that ask for the resources; none: any.
func wanting(t *testing.T, name, budget string, trials int, resources string) study {
	t.Helper()
	s := newStudy(t, name, budget, "0.02", trials)
	content, err := os.ReadFile(s.file)
	if err == nil && resources != "" {
		err = os.WriteFile(s.file, append(content, "resources: {"+resources+"}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTrialsRunOnlyOnWorkersWithTheLabel has two workers with different labels: all trials
// of a study that asks for one run there, one that asks for a label that nobody has is
// told so, and one that asks for none gets both workers.
func TestTrialsRunOnlyOnWorkersWithTheLabel(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	for _, zone := range []string{"east", "west"} {
		at.worker("--name", zone, "--slots", "1", "--label", "zone="+zone)
	}
	until(t, "two workers", func() bool { return len(at.registered()) == 2 })
	west := at.registered()["west"]
	if said := at.must("workers"); west.Labels["zone"] != "west" || !strings.Contains(said, "west has the labels zone=west") {
		t.Errorf("tandem workers says\n%s", said)
	}
	in := wanting(t, "in-the-west", nineEpochs, 4, "labels: {zone: west}")
	at.must("study", "create", in.file)
	if found := read[result](t, at.must("study", "watch", in.name, "--json")); found.Study.Status != protocol.StudyCompleted {
		t.Errorf("the study is %s", found.Study.Status)
	}
	for _, one := range at.books(in.name).Trials {
		if one.Worker != west.ID {
			t.Errorf("trial %d ran on %s, not on west", one.Number, one.Worker)
		}
	}

	nowhere := wanting(t, "nowhere", nineEpochs, 1, "labels: {zone: north}")
	at.must("study", "create", nowhere.file)
	if said := at.must("study", "show", nowhere.name); !strings.Contains(said, "resources.labels is zone=north, and no connected worker has that (east: zone=east; west: zone=west)") {
		t.Errorf("tandem study show says\n%s", said)
	}

	anywhere := wanting(t, "anywhere", strings.ReplaceAll(nineEpochs, "9", "5000"), 4, "")
	at.must("study", "create", anywhere.file)
	until(t, "trials on both workers", func() bool {
		workers := at.registered()
		return len(workers["east"].Trials) > 0 && len(workers["west"].Trials) > 0
	})
	at.must("study", "stop", anywhere.name)
}

// TestTrialsKeepAwayFromTaintsAndFromWorkersThatLeave has a worker with a taint, and one
// that leaves: a study that names neither runs on the second only, one that tolerates the
// taint but needs more time on the first only.
func TestTrialsKeepAwayFromTaintsAndFromWorkersThatLeave(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	at.worker("--name", "spot", "--slots", "1", "--taint", "spot")
	plain := wanting(t, "plain", nineEpochs, 3, "")
	at.must("study", "create", plain.file)
	until(t, "the taint", func() bool {
		said := at.must("study", "show", plain.name)
		return strings.Contains(said, "resources.tolerates does not name spot, a taint that keeps trials from spot")
	})
	if said := at.must("workers"); !strings.Contains(said, "spot takes only trials that tolerate spot") {
		t.Errorf("tandem workers says\n%s", said)
	}
	at.worker("--name", "brief", "--slots", "1", "--end-at", "2h")
	until(t, "two workers", func() bool { return len(at.registered()) == 2 })
	long := wanting(t, "long", nineEpochs, 3, "tolerates: [spot], time_limit_seconds: 7300")
	at.must("study", "create", long.file)
	for study, worker := range map[string]string{plain.name: "brief", long.name: "spot"} {
		if found := read[result](t, at.must("study", "watch", study, "--json")); found.Study.Status != protocol.StudyCompleted {
			t.Errorf("the study %s is %s", study, found.Study.Status)
		}
		for _, one := range at.books(study).Trials {
			if one.Worker != at.registered()[worker].ID {
				t.Errorf("trial %d of %s ran on %s, not on %s", one.Number, study, one.Worker, worker)
			}
		}
	}
}
