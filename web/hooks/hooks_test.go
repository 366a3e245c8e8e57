package hooks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/hooks"
)

// receiver is who is told. It refuses what comes while it is down.
type receiver struct {
	*httptest.Server
	mutex    sync.Mutex
	down     bool
	refused  []string // ids
	messages []hook.Message
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var message hook.Message
		if err := json.NewDecoder(request.Body).Decode(&message); err != nil || message.ID != request.Header.Get("webhook-id") {
			t.Errorf("%v: %v", message, err)
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.down {
			r.refused = append(r.refused, message.ID)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.messages = append(r.messages, message)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(down bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.down = down
}

// told are the types and trials of what came.
func (r *receiver) told() (list []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, one := range r.messages {
		text := string(one.Type)
		if one.Data.Trial != nil {
			text += fmt.Sprint(" ", *one.Data.Trial)
		}
		list = append(list, text)
	}
	return list
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("three minutes passed without %s", what)
		}
	}
}

// house is a store with studies whose logs are written by hand.
type house struct {
	t        *testing.T
	store    *memory.Store
	mutex    sync.Mutex
	sequence map[string]int64
	ahead    time.Duration // of the service's clock
	still    time.Time     // at which that clock stands, but for ahead
	mail     hooks.Mail
	logged   strings.Builder
}

func (h *house) now() time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.still.IsZero() {
		return h.still.Add(h.ahead)
	}
	return time.Now().Add(h.ahead)
}

func newHouse(t *testing.T) *house {
	return &house{t: t, store: memory.New(), sequence: map[string]int64{}}
}

// serve tells hooks until the test ends or the function is called.
func (h *house) serve() (*hooks.Service, func()) {
	h.t.Helper()
	service, err := hooks.New(h.t.Context(), hooks.Options{
		Now: h.now, Logger: slog.New(slog.NewTextHandler(&h.logged, nil)), Store: h.store, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Programs: []string{"/bin/true"}, Mail: h.mail,
		Newest: func() map[string]int64 {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			newest := map[string]int64{}
			maps.Copy(newest, h.sequence)
			return newest
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	running.Go(func() { service.Run(ctx) })
	end := func() { stop(); running.Wait() }
	h.t.Cleanup(end)
	return service, end
}

func (h *house) create(service *hooks.Service, name, to string, all bool) hook.IssuedHook {
	h.t.Helper()
	made, err := service.Create(h.t.Context(), hook.HookRequest{Hook: definition.Hook{Name: name}, Kind: hook.Webhook, URL: to, All: all})
	if err != nil {
		h.t.Fatal(err)
	}
	return made
}

func (h *house) study(id, more string) {
	h.t.Helper()
	def, err := studyfile.Parse([]byte("name: "+id+"\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {epochs: {min: 1, max: 3}}\nstop: {trials: 10}\n"+more), studyfile.YAML)
	if err != nil {
		h.t.Fatal(err)
	}
	now := time.Now()
	h.apply(journal.Change{Insert: &journal.Study{ID: id, Definition: def, Status: protocol.StudyRunning, Created: now, Since: &now}})
	h.log(id, journal.Event{Kind: journal.StudyCreated}, nil)
}

func (h *house) apply(change journal.Change) {
	h.t.Helper()
	if err := h.store.Apply(h.t.Context(), change); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) log(study string, event journal.Event, data any) {
	h.t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.sequence[study]++
	event.Study, event.Sequence, event.At = study, h.sequence[study], time.Now()
	if !h.still.IsZero() {
		event.At = h.still.Add(h.ahead)
	}
	event.Data, _ = json.Marshal(data)
	h.apply(journal.Change{Events: []journal.Event{event}})
}

// trial logs that a trial was measured, or failed where it has no values.
func (h *house) trial(study string, number, rung int, values ...trial.Float) {
	h.t.Helper()
	one := trial.Trial{Number: number}
	state, reason := trial.Paused, "measured"
	if len(values) == 0 {
		state, reason = trial.Failed, "exit code 1\nwith its output"
	} else {
		one.Results = []trial.Result{{Rung: rung, Values: values}}
	}
	h.log(study, journal.Event{Kind: journal.TrialState, Trial: trial.ID(fmt.Sprintf("%s-%d", study, number)), State: string(state), Reason: reason}, one)
}

func (h *house) done(study string) {
	h.t.Helper()
	stored, err := h.store.Study(h.t.Context(), study)
	if err != nil {
		h.t.Fatal(err)
	}
	now := h.now()
	stored.Status, stored.Finished, stored.Since = protocol.StudyCompleted, &now, nil
	h.apply(journal.Change{Update: &stored})
	h.log(study, journal.Event{Kind: journal.StatusChange, State: "completed", Reason: "the search is finished"}, nil)
}

func TestAReceiverIsToldWhatHappens(t *testing.T) {
	t.Parallel()
	h, r, quiet := newHouse(t), newReceiver(t), newReceiver(t)
	service, _ := h.serve()
	h.create(service, "team", r.URL, false)
	h.create(service, "quiet", quiet.URL, false)
	h.study("s", "hooks:\n  - {name: team, failures: 2, spent: 0.6, tell: [new_best, done, failures, spent, held, limit]}\n  - {name: quiet, tell: done}")
	for i, one := range []struct {
		rung   int
		values []trial.Float
	}{{0, []trial.Float{3}}, {0, []trial.Float{4}}, {1, []trial.Float{5}}, {0, []trial.Float{1}}, {}, {}, {1, []trial.Float{5}}} {
		h.trial("s", i, one.rung, one.values...)
	}
	h.log("s", journal.Event{Kind: journal.TrialState, Trial: "s-0", State: string(trial.Running), Reason: "stalled: no report"}, trial.Trial{Stalled: true})
	h.log("s", journal.Event{Kind: journal.TrialState, Trial: "s-0", State: string(trial.Paused)}, trial.Trial{Results: []trial.Result{{Rung: 2, Values: []trial.Float{0}, Violation: 1}}})
	for range 2 { // the same exclusion, said twice
		h.log("s", journal.Event{Kind: journal.TrialState, Trial: "s-1", State: string(trial.Queued), Reason: "failed\nworker w failed trials; it gets none of it until noon"}, trial.Trial{})
	}
	h.done("s")
	want := []string{"new_best 0", "new_best 2", "failures 5", "spent", "limit 0", "limit 0", "held", "done"}
	until(t, "all messages", func() bool { return len(r.told()) >= len(want) && len(quiet.told()) > 0 })
	if got := r.told(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := quiet.told(); !slices.Equal(got, []string{"done"}) {
		t.Errorf("who wants to know the end alone is told %q", got)
	}
	until(t, "the count", func() bool {
		list := service.Of(t.Context(), h.view("s"))
		return len(list) == 2 && list[1].Told == len(want) && list[1].Answer == "200 OK" && list[1].Tried != nil
	})
}

func (h *house) view(study string) protocol.StudyView {
	h.t.Helper()
	stored, err := h.store.Study(h.t.Context(), study)
	if err != nil {
		h.t.Fatal(err)
	}
	return protocol.StudyView{ID: stored.ID, Owner: access.Administrators, Definition: stored.Definition, Finished: stored.Finished}
}

// A study that is transferred is told to the hooks of who has it, and to nobody else's.
func TestATransferredStudyIsToldToWhoHasIt(t *testing.T) {
	t.Parallel()
	h, hers, his := newHouse(t), newReceiver(t), newReceiver(t)
	service, _ := h.serve()
	for user, to := range map[string]string{"alice": hers.URL, "bob": his.URL} {
		ctx := access.WithCaller(t.Context(), access.Caller{Owner: user, Sight: access.Own})
		if _, err := service.Create(ctx, hook.HookRequest{Hook: definition.Hook{Name: "team"}, Kind: hook.Webhook, URL: to, All: true}); err != nil {
			t.Fatal(err)
		}
	}
	transfer := func(owner string) {
		stored, err := h.store.Study(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		stored.Owner = owner
		h.apply(journal.Change{Update: &stored, Transfer: true})
		h.log("s", journal.Event{Kind: journal.Transferred}, protocol.Ownership{Owner: owner})
	}
	told := func(r *receiver, want string) {
		t.Helper()
		until(t, want, func() bool { return slices.Contains(r.told(), want) })
	}
	h.study("s", "")
	transfer("alice")
	h.trial("s", 0, 0, 5)
	told(hers, "new_best 0")
	hers.set(true)
	h.trial("s", 1, 0, 4)
	until(t, "a refusal", func() bool {
		hers.mutex.Lock()
		defer hers.mutex.Unlock()
		return len(hers.refused) > 0
	})
	transfer("bob")
	h.trial("s", 2, 0, 3)
	told(his, "new_best 2")
	hers.set(false)
	h.mutex.Lock()
	h.ahead = time.Hour // what was refused would be tried again
	h.mutex.Unlock()
	for number := 3; number < 6; number++ { // each in a later turn of both
		h.trial("s", number, 0, trial.Float(-number))
		told(his, fmt.Sprint("new_best ", number))
	}
	if got := hers.told(); !slices.Equal(got, []string{"new_best 0"}) {
		t.Errorf("alice is told %q", got)
	}
}

// Whoever serves the data next tells what was not taken, under the same id.
func TestWhatWasNotTakenIsToldByTheNextServer(t *testing.T) {
	t.Parallel()
	h, r := newHouse(t), newReceiver(t)
	r.set(true)
	service, end := h.serve()
	h.create(service, "team", r.URL, true)
	h.study("s", "")
	h.trial("s", 0, 0, 1)
	h.done("s")
	var refused string
	until(t, "a refusal that is shown", func() bool {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if len(r.refused) > 0 {
			refused = r.refused[0]
		}
		list := service.Of(t.Context(), h.view("s"))
		return len(list) == 1 && list[0].Failing != nil && list[0].Answer == "503 Service Unavailable"
	})
	end()
	r.set(false)
	h.mutex.Lock()
	h.sequence = map[string]int64{} // the study is over: the next server does not load it
	h.mutex.Unlock()
	_, end = h.serve()
	until(t, "both messages", func() bool { return len(r.told()) == 2 })
	if got := r.told(); !slices.Equal(got, []string{"new_best 0", "done"}) || r.messages[0].ID != refused {
		t.Errorf("told %q, the first as %s and not as %s", got, r.messages[0].ID, refused)
	}
	end()
	if text := h.logged.String(); strings.Contains(text, r.URL) {
		t.Errorf("the log has the URL:\n%s", text)
	}
}

func TestAMessageIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	h, r := newHouse(t), newReceiver(t)
	r.set(true)
	service, _ := h.serve()
	h.create(service, "team", r.URL, true)
	h.study("s", "")
	h.trial("s", 0, 0, 1)
	given := func() hook.HookDelivery { return append(service.Of(t.Context(), h.view("s")), hook.HookDelivery{})[0] }
	until(t, "a refusal", func() bool { return given().Failing != nil })
	h.mutex.Lock()
	h.ahead = 25 * time.Hour
	h.mutex.Unlock()
	until(t, "the end of its patience", func() bool { return given().Dropped == 1 && given().Waiting == 0 })
	r.set(false)
	h.trial("s", 1, 1, 1)
	until(t, "the next message", func() bool { return len(r.told()) == 1 && given().Failing == nil })
}

func TestADeadReceiverHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h, r := newHouse(t), newReceiver(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	service, _ := h.serve()
	h.create(service, "dead", "http://"+silent.Addr().String(), true)
	h.create(service, "team", r.URL, true)
	h.study("s", "")
	h.study("other", "")
	h.done("s")
	h.done("other")
	until(t, "both ends", func() bool { return len(r.told()) == 2 })
}

func TestNobodySeesSecretsAndOthersHooks(t *testing.T) {
	t.Parallel()
	h, r := newHouse(t), newReceiver(t)
	service, _ := h.serve()
	made := h.create(service, "team", r.URL+"/path?token=hidden", true)
	list, _ := service.Hooks(t.Context())
	h.study("s", "")
	shown, _ := json.Marshal([]any{list, service.Of(t.Context(), h.view("s"))})
	if text := string(shown); len(list) != 1 || strings.Contains(text, "hidden") || strings.Contains(text, made.Secret) || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Errorf("shown: %s", text)
	}
	bob := access.WithCaller(t.Context(), access.Caller{Owner: "bob", Sight: access.Own, Holder: "user:bob"})
	if list, _ := service.Hooks(bob); len(list) > 0 || service.Delete(bob, "team") == nil || len(service.Of(bob, h.view("s"))) > 0 {
		t.Errorf("bob sees %v, or deletes it", list)
	}
	if _, err := service.Test(bob, "team"); err == nil {
		t.Error("bob tests a hook of another")
	}
	if err := service.Check(bob, definition.Definition{Hooks: []definition.Hook{{Name: "team"}}}); err == nil {
		t.Error("bob's study tells a hook of another")
	}
	command := hook.HookRequest{Hook: definition.Hook{Name: "run"}, Kind: hook.Command, Command: []string{"/bin/true"}, All: true}
	if _, err := service.Create(bob, command); err == nil {
		t.Error("bob has a command run")
	}
	if _, err := service.Create(t.Context(), command); err != nil {
		t.Error(err)
	}
	if got, err := service.Test(t.Context(), "run"); err != nil || !got.Told {
		t.Errorf("%v %v", got, err)
	}
	command.Name, command.Command = "other", []string{"/bin/sh", "-c", "true"}
	if _, err := service.Create(t.Context(), command); err == nil {
		t.Error("a program is run that was not allowed")
	}
	if service.Check(t.Context(), definition.Definition{Hooks: []definition.Hook{{Name: "run"}}}) == nil {
		t.Error("a study file names a command")
	}
	if err := service.Delete(t.Context(), "team"); err != nil {
		t.Error(err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	h, r := newHouse(t), newReceiver(t)
	away := httptest.NewServer(http.RedirectHandler(r.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	service, _ := h.serve()
	h.create(service, "away", away.URL, false)
	if got, err := service.Test(t.Context(), "away"); err != nil || got.Told || got.Answer != "307 Temporary Redirect" || len(r.told()) > 0 {
		t.Errorf("%v %v", got, err)
	}
}

func TestWhichAddressesAreReached(t *testing.T) {
	t.Parallel()
	for address, open := range map[string]bool{
		"93.184.215.14:443": true, "[2606:2800:21f::1]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.1.1:443": false, "172.16.0.1:443": false, "169.254.169.254:80": false, "0.0.0.0:443": false,
		"100.100.100.200:80": false, "168.63.129.16:80": false, "224.0.0.1:443": false, "255.255.255.255:443": false, "[::1]:443": false, "[::]:443": false,
		"[fd00:ec2::254]:80": false, "[fe80::1%eth0]:443": false, "[::ffff:10.0.0.1]:443": false, "[::ffff:127.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false, "[2002:7f00:1::]:443": false, "[::7f00:1]:443": false,
	} {
		if err := hooks.MayReach(address, true); (err == nil) != open {
			t.Errorf("%s: %v", address, err)
		}
		if hooks.MayReach(address, false) == nil {
			t.Errorf("%s is reached without encryption", address)
		}
	}
	if err := hooks.MayReach("[::ffff:10.1.2.3]:80", false, netip.MustParsePrefix("10.1.2.0/24")); err != nil {
		t.Error(err)
	}
}

// What would never be told is refused when it is made, not when it should be told.
func TestAHookThatIsNeverToldIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	service, _ := h.serve() // it may reach 127.0.0.0/8
	strict, err := hooks.New(t.Context(), hooks.Options{Now: h.now, Store: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string][2]bool{ // whether the strict one takes it, and the other
		"https://example.org/hook": {true, true}, "https://93.184.215.14/": {true, true}, "http://example.org/hook": {false, true}, "http://93.184.215.14/": {false, false},
		"https://127.0.0.1:8080/": {false, true}, "http://127.0.0.1/": {false, true}, "http://localhost:9/": {false, true}, "https://LocalHost./": {false, true},
		"https://10.1.2.3/": {false, false}, "https://[::1]/": {false, false}, "https://169.254.169.254/latest": {false, false},
	} {
		for at, one := range []*hooks.Service{strict, service} {
			_, err := one.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: fmt.Sprintf("h%d", at)}, Kind: hook.Slack, URL: to})
			if told := problem.Is(err, problem.Invalid) && strings.Contains(err.Error(), "url: is never told: "); (err == nil) != want[at] || told == want[at] {
				t.Errorf("%s, %d: %v", to, at, err)
			}
			_ = one.Delete(t.Context(), fmt.Sprintf("h%d", at))
		}
	}
}

// The receiver of the documents takes what is signed with its key, and nothing else.
func TestTheDocumentedReceiverChecksSignatures(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python")
	}
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`\]\(\.\./(examples/[^)]*\.py)\)`).FindSubmatch(page)
	if path == nil {
		t.Fatal("docs/hooks.md names no receiver")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	h := newHouse(t)
	service, _ := h.serve()
	made, forged := h.create(service, "team", "http://"+address, false), h.create(service, "forged", "http://"+address, false)
	_, port, _ := net.SplitHostPort(address)
	command := exec.CommandContext(t.Context(), python, "../../"+string(path[1]))
	command.Env = append(os.Environ(), "HOOK_KEY="+made.Secret, "PORT="+port)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = io.Discard
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	until(t, "the receiver", func() bool {
		got, err := service.Test(t.Context(), "team")
		return err == nil && got.Told
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "this is a test of hook team") {
		t.Errorf("it prints %q: %v", line, err)
	}
	if got, err := service.Test(t.Context(), forged.Name); err != nil || got.Told || got.Answer != "401 Unauthorized" {
		t.Errorf("what another key signed: %v %v", got, err)
	}
	id, old := "msg_1", fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, strings.NewReader("{}"))
	request.Header = http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {old}, "Webhook-Signature": {hooks.Sign(made.Secret, id, old, []byte("{}"))}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("what is an hour old: %s", response.Status)
	}
}

// The example of Standard Webhooks 1.0.0 (its reference libraries test it).
func TestTheSignatureIsTheStandards(t *testing.T) {
	t.Parallel()
	got := hooks.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("it is %s", got)
	}
}
