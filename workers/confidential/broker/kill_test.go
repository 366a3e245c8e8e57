package broker_test

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// brokerUnder is a running "tandem keys serve" with a machine that it allows.
func brokerUnder(t *testing.T, binary, folder, harm string) (*launch.Process, *machine) {
	t.Helper()
	process, err := launch.Start(binary, []string{"TANDEM_FAILPOINTS=" + harm, "TANDEM_FAILPOINTS_FIRED=" + filepath.Join(folder, "fired")}, "keys", "serve", "--data", filepath.Join(folder, "broker"), "--listen", "127.0.0.1:0",
		"--identity", filepath.Join(folder, "workers.key"), "--policy", filepath.Join(folder, "policy.json"), "--owner", owner(t, folder), "--test-root", filepath.Join(folder, "root.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	for !strings.Contains(process.Output(), "machines show the token") {
		if process.Ended() {
			t.Fatal(process.Output())
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, url, _ := strings.Cut(process.Output(), "Broker on ")
	url, _, _ = strings.Cut(url, "\n")
	return process, &machine{t: t, url: url, token: token(t, filepath.Join(folder, "broker"))}
}

func owner(t *testing.T, folder string) string {
	t.Helper()
	keys, err := sealed.Read(filepath.Join(folder, "owner.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Signer(keys.Signer().Public().(ed25519.PublicKey))
}

// Wherever a broker is killed, a challenge lets at most one key go, each key that a
// machine has is in the log, and the next broker goes on.
func TestAKilledBrokerReleasesNoKeyTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	binary, err := launch.BuildForTests(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, harm := range []string{"broker.taken=kill", "broker.written=kill", "broker.sealed=kill", "broker.taken=error", "broker.written=panic"} {
		t.Run(harm, func(t *testing.T) {
			folder, now := t.TempDir(), time.Now()
			amd := evidencetest.NewAMDAt(t, "Genoa", now)
			workers, _, _ := sealed.Create(false)
			mine, _, _ := sealed.Create(false)
			for name, text := range map[string]string{"workers.key": workers, "owner.key": mine, "root.pem": string(amd.Chain())} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := sealed.Read(filepath.Join(folder, "owner.key"), nil)
			if err != nil {
				t.Fatal(err)
			}
			signed, _ := encode(parsed(t).Sign(keys.Signer()))
			if err := os.WriteFile(filepath.Join(folder, "policy.json"), signed, 0o600); err != nil {
				t.Fatal(err)
			}
			process, m := brokerUnder(t, binary, folder, harm)
			m.amd, m.request = amd, release.Request{Worker: "w", Study: "s", Trial: 1, Lease: 1, Policy: parsed(t).ID()}
			made, code, err := m.ask()
			if code != "" || err != nil {
				t.Fatal(code, err)
			}
			var released broker.Released
			if code, err := m.post("/v1/releases", made.answer, &released); err == nil && code != "unavailable" {
				t.Fatalf("nothing broke: %q", code)
			}
			if strings.HasSuffix(harm, "kill") {
				_ = process.Wait(time.Minute)
				process, m = brokerUnder(t, binary, folder, harm)
				m.amd, m.request = amd, release.Request{Worker: "w", Study: "s", Trial: 1, Lease: 1, Policy: parsed(t).ID()}
			}
			if code, err := m.post("/v1/releases", made.answer, &released); err != nil || code != "nonce_used" && code != "nonce_unknown" {
				t.Errorf("the challenge again: %q, %v", code, err)
			}
			if got, code, err := m.get(nil); got != workers || code != "" || err != nil {
				t.Errorf("a new challenge: %q, %v", code, err)
			}
			if err := process.Stop(); err != nil {
				t.Errorf("%v: %s", err, process.Output())
			}
			public, err := broker.Public(filepath.Join(folder, "broker"))
			if err != nil {
				t.Fatal(err)
			}
			went := 0
			if _, _, err := broker.ReadLog(filepath.Join(folder, "broker"), public, func(_ broker.Line, one release.Result) {
				if one.Code == "" {
					went++
				}
				if !one.Test {
					t.Error("a result by a test root is not marked")
				}
			}); err != nil {
				t.Error(err)
			}
			if want := map[bool]int{true: 1, false: 2}[strings.HasPrefix(harm, "broker.taken")]; went != want {
				t.Errorf("the log has %d releases, not %d", went, want)
			}
			if strings.Contains(process.Output(), strings.TrimSpace(workers[strings.Index(workers, "AGE-SECRET"):])) {
				t.Error("the key is in the output")
			}
		})
	}
}
