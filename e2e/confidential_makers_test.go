package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

const zero48 = "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

// bothPolicy allows machines of both makers with GPUs of NVIDIA, with word of what was revoked.
var bothPolicy = `{"version": 1, "gpu": {"required": true, "arch": ["hopper"], "rim": {"driver": ["550.*"], "vbios": ["96.*"], "measurements": {"9": ["09` + zero48[2:] + `"], "10": ["` + zero48 + `"]}}},
	 "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "20d", "releases": {"per_hour": 500, "total": 500},
	"tee": {"sev-snp": {"products": {"genoa": {"bootloader": 0, "tee": 0, "snp": 0, "microcode": 0}}, "measurement": ["` + zero48 + `"]},
	"tdx": {"mrtd": ["` + zero48 + `"], "rtmr": {"0": ["any"], "1": ["` + zero48 + `"], "2": ["` + zero48 + `"]}}}}`

// under has the broker, which is not started, and the study use another policy and roots.
func (k *keeper) under(t *testing.T, s study, text string, roots []byte) {
	t.Helper()
	rules, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.Read(filepath.Join(k.folder, "owner.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := json.Marshal(rules.Sign(keys.Signer()))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"policy.json": signed, "root.pem": roots} {
		if err := os.WriteFile(filepath.Join(k.folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.rewrite(k.policy, rules.ID())
	k.policy = rules.ID()
}

// TestOnePolicyLetsMachinesOfBothMakersIn: a study trains on a machine of AMD's and on one of
// Intel's, both with GPUs, by one policy. Machines of Intel's with other firmware, and with a
// GPU for developers' tools, get no key, and one without a GPU does not start.
func TestOnePolicyLetsMachinesOfBothMakersIn(t *testing.T) {
	t.Parallel()
	s, at := newSealed(t, "both", "epochs, epochs: {min: 2, max: 2}, eta: 3", 6), newTap(t)
	k := s.confidential(t, at, s.encrypted(t, at), "")
	intel := evidencetest.NewIntelAt(t, time.Now())
	nvidia := evidencetest.NewNVIDIA(t, "GH100", time.Now())
	k.under(t, s, bothPolicy, slices.Concat(k.amd.Chain(), intel.Chain(), nvidia.Chain()))
	k.start(t)
	start := func(name string, sign func(data [64]byte) *evidence.Evidence, cards ...*evidencetest.Card) *launch.Process {
		return k.run(t, guest{name: name, sign: sign, cards: cards, slots: "1", collateral: nvidia.Collateral(t, time.Now().Add(-time.Hour), false)})
	}
	domain := func(domain evidencetest.Domain) func([64]byte) *evidence.Evidence {
		return func(data [64]byte) *evidence.Evidence { return intel.TDX(t, domain, data) }
	}
	card, tools := nvidia.Card(t), nvidia.Card(t)
	tools.DevTools = true
	at.must("study", "create", s.file)
	blind := start("blind", domain(evidencetest.Domain{}))
	refused := []*launch.Process{start("other", domain(evidencetest.Domain{MRTD: [48]byte{1}}), card), start("tools", domain(evidencetest.Domain{}), tools)}
	for _, reason := range []string{"unknown_measurement: mrtd is 01", "gpu_devtools: GPU 0"} {
		until(t, reason, func() bool {
			found := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json"))
			for _, one := range refused {
				if one.Ended() || found.Progress.Trials[trial.Completed] > 0 { // nobody is refused any more
					t.Fatalf("before %q, the study is %s with %v, and a worker says\n%s", reason, found.Status, found.Progress.Trials, one.Output())
				}
			}
			said := fmt.Sprint(found.Waits)
			if strings.Contains(said, "gpu_missing") { // all that still run have some
				t.Fatalf("before %q, the study waits: %s", reason, said)
			}
			return strings.Contains(said, reason)
		})
	}
	at.must("study", "pause", s.name)
	start("intel", domain(evidencetest.Domain{}), card)
	start("amd", func(data [64]byte) *evidence.Evidence { return k.amd.SNP(t, evidencetest.Guest{}, data) }, nvidia.Card(t), nvidia.Card(t))
	until(t, "four workers", func() bool { return len(read[[]protocol.Worker](t, at.must("workers", "--json"))) == 4 })
	if !blind.Ended() || !strings.Contains(blind.Output(), "the policy requires GPUs that show reports, and there are none") {
		t.Errorf("without a GPU a worker says\n%s", blind.Output())
	}
	at.must("study", "resume", s.name)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Trials[trial.Completed] != 6 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	audit := cli(t, nil, "keys", "audit", "--data", filepath.Join(k.folder, "broker")).stdout
	got := map[string]int{}
	for _, line := range strings.Split(audit, "\n") {
		for _, name := range []string{"amd", "intel", "other", "tools", "blind"} {
			if strings.Contains(line, " "+name+"-") {
				got[name+map[bool]string{true: " released", false: " refused"}[strings.Contains(line, "TEST released")]]++
			}
		}
	}
	if got["amd released"] == 0 || got["intel released"] == 0 || got["amd released"]+got["intel released"] != 6 || got["other refused"] == 0 || got["tools refused"] == 0 || len(got) != 4 {
		t.Errorf("the broker's log is\n%s", audit)
	}
	if seen := "hopper, driver 550.90.07, VBIOS 96.00.9f.00.01"; strings.Count(audit, "2: "+seen) != got["amd released"] || strings.Count(audit, "1: "+seen) < got["intel released"]+got["tools refused"] {
		t.Errorf("of GPUs the broker's log says\n%s", audit)
	}
	_, public, _ := strings.Cut(k.process.Output(), "its signatures: ")
	public, _, _ = strings.Cut(public, "\n")
	at.must("study", "attestations", s.name, "--verify", public)
	workers := at.must("workers", "--json")
	for _, tee := range []string{evidence.SNP, evidence.TDX} {
		if !strings.Contains(workers, `"`+tee+`"`) {
			t.Errorf("no worker says that it is of %s: %s", tee, workers)
		}
	}
}
