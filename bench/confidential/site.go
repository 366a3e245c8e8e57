package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
)

// nobodys is the policy of a machine that does not exist.
const nobodys = `{"version": 1, "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "none", "releases": {"per_hour": 10000, "total": 10000},
	"tee": {"sev-snp": {"products": {"genoa": {"bootloader": 0, "tee": 0, "snp": 0, "microcode": 0}},
	"measurement": ["000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"]}}}`

// site is a broker, and without a policy of this machine's also the processor of one that
// does not exist: this process signs.
type site struct {
	url, token, policy, socket string
	broker                     *launch.Process
	listener                   net.Listener
}

// unhelped is what the double of a processor tells its test, of which there is none here.
type unhelped struct{ testing.TB }

func (unhelped) Helper()           {}
func (unhelped) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// openSite starts both in the folder, with the key to release.
func (b *bench) openSite(ctx context.Context) (s *site, err error) {
	at := func(name string) string { return filepath.Join(b.folder, name) }
	s = &site{token: at("broker/token")}
	rules, flags := []byte(nobodys), []string{"--test-root", at("root.pem")}
	if b.policy != "" {
		if rules, err = os.ReadFile(b.policy); err != nil {
			return nil, err
		}
		flags = nil
	} else if err := s.pretend(at); err != nil {
		return nil, err
	}
	if err := os.WriteFile(at("policy.yaml"), rules, 0o600); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if _, err := b.tandem(ctx, "keys", "create", "--out", at("owner.key")); err != nil {
		return nil, err
	}
	signed, err := b.tandem(ctx, "policy", "sign", at("policy.yaml"), "--identity", at("owner.key"))
	if err != nil {
		return nil, err
	}
	var owner struct{ Signer string }
	if err := errors.Join(json.Unmarshal([]byte(signed), &owner), os.WriteFile(at("policy.json"), []byte(signed), 0o600)); err != nil {
		return nil, err
	}
	flags = append([]string{"keys", "serve", "--data", at("broker"), "--listen", "127.0.0.1:0", "--identity", b.key, "--policy", at("policy.json"), "--owner", owner.Signer, "--check-leases"}, flags...)
	if s.broker, err = launch.Start(b.binary, []string{"TANDEM_SERVER=" + b.server.URL, "TANDEM_TOKEN=" + b.server.Token}, flags...); err != nil {
		return nil, errors.Join(err, s.close())
	}
	for said := ""; !strings.Contains(said, "machines show the token"); said = s.broker.Output() {
		if time.Sleep(10 * time.Millisecond); s.broker.Ended() {
			return nil, errors.Join(fmt.Errorf("the broker: %s", said), s.close())
		}
	}
	_, err = fmt.Sscanf(s.broker.Output()[strings.Index(s.broker.Output(), "Broker on "):], "Broker on %s\npolicy %64s", &s.url, &s.policy)
	return s, err
}

// pretend starts the processor.
func (s *site) pretend(at func(name string) string) (err error) {
	amd := evidencetest.NewAMDAt(unhelped{}, "Genoa", time.Now())
	s.socket = at("processor")
	if s.listener, err = net.Listen("unix", s.socket); err != nil {
		return err
	}
	go s.sign(amd)
	return os.WriteFile(at("root.pem"), amd.Chain(), 0o600)
}

// sign is the processor.
func (s *site) sign(amd *evidencetest.AMD) {
	for from, err := s.listener.Accept(); err == nil; from, err = s.listener.Accept() {
		var data [64]byte
		if _, err := io.ReadFull(from, data[:]); err == nil {
			_ = json.NewEncoder(from).Encode(amd.SNP(unhelped{}, evidencetest.Guest{}, data)) // who is gone asks again
		}
		_ = from.Close()
	}
}

func (s *site) close() error {
	if s == nil {
		return nil
	}
	if s.broker != nil {
		s.broker.Kill()
	}
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}
