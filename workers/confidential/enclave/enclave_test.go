package enclave

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

const rules = `{"version": 1, "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "none", "releases": {"per_hour": 50, "total": 50},
	"tee": {"sev-snp": {"products": {"genoa": {"bootloader": 0, "tee": 0, "snp": 0, "microcode": 0}},
	"measurement": ["000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"]}}}`

// site is a broker with its key, and an enclave whose processor does not exist.
type site struct {
	*Enclave
	recipient string
	lease     protocol.Lease
	public    ed25519.PublicKey
	calls     atomic.Int64
	// broken is what the next calls are answered with.
	broken atomic.Int64
	guest  evidencetest.Guest
	shown  atomic.Int64 // how often GPUs were
	blind  bool         // the GPUs are gone
	asked  [][64]byte
}

func open(t *testing.T) *site { return openWith(t, rules) }

func openWith(t *testing.T, rules string) *site {
	t.Helper()
	found, err := policy.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	key, recipient, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	amd, folder := evidencetest.NewAMD(t, "Genoa"), t.TempDir()
	roots, nvidia := amd.Roots(), evidencetest.NewNVIDIA(t, "GB100", evidencetest.Now)
	roots.NVIDIA = nvidia.Root()
	keeper, err := broker.Open(broker.Options{Folder: folder, Policy: found, Key: []byte(key), Roots: roots, Now: func() time.Time { return evidencetest.Now }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{recipient: recipient, public: keeper.Public()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.calls.Add(1); s.broken.Add(-1) >= 0 {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		keeper.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); _ = keeper.Close() })
	token, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		t.Fatal(err)
	}
	s.Enclave = &Enclave{options: Options{Broker: server.URL, Token: strings.TrimSpace(string(token)), Policy: found.ID(), Logger: slog.New(slog.DiscardHandler)}, tee: evidence.SNP, client: server.Client(), known: found}
	s.sign = func(data [64]byte) ([]byte, []byte, error) {
		s.asked = append(s.asked, data)
		made := amd.SNP(t, s.guest, data)
		return made.Report, made.Certificate, nil
	}
	card := nvidia.Card(t)
	s.gpus = func(nonce func(int) [32]byte) ([]evidence.GPU, error) {
		s.shown.Add(1)
		if s.blind {
			return nil, errors.New("the driver is gone")
		}
		return []evidence.GPU{card.Shows(t, nonce(0))}, nil
	}
	s.lease = protocol.Lease{StudyID: "s1", Number: 3, LeaseEpoch: 2, Recipients: []string{recipient}, Confidential: &definition.Confidential{Policy: found.ID()}}
	return s
}

func TestAKeyIsReleasedForEachLease(t *testing.T) {
	s := open(t)
	for range 2 {
		keys, result, err := s.Keys(t.Context(), "worker-1", s.lease, nil)
		if err != nil || keys.Recipients()[0] != s.recipient || keys.Refuses(s.lease.Recipients) != "" {
			t.Fatalf("%v, %v", keys, err)
		}
		found, err := release.Read(result, s.public)
		if want := (release.Request{Worker: "worker-1", Study: "s1", Trial: 3, Lease: 2, Policy: s.options.Policy}); err != nil || found.Request != want || found.Code != "" {
			t.Errorf("the result is %+v, %v", found, err)
		}
	}
	if len(s.asked) != 2 || s.asked[0] == s.asked[1] {
		t.Errorf("%d reports, the second is the first: a key pair was used twice", len(s.asked))
	}
	s.broken.Store(2)
	if _, _, err := s.Keys(t.Context(), "worker-1", s.lease, nil); err != nil {
		t.Errorf("a broker that was away for a moment: %v", err)
	}
}

var gpuRules = `{"gpu": {"required": true, "arch": ["blackwell"], "rim": {"driver": ["550.*"], "vbios": ["96.*"], "measurements": {"0": ["` + strings.Repeat("0", 96) + `"]}}}, ` + rules[1:]

// GPUs are shown where the policy looks at them, and nowhere else. What is missing is said
// at the start, and the broker refuses it.
func TestGPUsAreShownWhereThePolicyLooks(t *testing.T) {
	plain, s := open(t), openWith(t, gpuRules)
	plain.known, s.known = nil, nil // the broker is asked
	for want, one := range map[int64]*site{0: plain, 3: s} {
		for range 2 {
			if _, _, err := one.Keys(t.Context(), "worker-1", one.lease, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.look(t.Context()); err != nil || one.shown.Load() != want || one.calls.Load() != 5 {
			t.Errorf("%v: GPUs were shown %d times, not %d, and the broker was asked %d times", err, one.shown.Load(), want, one.calls.Load())
		}
	}
	s.blind = true
	if err := s.look(t.Context()); err == nil || !strings.Contains(err.Error(), "the policy requires GPUs") || !strings.Contains(err.Error(), "the driver is gone") {
		t.Errorf("at the start it says %v", err)
	}
	if _, _, err := s.Keys(t.Context(), "worker-1", s.lease, nil); Refused(err) != "gpu_missing" {
		t.Errorf("without GPUs: %v", err)
	}
	s.known, s.options.Policy = nil, plain.options.Policy
	if _, err := s.rules(t.Context()); Refused(err) != "policy_changed" {
		t.Errorf("a broker with another policy: %v", err)
	}
	s.broken.Store(1)
	if err := s.look(t.Context()); err != nil {
		t.Errorf("a broker that is away at the start: %v", err)
	}
}

func TestARefusalKeepsTheBrokersCode(t *testing.T) {
	for code, change := range map[string]func(*site){
		"unknown_measurement":     func(s *site) { s.guest.Measurement[0] = 1 },
		"debug_guest":             func(s *site) { s.guest.Policy.Debug = true },
		"policy_changed":          func(s *site) { s.options.Policy = strings.Repeat("0", 64) },
		"worker_not_confidential": func(s *site) { s.options.Token = "another" },
		"wrong_binding": func(s *site) {
			before := s.sign
			s.sign = func(data [64]byte) ([]byte, []byte, error) { data[0]++; return before(data) }
		},
		"no report can be had": func(s *site) {
			s.sign = func([64]byte) ([]byte, []byte, error) { return nil, nil, errors.New("the module is gone") }
		},
	} {
		t.Run(code, func(t *testing.T) {
			s := open(t)
			change(s)
			keys, result, err := s.Keys(t.Context(), "worker-1", s.lease, nil)
			if err == nil || keys != nil || result != "" || !strings.Contains(err.Error(), code) {
				t.Errorf("got %v", err)
			}
			if s.calls.Load() > 2 {
				t.Errorf("the broker was asked %d times", s.calls.Load())
			}
		})
	}
}

func TestAMachineWithoutAKeyRests(t *testing.T) {
	s := open(t)
	s.guest.Measurement[0] = 1
	_, _, first := s.Keys(t.Context(), "worker-1", s.lease, nil)
	asked := s.calls.Load()
	if _, _, err := s.Keys(t.Context(), "worker-1", s.lease, nil); !errors.Is(err, first) || s.calls.Load() != asked {
		t.Errorf("another slot hears %v, and the broker was asked %d times", err, s.calls.Load())
	}
	s.guest.Measurement[0], s.until = 0, time.Now()
	if s.Rest(t.Context()); s.pause == 0 {
		t.Error("nothing is remembered")
	}
	if _, _, err := s.Keys(t.Context(), "worker-1", s.lease, nil); err != nil || s.pause != 0 {
		t.Errorf("after the rest: %v", err)
	}
}

func TestWaitingForABrokerEndsWithTheLease(t *testing.T) {
	s := open(t)
	s.broken.Store(1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Keys(ctx, "worker-1", s.lease, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyItsOwnStudiesAreRun(t *testing.T) {
	s := open(t)
	plain, other := protocol.Lease{}, s.lease
	other.Confidential = &definition.Confidential{Policy: "another"}
	if s.Refuses(s.lease) != "" || !strings.Contains(s.Refuses(plain), "confidential studies only") || !strings.Contains(s.Refuses(other), "not another") {
		t.Errorf("%q, %q, %q", s.Refuses(s.lease), s.Refuses(plain), s.Refuses(other))
	}
	s.lease.Confidential.Metrics = map[string]definition.Told{"accuracy": {High: 1, Round: 0.001}}
	for say, metrics := range map[string]map[string]definition.Told{
		"":                      {"accuracy": {High: 1, Round: 0.001}, "loss": {High: 9, Round: 1}},
		"accuracy be told as 0": {"accuracy": {High: 1, Round: 0.01}},
		"--allow-metric":        {"loss": {High: 9, Round: 1}},
	} {
		if s.options.Metrics = metrics; (s.Refuses(s.lease) == "") != (say == "") || !strings.Contains(s.Refuses(s.lease), say) {
			t.Errorf("allowed are %v: %q", metrics, s.Refuses(s.lease))
		}
	}
	var none *Enclave
	held := &sealed.Keys{}
	if keys, _, err := none.Keys(t.Context(), "w", plain, held); keys != held || err != nil || none.Refuses(plain) != "" || none.Claim() != nil {
		t.Error("outside of an enclave something is different")
	}
}

func TestBrokersAreReachedInSecret(t *testing.T) {
	for _, url := range []string{"", "keys.example.org", "http://keys.example.org:7172", "ftp://127.0.0.1", "https://keys.example.org?x=1"} {
		if _, err := Open(t.Context(), Options{Broker: url, Root: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "--broker") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := Open(t.Context(), Options{Broker: "https://keys.example.org", Root: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no report can be had") {
		t.Errorf("without a device: %v", err)
	}
}

// kernel is configfs as the device sees it: a folder that has files as soon as it is made.
func kernel(t *testing.T, provider string, files map[string]string) func(in, pattern string) (string, error) {
	return func(in, pattern string) (string, error) {
		at := filepath.Join(t.TempDir(), pattern)
		if err := os.Mkdir(at, 0o700); err != nil {
			return "", err
		}
		files["provider"] = provider
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(at, name), []byte(content), 0o600); err != nil {
				return "", err
			}
		}
		return at, nil
	}
}

func TestReportsComeFromConfigfs(t *testing.T) {
	for name, test := range map[string]struct {
		provider string
		files    map[string]string
		tee, say string
	}{
		"snp":          {provider: "sev_guest\n", files: map[string]string{"generation": "1", "outblob": "report", "auxblob": "certificates"}, tee: evidence.SNP},
		"tdx":          {provider: "tdx_guest\n", files: map[string]string{"generation": "1", "outblob": "report"}, tee: evidence.TDX},
		"another":      {provider: "arm_cca_guest\n", files: map[string]string{"generation": "1", "outblob": "report"}, say: "only those of SEV-SNP and TDX"},
		"no report":    {provider: "sev_guest\n", files: map[string]string{"generation": "1"}, say: "outblob"},
		"not a device": {provider: "sev_guest\n", files: map[string]string{"outblob": "report"}, say: "generation"},
	} {
		t.Run(name, func(t *testing.T) {
			var at string
			made := kernel(t, test.provider, test.files)
			report, certificates, tee, err := ask("", [64]byte{1, 2, 3}, func(in, pattern string) (string, error) {
				var err error
				at, err = made(in, pattern)
				return at, err
			})
			inblob, _ := os.ReadFile(filepath.Join(at, "inblob"))
			if len(inblob) != 64 || inblob[0] != 1 {
				t.Errorf("the kernel was asked for %v", inblob)
			}
			if test.say != "" && (err == nil || !strings.Contains(err.Error(), test.say)) {
				t.Errorf("got %v", err)
			}
			if test.say == "" && (string(report) != "report" || string(certificates) != test.files["auxblob"] || tee != test.tee) {
				t.Errorf("got %s, %s, %s, %v", report, certificates, tee, err) // the error is of files in a folder that is none of configfs
			}
		})
	}
}

func TestNothingOfAScriptIsSaid(t *testing.T) {
	lease := protocol.Lease{Confidential: &definition.Confidential{}}
	for outcome, want := range map[protocol.Outcome]string{protocol.BudgetReached: "", protocol.CommandFailed: "confidential.log", protocol.Interrupted: "early"} {
		end := Quiet(lease, protocol.FinishRequest{Outcome: outcome, Reason: "exit code 7: patient-zero", OutOfGPUMemory: true})
		if end.Outcome != outcome || end.OutOfGPUMemory || strings.Contains(end.Reason, "patient-zero") || strings.Contains(end.Reason, "7") || !strings.Contains(end.Reason, want) {
			t.Errorf("%s: %+v", outcome, end)
		}
	}
	if end := Quiet(lease, protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: `a report was refused: metric_not_declared: "patient-zero"`}); !strings.HasPrefix(end.Reason, "metric_not_declared") || strings.Contains(end.Reason, "patient-zero") {
		t.Errorf("%+v", end)
	}
	if end := Quiet(protocol.Lease{}, protocol.FinishRequest{Reason: "said"}); end.Reason != "said" {
		t.Error("a study that is not confidential is silent")
	}
}

func TestNoFileOfTheDataIsNamed(t *testing.T) {
	said := &fs.PathError{Op: "write", Path: "/dev/shm/tandem-memory-1/new-2/patient zero.csv", Err: syscall.ENOSPC}
	err := Hushed(protocol.Lease{Confidential: &definition.Confidential{}}, fmt.Errorf(`the data set scans: unpack "patient zero.csv": %w`, said))
	if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "patient") || !strings.Contains(err.Error(), "scans") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
	if err := Hushed(protocol.Lease{}, said); err != error(said) || Hushed(protocol.Lease{}, nil) != nil {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfAFailureIsForRecipients(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	lease := protocol.Lease{Recipients: []string{identity.Recipient().String()}, Confidential: &definition.Confidential{Log: definition.LogTail}}
	tail, err := Tail(lease, protocol.CommandFailed, []string{"Traceback", "patient-zero"})
	if err != nil || !lease.Confidential.Keeps(tail) {
		t.Fatalf("%q, %v", tail, err)
	}
	opened, err := age.Decrypt(armor.NewReader(strings.NewReader(tail)), identity)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(opened); err != nil || string(text) != "Traceback\npatient-zero\n" {
		t.Errorf("%q, %v", text, err)
	}
	for name, one := range map[string]struct {
		log     string
		outcome protocol.Outcome
	}{"none": {definition.LogNone, protocol.CommandFailed}, "no failure": {definition.LogTail, protocol.BudgetReached}} {
		lease.Confidential.Log = one.log
		if tail, err := Tail(lease, one.outcome, []string{"x"}); tail != "" || err != nil {
			t.Errorf("%s: %q, %v", name, tail, err)
		}
	}
}

func TestNothingComesToADisk(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	memory, err := os.MkdirTemp("/dev/shm", "tandem-enclave-test-")
	if err != nil {
		t.Skip("there is no folder in memory")
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	for name, test := range map[string]struct{ swaps, scratch, say string }{
		"swap":         {"Filename\tType\n/dev/sda2 partition 1 0\n", memory, "swapoff"},
		"a disk":       {"Filename\tType\n", "/proc", "on a disk"},
		"all is there": {"Filename\tType\n/dev/zram0 partition 1 0\n", memory, ""},
	} {
		if err := os.WriteFile(filepath.Join(root, "proc/swaps"), []byte(test.swaps), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Harden(root, test.scratch); (err == nil) != (test.say == "") || err != nil && !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A study server is told codes, not what else a broker says.
func TestOnlyCodesAreToldOfARefusal(t *testing.T) {
	for code, want := range map[string]string{"unknown_measurement": "unknown_measurement", "Bad Code!": "", strings.Repeat("a", 65): ""} {
		if got := Refused(fmt.Errorf("the broker released no key: %w", evidence.Refuse(code, "why"))); got != want {
			t.Errorf("of %q the server is told %q", code, got)
		}
	}
	if got := Refused(Away{errors.New("it did not answer")}); got != "" {
		t.Errorf("a broker that is away is %q", got)
	}
}
