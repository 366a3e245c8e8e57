package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// The steps of a lease as requests, in their order: whom they ask and what.
var steps = []struct{ name, callee, request, answer string }{
	{"lease", "server", `^POST /api/v1/leases$`, `"lease":{`},
	{"challenge", "broker", `^POST /v1/challenges$`, `"nonce"`},
	{"evidence", "broker", `^POST /v1/releases$`, `"box"`},
	{"whose lease", "server", `^GET /api/v1/studies/.*/trials/\d+$`, `"lease_epoch"`},
	{"key received", "server", `^GET /api/v1/artifacts/`, ``}, // its first use: the data set
	{"report", "server", `^POST /api/v1/trials/.*/reports$`, ``},
	{"upload", "server", `^PUT /api/v1/artifacts/`, ``},
	{"checkpoint", "server", `^POST /api/v1/trials/.*/checkpoint$`, ``},
	{"end", "server", `^POST /api/v1/trials/.*/finish$`, ``},
}

// siege is a site whose processes are killed at each step, each step's request before it
// arrives and after it was answered, once each.
type siege struct {
	*keeper
	t           testing.TB
	dir, binary string
	victim      string
	environment []string // of broker and worker
	front       [2]*httptest.Server

	mutex     sync.Mutex
	processes map[string]*launch.Process // broker, worker, server
	done      map[string]bool            // steps at which the victim was killed
	outputs   strings.Builder            // of workers that were killed
	answers   [][]byte                   // to challenges, which the broker was sent
	lost      int                        // answers with a key that never arrived
	quiet     bool                       // no lease has ended since the last kill
	again     map[string]int             // what the broker says to an answer that is sent twice
}

// front passes requests on, and kills.
func (s *siege) pass(callee, to string) *httptest.Server {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	made := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		s.mutex.Lock()
		worker := s.processes["worker"]
		s.mutex.Unlock()
		s.kill(callee, r, "before", nil)
		send := func() (int, http.Header, []byte) {
			// Who was asked goes on when who asked is dead.
			request, _ := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, "http://"+to+r.URL.RequestURI(), bytes.NewReader(body))
			request.Header = r.Header.Clone()
			answer, err := client.Do(request)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer answer.Body.Close()
			said, err := io.ReadAll(answer.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			return answer.StatusCode, answer.Header, said
		}
		isAnswer := callee == "broker" && r.URL.Path == "/v1/releases"
		if isAnswer {
			s.mutex.Lock()
			s.answers = append(s.answers, body)
			s.mutex.Unlock()
		}
		status, header, said := send()
		if status/100 == 2 {
			s.kill(callee, r, "after", said)
		}
		if isAnswer && status == http.StatusOK { // somebody recorded it
			if worker.Ended() { // it was killed while its lease was looked at
				s.mutex.Lock()
				s.lost++
				s.mutex.Unlock()
			}
			_, _, refusal := send()
			s.refused(refusal)
		}
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write(said)
	}))
	s.t.Cleanup(made.Close)
	return made
}

func (s *siege) refused(said []byte) {
	var refusal struct{ Code string }
	_ = json.Unmarshal(said, &refusal)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.again[refusal.Code]++
}

// kill kills the victim if this is a step at which it was not. A call of the killed
// process, or to it, has no answer.
func (s *siege) kill(callee string, r *http.Request, when string, said []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range steps {
		name := one.name + ", " + when
		matches, _ := regexp.MatchString(one.request, r.Method+" "+r.URL.Path)
		if !matches || one.callee != callee || when == "after" && !bytes.Contains(said, []byte(one.answer)) {
			continue
		}
		quiet := s.quiet
		s.quiet = quiet && (one.name != "end" || when == "before")
		if s.done[name] || quiet && one.name != "key received" { // a worker keeps data sets
			continue
		}
		process := s.processes[s.victim]
		if process.Ended() {
			continue // it was killed, and comes back
		}
		s.done[name], s.quiet = true, true
		process.Kill()
		if s.victim == "worker" {
			s.outputs.WriteString(process.Output())
		}
		asker := "worker"
		if one.name == "whose lease" {
			asker = "broker"
		}
		if s.victim != callee && s.victim != asker {
			return // it is none of their conversation
		}
		if one.name == "evidence" && when == "after" {
			s.lost++
		}
		panic(http.ErrAbortHandler)
	}
}

func (s *siege) start(who string) {
	s.t.Helper()
	environment := slices.Concat([]string{"TANDEM_SERVER=" + s.front[0].URL, "TANDEM_TOKEN=" + s.at.token}, s.environment)
	var line []string
	switch who {
	case "server":
		s.at.start()
		s.mutex.Lock()
		s.processes[who] = s.at.server.Process
		s.mutex.Unlock()
		return
	case "broker":
		line = []string{"keys", "serve", "--data", filepath.Join(s.folder, "broker"), "--listen", s.listen, "--identity", filepath.Join(s.folder, "workers.key"),
			"--policy", filepath.Join(s.folder, "policy.json"), "--owner", s.owner, "--test-root", filepath.Join(s.folder, "root.pem"), "--check-leases"}
	case "worker":
		line = slices.Concat([]string{"worker", "--probe", "never", "--scratch", filepath.Join(s.dir, "scratch"), "--drain", "5s", "--name", "guest", "--slots", "1", "--confidential", "auto",
			"--broker", s.front[1].URL, "--broker-token", filepath.Join(s.folder, "broker", "token"), "--policy", s.policy}, opened(s.t))
	}
	process, err := launch.Start(s.binary, environment, line...)
	if err != nil {
		s.t.Fatal(err)
	}
	endsWith(s.t, process)
	s.mutex.Lock()
	s.processes[who] = process
	s.mutex.Unlock()
	if who == "broker" {
		until(s.t, "the broker", func() bool {
			return process.Ended() || strings.Contains(process.Output(), "machines show the token")
		})
	}
}

// processor answers at a socket as that of a machine.
func processor(t testing.TB, socket string, sign func(data [64]byte) *evidence.Evidence) {
	t.Helper()
	answering(t, socket, 64, func(data []byte) any { return sign([64]byte(data)) })
}

// graphics answers at a socket as the GPUs of a machine, two at most.
func graphics(t testing.TB, socket string, cards []*evidencetest.Card) {
	t.Helper()
	answering(t, socket, 64, func(nonces []byte) any {
		list := []evidence.GPU{}
		for i, card := range cards {
			list = append(list, card.Shows(t, [32]byte(nonces[32*i:])))
		}
		return list
	})
}

func answering(t testing.TB, socket string, size int, answer func(asked []byte) any) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for from, err := listener.Accept(); err == nil; from, err = listener.Accept() {
			asked := make([]byte, size)
			if _, err := io.ReadFull(from, asked); err == nil {
				_ = json.NewEncoder(from).Encode(answer(asked))
			}
			_ = from.Close()
		}
	}()
}

// TestKilledAtEachStepNoKeyGoesTwice kills the server, the broker or the worker at each step
// of a confidential lease. All trials complete, none fails. A challenge lets one key go at
// most. A lease receives one key at most: another release for it is that of a new challenge,
// because the answer to the one before was lost.
func TestKilledAtEachStepNoKeyGoesTwice(t *testing.T) {
	t.Parallel()
	fake, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	for victim, expected := range map[string]struct {
		steps  []string // that cannot be: its data set is fetched once, and a worker asks after its start
		points []failpoint.Point
	}{
		"server": {},
		"broker": {steps: []string{"key received, after"}, points: []failpoint.Point{failpoint.BrokerTaken, failpoint.BrokerWritten, failpoint.BrokerSealed}},
		"worker": {steps: []string{"lease, before", "key received, after"}},
	} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			besiege(t, fake, victim, expected.steps, expected.points)
		})
	}
}

func besiege(t *testing.T, fake, victim string, without []string, points []failpoint.Point) {
	const trials = 20
	study := newSealed(t, "besieged-"+victim, "epochs, epochs: {min: 2, max: 2}, eta: 3", trials)
	plain := newSite(t, "--lease-seconds", "4", "--heartbeat-seconds", "1")
	at := &tap{site: plain}
	s := &siege{keeper: study.confidential(t, at, study.encrypted(t, at), ""), t: t, binary: fake, victim: victim, done: map[string]bool{}, again: map[string]int{}}
	s.processes = map[string]*launch.Process{"server": plain.server.Process}
	var err error
	if s.dir, err = os.MkdirTemp("/dev/shm", "tandem-e2e-"); err != nil {
		t.Skip("there is no folder in memory")
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	socket, fired := filepath.Join(s.dir, "processor"), filepath.Join(s.dir, "fired")
	processor(t, socket, func(data [64]byte) *evidence.Evidence { return s.amd.SNP(t, evidencetest.Guest{}, data) })
	s.environment = []string{"TANDEM_FAKE_ENCLAVE=" + socket, "TANDEM_FAILPOINTS_FIRED=" + fired}
	var armed []string
	for _, point := range points {
		armed = append(armed, string(point)+"=kill")
	}
	s.environment = append(s.environment, "TANDEM_FAILPOINTS="+strings.Join(armed, ","))
	for _, one := range steps {
		for _, when := range []string{"before", "after"} {
			name := one.name + ", " + when
			if slices.ContainsFunc(without, func(left string) bool { return strings.HasPrefix(name, left) }) {
				s.done[name] = true
			}
		}
	}
	s.front = [2]*httptest.Server{s.pass("server", plain.listen), s.pass("broker", s.listen)}
	s.start("broker")
	s.start("worker")
	began := time.Now()
	at.must("study", "create", study.file)
	watch, err := launch.Start(binary, plain.environment(), "study", "watch", study.name, "--json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Kill)
	until(t, "the end of the study", func() bool {
		for _, who := range []string{"server", "broker", "worker"} {
			s.mutex.Lock()
			process := s.processes[who]
			s.mutex.Unlock()
			if process.Ended() {
				t.Logf("%5.1f s: %s is started anew", time.Since(began).Seconds(), who)
				s.start(who)
			}
		}
		return watch.Ended()
	})
	for _, one := range steps {
		for _, when := range []string{"before", "after"} {
			if !s.done[one.name+", "+when] {
				t.Errorf("nothing was killed at: %s, %s", one.name, when)
			}
		}
	}
	for _, point := range points {
		if _, err := os.Stat(fired + "." + string(point)); err != nil {
			t.Errorf("nothing was killed at: %v", err)
		}
		if point != failpoint.BrokerTaken { // the line was written
			s.lost++
		}
	}
	said := "\n" + watch.Output() // first what it says of the server that it cannot reach
	found := read[result](t, said[max(strings.Index(said, "\n{"), 0):])
	if p := found.Study.Progress; p.Trials[trial.Completed] != trials || p.Created != trials || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	books := at.books(study.name)
	for _, one := range books.Trials {
		if one.Epochs != 2 || one.Failures != 0 {
			t.Errorf("trial %d has %d epochs and %d failures", one.Number, one.Epochs, one.Failures)
		}
	}
	s.settled(t, study)
}

// settled checks the broker's books after the siege.
func (s *siege) settled(t *testing.T, study study) {
	t.Helper()
	for _, answer := range s.answers { // whoever has recorded them
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.listen+"/v1/releases", bytes.NewReader(answer))
		token, failed := os.ReadFile(filepath.Join(s.folder, "broker", "token"))
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		answered, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(answered.Body)
		_ = answered.Body.Close()
		s.refused(said)
	}
	for code := range s.again {
		if code != "nonce_used" && code != "nonce_unknown" {
			t.Errorf("an answer that was sent again got %q: %v", code, s.again)
		}
	}
	public, err := broker.Public(filepath.Join(s.folder, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	// What left the broker, by challenge and by lease, and what arrived.
	nonces, released, received, newest := map[string]int{}, map[string]int{}, map[string]int{}, map[int]int64{}
	if _, _, err := broker.ReadLog(filepath.Join(s.folder, "broker"), public, func(_ broker.Line, one release.Result) {
		if one.Code != "" {
			return
		}
		nonces[string(one.Nonce)]++
		at := one.Request
		released[fmt.Sprintf("trial=%s-%d lease=%d", at.Study, at.Trial, at.Lease)]++
		if at.Lease < newest[at.Trial] {
			t.Errorf("trial %d: a key went to lease %d after %d", at.Trial, at.Lease, newest[at.Trial])
		}
		newest[at.Trial] = at.Lease
	}); err != nil {
		t.Error(err)
	}
	for nonce, times := range nonces {
		if times > 1 {
			t.Errorf("%d keys went by the challenge %x", times, nonce)
		}
	}
	said := regexp.MustCompile(`the broker released the key" (trial=\S+ lease=\d+)`)
	for _, one := range said.FindAllStringSubmatch(s.outputs.String()+s.processes["worker"].Output(), -1) {
		received[one[1]]++
	}
	arrived := 0
	for one, times := range received {
		if arrived += times; times > 1 || released[one] < 1 {
			t.Errorf("%s: %d keys came of %d releases", one, times, released[one])
		}
	}
	// A worker that no server answers in time, as on a busy machine, gives its lease up, and
	// takes no key for it any more.
	forgone, without := regexp.MustCompile(`(?:lost the lease|the end of the lease was not taken)" (trial=\S+ lease=\d+)`), 0
	for _, one := range forgone.FindAllStringSubmatch(s.outputs.String()+s.processes["worker"].Output(), -1) {
		without += max(0, released[one[1]]-received[one[1]])
	}
	if lost := len(nonces) - arrived; arrived < 20 || lost < s.lost || lost > s.lost+without {
		t.Errorf("%d keys left, %d came, %d were lost on the way, and %d were for leases that were given up:\n%v\n%v", len(nonces), arrived, s.lost, without, released, received)
	}
	if audit := cli(t, nil, "keys", "audit", "--data", filepath.Join(s.folder, "broker")); audit.code != 0 || strings.Count(audit.stdout, "TEST released") != len(nonces) {
		t.Errorf("the audit ends with %d: %s%s", audit.code, audit.stdout, audit.stderr)
	}
	s.at.must("study", "attestations", study.name, "--verify", policy.Signer(public))
}
