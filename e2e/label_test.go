package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// labelled is a study file of trials that want a worker with the label; none: any.
func labelled(t *testing.T, name, budget string, trials int, label string) study {
	t.Helper()
	s := newStudy(t, name, budget, "0.02", trials)
	content, err := os.ReadFile(s.file)
	if err == nil && label != "" {
		err = os.WriteFile(s.file, append(content, "resources: {labels: {"+label+"}}\n"...), 0o600)
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
	in := labelled(t, "in-the-west", nineEpochs, 4, "zone: west")
	at.must("study", "create", in.file)
	if found := read[result](t, at.must("study", "watch", in.name, "--json")); found.Study.Status != protocol.StudyCompleted {
		t.Errorf("the study is %s", found.Study.Status)
	}
	for _, one := range at.books(in.name).Trials {
		if one.Worker != west.ID {
			t.Errorf("trial %d ran on %s, not on west", one.Number, one.Worker)
		}
	}

	nowhere := labelled(t, "nowhere", nineEpochs, 1, "zone: north")
	at.must("study", "create", nowhere.file)
	if said := at.must("study", "show", nowhere.name); !strings.Contains(said, "resources.labels is zone=north, and no connected worker has that (east: zone=east; west: zone=west)") {
		t.Errorf("tandem study show says\n%s", said)
	}

	anywhere := labelled(t, "anywhere", strings.ReplaceAll(nineEpochs, "9", "5000"), 4, "")
	at.must("study", "create", anywhere.file)
	until(t, "trials on both workers", func() bool {
		workers := at.registered()
		return len(workers["east"].Trials) > 0 && len(workers["west"].Trials) > 0
	})
	at.must("study", "stop", anywhere.name)
}
