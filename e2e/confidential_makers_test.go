package e2e_test

import (
	"encoding/json"
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

// bothPolicy allows machines of both makers, with word of what was revoked.
const bothPolicy = `{"version": 1, "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "20d", "releases": {"per_hour": 500, "total": 500},
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

// guest is a worker in a machine whose processor signs as the function does. It brings the
// collateral of what that makes.
func (k *keeper) guest(t *testing.T, name string, sign func(data [64]byte) *evidence.Evidence) *launch.Process {
	t.Helper()
	fake, err := inFake()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/dev/shm", "tandem-e2e-")
	if err != nil {
		t.Skip("there is no folder in memory")
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	processor(t, filepath.Join(folder, "processor"), sign)
	line := slices.Concat([]string{"worker", "--probe", "never", "--scratch", filepath.Join(folder, "scratch"), "--drain", "5s", "--name", name, "--slots", "1", "--confidential", "auto",
		"--broker", "http://" + k.listen, "--broker-token", filepath.Join(k.folder, "broker", "token"), "--policy", k.policy}, opened(t))
	for document, one := range sign([64]byte{}).Collateral {
		for flag, content := range map[string][]byte{"--collateral": one.Body, "--chain": one.Chain} {
			if path := filepath.Join(folder, document+flag); len(content) > 0 {
				line = append(line, flag, document+"="+path)
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	worker, err := launch.Start(fake, append(k.at.environment(), "TANDEM_FAKE_ENCLAVE="+filepath.Join(folder, "processor")), line...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Kill)
	return worker
}

// TestOnePolicyLetsMachinesOfBothMakersIn: a study trains on a machine of AMD's and on one of
// Intel's by one policy. Another machine of Intel's, with other firmware, gets no key.
func TestOnePolicyLetsMachinesOfBothMakersIn(t *testing.T) {
	t.Parallel()
	s, at := newSealed(t, "both", "epochs, epochs: {min: 2, max: 2}, eta: 3", 6), newTap(t)
	k := s.confidential(t, at, s.encrypted(t, at), "")
	intel := evidencetest.NewIntelAt(t, time.Now())
	k.under(t, s, bothPolicy, append(k.amd.Chain(), intel.Chain()...))
	k.start(t)
	domain := func(domain evidencetest.Domain) func([64]byte) *evidence.Evidence {
		return func(data [64]byte) *evidence.Evidence { return intel.TDX(t, domain, data) }
	}
	at.must("study", "create", s.file)
	k.guest(t, "other", domain(evidencetest.Domain{MRTD: [48]byte{1}}))
	until(t, "a refusal", func() bool {
		waits := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Waits
		return slices.ContainsFunc(waits, func(one protocol.Wait) bool {
			return strings.Contains(one.Reason, "unknown_measurement: mrtd is 01")
		})
	})
	at.must("study", "pause", s.name)
	k.guest(t, "intel", domain(evidencetest.Domain{}))
	k.guest(t, "amd", func(data [64]byte) *evidence.Evidence { return k.amd.SNP(t, evidencetest.Guest{}, data) })
	until(t, "three workers", func() bool { return len(read[[]protocol.Worker](t, at.must("workers", "--json"))) == 3 })
	at.must("study", "resume", s.name)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Trials[trial.Completed] != 6 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	audit := cli(t, nil, "keys", "audit", "--data", filepath.Join(k.folder, "broker")).stdout
	got := map[string]int{}
	for _, line := range strings.Split(audit, "\n") {
		for _, name := range []string{"amd", "intel", "other"} {
			if strings.Contains(line, " "+name+"-") {
				got[name+map[bool]string{true: " released", false: " refused"}[strings.Contains(line, "TEST released")]]++
			}
		}
	}
	if got["amd released"] == 0 || got["intel released"] == 0 || got["amd released"]+got["intel released"] != 6 || got["other refused"] == 0 || got["other released"] > 0 {
		t.Errorf("the broker's log is\n%s", audit)
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
