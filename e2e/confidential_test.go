package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

// tellingScript tells what it knows wherever a script can.
const tellingScript = `
def tell(*words):
    return "-".join(["tells", *words])

print(tell("a", "log"), tell("the", "data"), (DATA / "a" / "patients.csv").read_text(), trial.params, flush=True)
try:
    trial.log_artifact("picture.txt", tell("an", "artifact").encode())
except Exception:
    pass`

// tellings are what no server may see of it.
var tellings = []string{"tells-a-log", "tells-the-data", "tells-a-metric", "tells-an-artifact", "tells-a-traceback", "0.77777"}

// newTelling is a study with tellingScript: some trials end with a metric that nobody
// declared, and all accuracies have more digits than may be told.
func newTelling(t *testing.T, name string, trials int) study {
	t.Helper()
	s := newSealed(t, name, threeRungs, trials)
	script := strings.Replace(sealedScript, "for epoch in trial.epochs():\n", tellingScript+`
if trial.number == 4:
    note("failing", trial, 0)
    raise SystemExit(tell("a", "traceback"))
if trial.number == 2 and trial.first_epoch == 1:
    try:
        trial.report(epoch=1, accuracy=0.5, **{"-".join(["tells", "a", "metric"]): 1.0})
        note("reported", trial, 0)
    except Exception as refused:
        note("refused", trial, 0)
        raise
for epoch in trial.epochs():
`, 1)
	script = strings.Replace(script, "(1 - 1 / (epoch + 1)))", "(1 - 1 / (epoch + 1)) * 0 + 0.7777777 + trial.params[\"x\"] / 1e9)", 1)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// keeper is a broker, and processors that do not exist whose reports it believes.
type keeper struct {
	at             *tap
	folder, listen string
	policy, owner  string
	amd            *evidencetest.AMD
	process        *launch.Process
	scratches      []string
}

const guestPolicy = `{"version": 1, "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "none", "releases": {"per_hour": 500, "total": 500},
	"tee": {"sev-snp": {"products": {"genoa": {"bootloader": 0, "tee": 0, "snp": 0, "microcode": 0}},
	"measurement": ["000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"]}}}`

// confidential has the study, which is encrypted, say so, with a broker that is not started.
func (s study) confidential(t *testing.T, at *tap, key, more string) *keeper {
	t.Helper()
	k := &keeper{at: at, folder: t.TempDir(), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), amd: evidencetest.NewAMDAt(t, "Genoa", time.Now())}
	owner := filepath.Join(k.folder, "owner.key")
	cli(t, nil, "keys", "create", "--out", owner)
	keys, err := sealed.Read(owner, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse([]byte(guestPolicy))
	if err != nil {
		t.Fatal(err)
	}
	signed := rules.Sign(keys.Signer())
	text, err := json.Marshal(signed)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"policy.json": text, "root.pem": k.amd.Chain(), "workers.key": kept} {
		if err := os.WriteFile(filepath.Join(k.folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.policy, k.owner = rules.ID(), signed.Signer
	s.rewrite("objective:", "confidential: {policy: "+k.policy+", metrics: {accuracy: {low: 0, high: 1, round: 0.01}}"+more+"}\nobjective:")
	s.rewrite("objective:", "epoch_timeout_seconds: 20\nobjective:") // less than a broker may be away
	s.rewrite("system: off\n", "")
	return k
}

func (k *keeper) start(t *testing.T, more ...string) {
	t.Helper()
	var err error
	line := append([]string{"keys", "serve", "--data", filepath.Join(k.folder, "broker"), "--listen", k.listen, "--identity", filepath.Join(k.folder, "workers.key"),
		"--policy", filepath.Join(k.folder, "policy.json"), "--owner", k.owner, "--test-root", filepath.Join(k.folder, "root.pem"), "--check-leases"}, more...)
	if k.process, err = launch.Start(binary, k.at.environment(), line...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.process.Kill)
	until(t, "the broker", func() bool {
		if k.process.Ended() {
			t.Fatal(k.process.Output())
		}
		return strings.Contains(k.process.Output(), "machines show the token")
	})
}

// guest is a confidential machine in which a worker starts.
type guest struct {
	name string
	// sign is its processor, which answers at a socket, and cards are its GPUs.
	sign  func(data [64]byte) *evidence.Evidence
	cards []*evidencetest.Card
	// collateral is given to the worker besides what the processor's evidence has.
	collateral  map[string]evidence.Document
	slots       string
	environment []string
}

// machine is one of AMD's, with as many slots as it likes.
func (k *keeper) machine(t *testing.T, name string, like evidencetest.Guest, environment ...string) *launch.Process {
	t.Helper()
	return k.run(t, guest{name: name, sign: func(data [64]byte) *evidence.Evidence { return k.amd.SNP(t, like, data) }, slots: "auto", environment: environment})
}

func (k *keeper) run(t *testing.T, one guest) *launch.Process {
	t.Helper()
	fake, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/dev/shm", "tandem-e2e-")
	if err != nil {
		t.Skip("there is no folder in memory")
	}
	k.scratches = append(k.scratches, folder)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	processor(t, filepath.Join(folder, "processor"), one.sign)
	graphics(t, filepath.Join(folder, "gpus"), one.cards)
	line := slices.Concat([]string{"worker", "--probe", "never", "--scratch", filepath.Join(folder, "scratch"), "--drain", "5s", "--name", one.name, "--slots", one.slots, "--confidential", "auto",
		"--broker", "http://" + k.listen, "--broker-token", filepath.Join(k.folder, "broker", "token"), "--policy", k.policy}, opened(t))
	collateral := one.sign([64]byte{}).Collateral
	maps.Copy(collateral, one.collateral)
	for document, one := range collateral {
		for flag, content := range map[string][]byte{"--collateral": one.Body, "--chain": one.Chain} {
			if path := filepath.Join(folder, document+flag); len(content) > 0 {
				line = append(line, flag, document+"="+path)
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	worker, err := launch.Start(fake, slices.Concat(k.at.environment(), one.environment, []string{"TANDEM_FAKE_ENCLAVE=" + filepath.Join(folder, "processor"), "TANDEM_FAKE_GPUS=" + filepath.Join(folder, "gpus")}), line...)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, worker)
	return worker
}

// TestConfidentialTrialsTellOnlyWhatIsDeclared: trials of a confidential study are promoted
// on two machines, each lease with a key of its own release. What they know is found in no
// byte that the server hears or keeps, though their script tells it wherever it can, as the
// same study in the clear shows.
func TestConfidentialTrialsTellOnlyWhatIsDeclared(t *testing.T) {
	t.Parallel()
	s, at := newTelling(t, "confidential", 9), newTap(t)
	clear := newTelling(t, "clear", 9)
	at.canaries = append(slices.Clone(canaries), tellings...)
	key := s.encrypted(t, at)
	k := s.confidential(t, at, key, "")
	k.start(t)
	without, keyed := at.worker("--name", "without", "--allow-read", filepath.Dir(clear.file)), at.worker("--name", "keyed", "--identity", key)
	at.must("study", "create", s.file)
	until(t, "the reason why it waits", func() bool {
		waits := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Waits
		return len(waits) == 1 && strings.Contains(waits[0].Reason, "tandem worker --confidential auto --broker URL --policy "+k.policy)
	})
	first, second := k.machine(t, "first", evidencetest.Guest{}), k.machine(t, "second", evidencetest.Guest{})
	secret := secretOf(t, key)
	onDisk := watched(t, secret, append([]string{filepath.Dir(s.file)}, k.scratches...)...)
	if err := os.Remove(key); err != nil { // the broker has it
		t.Fatal(err)
	}
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	told := found.Study.Progress.Disclosed
	if told == nil || told.Bits != math.Ceil(math.Log2(103)*float64(found.Study.Progress.Epochs)) || told.Released < 9 || told.Refused+told.Attesting > 0 {
		t.Errorf("it is said to have told %+v after %d epochs", told, found.Study.Progress.Epochs)
	}
	if kept := k.attestations(t, s); len(kept) != 9 || slices.ContainsFunc(kept, func(one trial.Attestation) bool { return one.State != trial.KeyReleased || one.Released == 0 }) {
		t.Errorf("trials have %+v", kept)
	}
	if lies := onDisk(); len(lies) > 0 {
		t.Errorf("the key lies in %v", lies)
	}
	if p := found.Study.Progress; p.Created != 9 || p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] != 2 || len(s.entries("restored")) == 0 {
		t.Errorf("the study ended with %+v after %d restored checkpoints\n%s\n%s", p, len(s.entries("restored")), first.Output(), second.Output())
	}
	if len(s.entries("refused")) == 0 || len(s.entries("reported")) > 0 || len(s.entries("failing")) == 0 {
		t.Errorf("an undeclared metric was refused %v and reported %v, and failures were %v", s.entries("refused"), s.entries("reported"), s.entries("failing"))
	}
	for _, one := range []*launch.Process{without, keyed} {
		if strings.Contains(one.Output(), "leased") {
			t.Errorf("a worker outside ran a trial:\n%s", one.Output())
		}
	}
	if heard, kept := at.found(t); len(heard)+len(kept) > 0 || at.encrypted == 0 {
		t.Errorf("the server heard %v, and keeps %v, with %d encrypted files", heard, kept, at.encrypted)
	}
	if bytes.Contains(at.heard.Bytes(), []byte(secret)) {
		t.Error("the key crossed the server")
	}
	k.audited(t, s, first, second)

	// The same in the clear: all of it is found, on a worker that is none of these machines.
	clear.rewrite("system: off\n", "")
	at.must("study", "create", clear.file, "--watch")
	if list := k.attestations(t, clear); len(list) > 0 || strings.Contains(at.must("study", "show", clear.name), "Confidential") {
		t.Errorf("trials in the clear have %+v", list)
	}
	heard, kept := at.found(t)
	for _, canary := range at.canaries {
		if !slices.Contains(heard, canary) && !slices.Contains(kept, canary) {
			t.Errorf("of %s nothing is found in the clear", canary)
		}
	}
	if strings.Contains(first.Output()+second.Output(), "study=clear") || !strings.Contains(without.Output(), "leased") {
		t.Error("the study in the clear ran elsewhere")
	}
}

// attestations are those of the study's trials, as its server tells.
func (k *keeper) attestations(t *testing.T, s study) (list []trial.Attestation) {
	t.Helper()
	for _, one := range read[protocol.TrialPage](t, k.at.must("study", "trials", s.name, "--json")).Trials {
		if one.Attestation != nil {
			list = append(list, *one.Attestation)
		}
	}
	return list
}

// attesting waits until people see that a trial asks for its key, of which nothing has begun.
func (k *keeper) attesting(t *testing.T, s study) {
	t.Helper()
	until(t, "a trial that is attesting", func() bool {
		page := read[protocol.TrialPage](t, k.at.must("study", "trials", s.name, "--json"))
		at := slices.IndexFunc(page.Trials, func(one protocol.RankedTrial) bool { return one.Attesting() })
		if at < 0 {
			return false
		}
		one := page.Trials[at]
		shown := k.at.must("study", "trial", s.name, fmt.Sprint(one.Number))
		return one.State == trial.Leased && one.Attestation.LeaseEpoch == one.LeaseEpoch &&
			strings.Contains(shown, "asks the broker for its key") && strings.Contains(shown, ": attesting since") &&
			strings.Contains(k.at.must("study", "trials", s.name), "leased (attesting)") && strings.Contains(k.at.must("study", "show", s.name), "asked for by 1 now")
	})
}

// audited checks that each lease of the study had a release of its own, which the broker
// signed, and that its word is in the trials' history.
func (k *keeper) audited(t *testing.T, s study, machines ...*launch.Process) {
	t.Helper()
	leased := 0
	for _, one := range machines {
		leased += strings.Count(one.Output(), "msg=leased")
	}
	lines := strings.Split(strings.TrimSpace(cli(t, nil, "keys", "audit", "--data", filepath.Join(k.folder, "broker")).stdout), "\n")[1:]
	released := len(slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "TEST released") }))
	if released != leased || leased < 9 {
		t.Errorf("%d releases for %d leases:\n%s", released, leased, strings.Join(lines, "\n"))
	}
	_, public, _ := strings.Cut(k.process.Output(), "its signatures: ")
	public, _, _ = strings.Cut(public, "\n")
	kept := filepath.Join(t.TempDir(), "study.json")
	k.at.must("study", "export", s.name, "--format", "json", "--output", kept)
	listed := k.at.must("study", "attestations", s.name, "--verify", public)
	offline := cli(t, []string{"TANDEM_SERVER=http://127.0.0.1:1"}, "study", "attestations", s.name, "--verify", public, "--export", kept)
	if offline.code != 0 || offline.stdout != listed || strings.Count(listed, "TEST") < 9 || strings.Contains(listed, "WRONG") {
		t.Errorf("attestations are\n%s\nand offline, with %d,\n%s%s", listed, offline.code, offline.stdout, offline.stderr)
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"reason":"the broker released the key"`)) {
		t.Error("no worker said that it has the key before its script reported")
	}
	other := "ed25519:" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, one := range map[string]struct{ key, from, to, say string }{
		"another broker":  {key: other, say: "is not the broker's"},
		"a word less":     {public, `"attestation":"`, `"attestations":"`, "no broker's word"},
		"another lease":   {public, `"lease_epoch":1,`, `"lease_epoch":7,`, "the key was released for"},
		"another machine": {public, `"worker":"first-`, `"worker":"third-`, "the key was released for"},
	} {
		if err := os.WriteFile(kept, bytes.ReplaceAll(text, []byte(one.from), []byte(one.to)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cli(t, nil, "study", "attestations", s.name, "--verify", one.key, "--export", kept); got.code != 1 || !strings.Contains(got.stderr, one.say) {
			t.Errorf("%s: %d, %s", name, got.code, got.stderr)
		}
	}
}

// watched looks for the text in the files below the folders until the test ends.
func watched(t *testing.T, text string, folders ...string) (found func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan []string)
	go func() {
		looked, lies := 0, []string(nil)
		for ctx.Err() == nil {
			for _, folder := range folders {
				_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error { // they come and go
					if err != nil || !entry.Type().IsRegular() {
						return nil
					}
					looked++
					if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(text)) {
						lies = append(lies, path)
					}
					return nil
				})
			}
			time.Sleep(5 * time.Millisecond)
		}
		if looked == 0 {
			lies = append(lies, "nothing: there was no file to look at")
		}
		ended <- lies
	}()
	return func() []string {
		cancel()
		return <-ended
	}
}

// secretOf is the key in the file.
func secretOf(t *testing.T, key string) string {
	t.Helper()
	text, err := os.ReadFile(key)
	_, secret, found := strings.Cut(string(text), "AGE-SECRET-KEY-")
	if err != nil || !found {
		t.Fatalf("there is no key in %s: %v", key, err)
	}
	return strings.TrimSpace(secret)
}

// TestMachinesThatAreRefusedGiveTrialsBack: a machine of another image, and one whose broker
// is away, run nothing, fail nothing, and do not ask again and again.
func TestMachinesThatAreRefusedGiveTrialsBack(t *testing.T) {
	t.Parallel()
	s, at := newSealed(t, "refused", "epochs, epochs: {min: 2, max: 2}, eta: 3", 3), newTap(t, "--lease-seconds", "4", "--heartbeat-seconds", "1")
	script := filepath.Join(filepath.Dir(s.file), "train.py")
	failing := strings.Replace(sealedScript, "for epoch in trial.epochs():", "if trial.number == 1:\n    raise SystemExit(WEIGHTS)\nfor epoch in trial.epochs():", 1)
	if err := os.WriteFile(script, []byte(failing), 0o600); err != nil {
		t.Fatal(err)
	}
	key := s.encrypted(t, at)
	k := s.confidential(t, at, key, ", log: tail-on-failure")
	k.start(t)
	other := k.machine(t, "other", evidencetest.Guest{Measurement: [48]byte{1}})
	at.must("study", "create", s.file)
	reason := func(say string) {
		t.Helper()
		until(t, say, func() bool {
			view := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json"))
			if view.Progress.Trials[trial.Failed] > 0 || view.Progress.Epochs > 0 {
				t.Fatalf("it is %+v", view.Progress)
			}
			return slices.ContainsFunc(view.Waits, func(one protocol.Wait) bool { return strings.Contains(one.Reason, say) })
		})
	}
	reason("unknown_measurement")
	until(t, "the broker's code at a trial", func() bool {
		return slices.ContainsFunc(k.attestations(t, s), func(one trial.Attestation) bool {
			return one.State == trial.KeyRefused && one.Code == "unknown_measurement" && one.Refused > 0 && one.Released == 0
		})
	})
	if err := other.Stop(); err != nil {
		t.Error(err)
	}
	if asked := strings.Count(other.Output(), "msg=leased"); asked > 12 {
		t.Errorf("it asked %d times", asked)
	}
	doomed := k.machine(t, "doomed", evidencetest.Guest{}, "TANDEM_FAILPOINTS="+string(failpoint.AgentReporting)+"=kill", "TANDEM_FAILPOINTS_FIRED="+filepath.Join(t.TempDir(), "fired"))
	until(t, "the end of a worker that has the key", doomed.Ended)
	k.process.Kill()
	k.machine(t, "good", evidencetest.Guest{})
	k.attesting(t, s)
	reason("did not answer") // after 30 s, in which no epoch timed out and no lease was lost
	k.start(t)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Trials[trial.Completed] != 2 || p.Trials[trial.Failed] != 1 || p.Disclosed.Refused == 0 || p.Disclosed.Attesting != 0 {
		t.Errorf("the study ended with %+v, %+v", p, p.Disclosed)
	}
	if heard, kept := at.found(t); len(heard)+len(kept) > 0 {
		t.Errorf("the server heard %v, and keeps %v", heard, kept)
	}
	file, err := os.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	identities, err := age.ParseIdentities(file)
	if err != nil {
		t.Fatal(err)
	}
	const end = "-----END AGE ENCRYPTED FILE-----\n"
	first, second, _ := strings.Cut(at.must("study", "log", s.name, "1"), end) // it was tried again
	if !strings.Contains(second, end) {
		t.Errorf("of the second failure there is %q", second)
	}
	tail, err := age.Decrypt(armor.NewReader(strings.NewReader(first+end)), identities...)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(tail); err != nil || strings.TrimSpace(string(text)) != strings.Join(canaries, "") {
		t.Errorf("the end of the failure's output is %q, %v", text, err)
	}
}

// TestTheDoctorOfConfidentialMachines looks at what such a worker needs, and at nothing else.
func TestTheDoctorOfConfidentialMachines(t *testing.T) {
	t.Parallel()
	fake, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	look := func(program string, environment ...string) (code int, found map[string]string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, "doctor", "--confidential", "--json")
		command.Env = append(os.Environ(), environment...)
		answer, _ := command.Output() // whose code is looked at
		var list []struct {
			Name, Reason, Remedy string
			Available            bool
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		found = map[string]string{}
		for _, one := range list {
			if found[one.Name] = "yes"; !one.Available {
				found[one.Name] = one.Reason + " -> " + one.Remedy
			}
		}
		return command.ProcessState.ExitCode(), found
	}
	code, here := look(binary)
	if said := here["confidential machine"]; said != "yes" && (code != 1 || !strings.Contains(said, "Linux 6.7") || !strings.Contains(said, "docs/confidential.md")) {
		t.Errorf("it ends with %d and says %q", code, said)
	}
	socket, amd := filepath.Join(t.TempDir(), "processor"), evidencetest.NewAMDAt(t, "Genoa", time.Now())
	processor(t, socket, func(data [64]byte) *evidence.Evidence { return amd.SNP(t, evidencetest.Guest{}, data) })
	graphics(t, socket+"-gpus", []*evidencetest.Card{evidencetest.NewNVIDIA(t, "GH100", time.Now()).Card(t)})
	code, there := look(fake, "TANDEM_FAKE_ENCLAVE="+socket, "TANDEM_FAKE_GPUS="+socket+"-gpus")
	if len(here) != 5 || len(there) != 5 || there["confidential machine"] != "yes" || there["confidential GPUs"] != "yes" {
		t.Errorf("it looks at %v, and in a machine at %v", here, there)
	}
	if said := here["confidential GPUs"]; said != "yes" && !strings.Contains(said, "gpu.required refuses") { // nothing else needs them
		t.Errorf("of GPUs it says %q", said)
	}
	delete(there, "confidential GPUs")
	delete(here, "confidential GPUs")
	delete(there, "confidential machine")
	delete(here, "confidential machine")
	whole := !slices.ContainsFunc(slices.Collect(maps.Values(there)), func(said string) bool { return said != "yes" })
	if whole != (code == 0) || !maps.Equal(here, there) {
		t.Errorf("it ends with %d, and says %v", code, there)
	}
}
