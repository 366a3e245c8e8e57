package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// as is the environment of whoever has the token.
func (s *site) as(token string) []string {
	return []string{"TANDEM_SERVER=http://" + s.listen, "TANDEM_TOKEN=" + strings.TrimSpace(token)}
}

// TestUsersShareAServer lets two users, an administrator and a worker meet on
// one server, by the command line.
func TestUsersShareAServer(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "shared", nineEpochs, "0.01", 1)
	at := newSite(t)
	alice := at.as(at.must("token", "create", "--scope", "user", "--name", "alice"))
	bob := at.as(at.must("token", "create", "--scope", "user", "--name", "bob"))
	rack := at.as(at.must("token", "create", "--scope", "worker", "--worker", "rack-7"))

	must := func(as []string, args ...string) string {
		t.Helper()
		got := cli(t, as, args...)
		if got.code != 0 {
			t.Fatalf("tandem %v: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
		return got.stdout
	}
	must(alice, "study", "create", s.file)
	for _, args := range [][]string{{"study", "show", "shared"}, {"study", "stop", "shared"}, {"study", "delete", "shared", "--yes"}, {"study", "export", "alice:shared"}} {
		if got := cli(t, bob, args...); got.code != 1 || !strings.Contains(got.stderr, "there is no study") {
			t.Errorf("bob's tandem %v: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	if list := must(bob, "study", "list"); !strings.Contains(list, "No studies yet") {
		t.Errorf("bob sees\n%s", list)
	}
	must(bob, "study", "create", s.file) // under the same name, which tells him nothing
	must(bob, "study", "stop", "shared")

	// A worker's token is one machine's.
	stranger, err := launch.Start(binary, rack, "worker", "--probe", "never", "--name", "desk", "--scratch", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Wait(2 * time.Minute); err == nil || !strings.Contains(stranger.Output(), `belongs to the worker "rack-7"`) {
		t.Errorf("a worker of another name ended with %v:\n%s", err, stranger.Output())
	}
	worker, err := launch.Start(binary, rack, append([]string{"worker", "--probe", "never", "--name", "rack-7", "--scratch", t.TempDir(), "--drain", "5s"}, opened(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := worker.Stop(); err != nil {
			t.Errorf("the worker: %v\n%s", err, worker.Output())
		}
	})
	result := read[result](t, must(alice, "study", "watch", "shared", "--json"))
	if result.Study.Owner != "alice" || result.Study.Status != protocol.StudyCompleted {
		t.Errorf("the study of %s is %s", result.Study.Owner, result.Study.Status)
	}

	// An administrator sees both, and chooses.
	var studies struct{ Studies []protocol.StudyView }
	for selection, want := range map[string]int{"": 2, "--mine": 0, "--owner=alice": 1, "--owner=nobody": 0} {
		args := strings.Fields("study list --json " + selection)
		if err := json.Unmarshal([]byte(at.must(args...)), &studies); err != nil || len(studies.Studies) != want {
			t.Errorf("tandem %v: %d studies, %v", args, len(studies.Studies), err)
		}
	}
	if list := at.must("study", "list"); !strings.Contains(list, "OWNER") || !strings.Contains(list, "alice") {
		t.Errorf("the list does not name the owners:\n%s", list)
	}
	if text := at.must("study", "show", "alice:shared"); !strings.Contains(text, "of alice") {
		t.Errorf("show says\n%s", text)
	}
	if list := must(alice, "study", "list", "--mine"); !strings.Contains(list, "shared") {
		t.Errorf("alice's own studies are\n%s", list)
	}
	if got := at.cli("study", "transfer", "alice:shared", "--to", "bob"); got.code != 1 || !strings.Contains(got.stderr, "bob has a study of this name already") {
		t.Errorf("a study to who has one of its name: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	at.must("study", "delete", "bob:shared", "--yes")
	if got := at.cli("study", "transfer", "alice:shared", "--to", "rob"); got.code != 2 || !strings.Contains(got.stderr, "must be a user of this server") {
		t.Errorf("a study to nobody: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if said := at.must("study", "transfer", "alice:shared", "--to", "bob", "--name", "hers"); said != "Study hers is bob's\n" {
		t.Errorf("transfer says %q", said)
	}
	at.server.Kill() // what was said is stored
	at.start()
	if got := cli(t, alice, "study", "show", "shared"); got.code != 1 || !strings.Contains(got.stderr, "there is no study") {
		t.Errorf("alice still sees it: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if said := must(bob, "study", "replay", "hers"); !strings.Contains(said, "came out the same") {
		t.Errorf("bob's replay says %s", said)
	}
}

// TestAWorkerOfWhoHadTheStudyLosesIt in the middle of a trial, which goes on at a worker of
// who has it now, with all that was acknowledged. Under another name of hers it goes on.
func TestAWorkerOfWhoHadTheStudyLosesIt(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "given", nineEpochs, "0.3", 1)
	held := filepath.Join(ledgers(t), "held") // the script trains on once it is gone
	s.rewrite("environment: {", "environment: {HELD: "+held+", ")
	hold := func() {
		if err := os.WriteFile(held, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	letGo := func() {
		if err := os.Remove(held); err != nil {
			t.Fatal(err)
		}
	}
	at := newSite(t)
	worker := func(user string) (as []string) {
		as = at.as(at.must("token", "create", "--scope", "user", "--name", user))
		process, err := launch.Start(binary, as, append([]string{"worker", "--probe", "never", "--name", user + "-desk", "--scratch", t.TempDir(), "--drain", "5s"}, opened(t)...)...)
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, process)
		return as
	}
	if got := cli(t, worker("alice"), "study", "create", s.file); got.code != 0 {
		t.Fatal(got.stderr)
	}
	acknowledged := func(count int) {
		until(t, "epochs that are acknowledged", func() bool { return len(s.entries("acknowledged")) >= count })
	}
	acknowledged(1)
	hold()
	at.must("study", "transfer", "alice:given", "--to", "alice", "--name", "mine")
	letGo()
	acknowledged(len(s.entries("acknowledged")) + 2)
	hold()
	script := s.entries("trained")[0].pid
	for _, one := range s.entries("trained") {
		if one.pid != script {
			t.Errorf("under another name epoch %d is trained by another process", one.epoch)
		}
	}
	bob := worker("bob")
	until(t, "bob's worker", func() bool { return len(at.registered()) == 2 })
	at.must("study", "transfer", "alice:mine", "--to", "bob")
	gone(t, script)
	letGo()
	found := cli(t, bob, "study", "watch", "mine", "--json")
	if status := read[result](t, found.stdout).Study.Status; status != protocol.StudyCompleted {
		t.Errorf("the study is %s", status)
	}
	books := at.books("bob:mine")
	checkBooks(t, s, books)
	if tr := books.Trials[0]; tr.Epochs != 9 || tr.Losses != 1 || tr.Explained != 1 || tr.Failures != 0 || len(tr.LostOn) != 0 {
		t.Errorf("its trial has %d epochs, %d losses, %d explained, %d failures", tr.Epochs, tr.Losses, tr.Explained, tr.Failures)
	}
	theirs, his := false, at.registered()["bob-desk"].ID
	for _, event := range read[struct{ Events []protocol.Event }](t, at.must("study", "export", "bob:mine", "--format", "json")).Events {
		theirs = theirs || event.Kind == "study_owner" && strings.Contains(event.Reason, "to bob")
		if theirs && (event.Kind == "report" || event.State == "leased") && event.Worker != his {
			t.Errorf("worker %s has a trial of it: %+v", event.Worker, event)
		}
	}
	if !theirs {
		t.Error("its log knows of no transfer")
	}
}

// TestAGroupSharesAStudy lets the members of a group see and steer a study that is
// shared with it, over a restart, and nobody before or after.
func TestAGroupSharesAStudy(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "ours", nineEpochs, "0.01", 1)
	at := newSite(t)
	users := map[string][]string{}
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		users[name] = at.as(at.must("token", "create", "--scope", "user", "--name", name))
	}
	if said := at.must("group", "set", "ml", "--member", "alice:viewer", "--member", "bob:viewer", "--member", "carol:editor"); strings.Contains(said, "No token is") {
		t.Errorf("of users that are there it says\n%s", said)
	}
	if said := at.must("group", "set", "vacant", "--member", "alice:viewer", "--member", "karol:viewer"); !strings.Contains(said, "No token is user karol's now") || strings.Contains(said, "user alice's") {
		t.Errorf("of a user that is not there it says\n%s", said)
	}
	expect := func(when, user string, code int, says string, args ...string) {
		t.Helper()
		if got := cli(t, users[user], args...); got.code != code || !strings.Contains(got.stdout+got.stderr, says) {
			t.Errorf("%s, tandem %v of %s: exit code %d, not %d with %q\n%s%s", when, args, user, got.code, code, says, got.stdout, got.stderr)
		}
	}
	expect("at first", "alice", 0, "Created study ours", "study", "create", s.file)
	hidden := func(when string) {
		t.Helper()
		for _, user := range []string{"bob", "carol", "dave"} {
			expect(when, user, 1, "there is no study", "study", "show", "alice:ours")
			expect(when, user, 0, "No studies yet", "study", "list")
		}
	}
	hidden("before it is shared")
	if got := at.cli("study", "show", "ours"); got.code != 1 || !strings.Contains(got.stderr, "a user's is OWNER:NAME") {
		t.Errorf("an administrator who leaves the owner out reads\n%s", got.stderr)
	}
	expect("with a group of others", "dave", 1, "there is no study", "study", "share", "alice:ours", "--group", "ml")
	expect("with a group that is not there", "alice", 1, `there is no group "vision"`, "study", "share", "ours", "--group", "vision")
	expect("by its owner", "alice", 0, "is shared with ml", "study", "share", "ours", "--group", "ml")
	if err := at.server.Stop(); err != nil {
		t.Fatal(err)
	}
	at.start()
	for _, user := range []string{"bob", "carol"} {
		expect("shared", user, 0, "alice", "study", "list")
		expect("shared", user, 0, "of alice", "study", "show", "alice:ours")
		expect("shared", user, 1, "this takes the role owner", "study", "delete", "alice:ours", "--yes")
	}
	expect("shared", "dave", 1, "there is no study", "study", "show", "alice:ours")
	expect("shared", "bob", 1, "your role on it is viewer: this takes the role editor", "study", "pause", "alice:ours")
	expect("shared", "carol", 0, "", "study", "pause", "alice:ours")
	expect("shared", "carol", 0, "", "study", "resume", "alice:ours")
	expect("again", "alice", 0, "is shared with nobody", "study", "share", "ours", "--private")
	hidden("once it is private again")
	expect("from its start", "carol", 0, "Created study ours", "study", "create", s.file, "--group", "ml")
	expect("from its start", "bob", 0, "of carol", "study", "show", "carol:ours")
}

func TestTokensExpireAndAreRevoked(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	short := at.as(at.must("token", "create", "--scope", "user", "--name", "carol", "--expires", "1ms")) // over before the next process starts
	long := at.must("token", "create", "--scope", "user", "--name", "dave", "--expires", "720h")
	if got := cli(t, short, "study", "list"); got.code != 1 || !strings.Contains(got.stderr, "expired") {
		t.Errorf("an expired token: exit code %d, %s", got.code, got.stderr)
	}
	if got := cli(t, at.as(long), "study", "list"); got.code != 0 {
		t.Errorf("a token of 720 h: %s", got.stderr)
	}
	var list struct{ Tokens []protocol.TokenView }
	if err := json.Unmarshal([]byte(at.must("token", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, token := range list.Tokens {
		if token.Name == "dave" && (token.Expires == nil || token.Expires.Sub(token.Created) != 720*time.Hour || token.Used == nil) {
			t.Errorf("%+v", token)
		}
		if token.Name == "carol" && token.Used != nil {
			t.Errorf("an expired token was used: %+v", token)
		}
	}
	for text, want := range map[string]string{at.must("token", "list"): "LAST USED", at.must("token", "revoke", strings.Split(long, "_")[2]): "was revoked"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if got := cli(t, at.as(long), "study", "list"); got.code != 1 || !strings.Contains(got.stderr, "revoked") {
		t.Errorf("a revoked token: exit code %d, %s", got.code, got.stderr)
	}
	for _, wrong := range [][]string{
		{"token", "create", "--expires", "-1h"}, {"token", "create", "--scope", "user"}, {"token", "create", "--scope", "user", "--name", "Not A Name"},
		{"token", "create", "--scope", "viewer", "--worker", "rack"}, {"token", "create", "--scope", "root"}, {"token", "revoke", long},
	} {
		if got := at.cli(wrong...); got.code != 2 {
			t.Errorf("tandem %v: exit code %d\n%s%s", wrong, got.code, got.stdout, got.stderr)
		}
	}
}

func TestALinkOpensOneStudyUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "linked", nineEpochs, "0.01", 1)
	at := newSite(t)
	at.must("study", "create", s.file)
	status, answer := at.ask("POST", "/api/v1/studies/linked/links", `{"name":"reviewers","ttl_seconds":7200}`)
	made := read[protocol.IssuedLink](t, answer)
	page, secret, found := strings.Cut(made.Path, "#token=")
	if status != 201 || !found || !strings.HasPrefix(page, "/login?next=%2Fstudies%2F") || secret != made.Token || made.Expires.Sub(made.Created) != 2*time.Hour {
		t.Fatalf("%d, the link is %+v", status, made)
	}
	if got := cli(t, at.as(secret), "study", "show", "linked"); got.code != 0 || !strings.Contains(got.stdout, "linked") {
		t.Errorf("with the link the study is: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := cli(t, at.as(secret), "study", "stop", "linked"); got.code != 1 {
		t.Errorf("a link stops the study: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	links := read[struct{ Links []protocol.LinkView }](t, at.get("/api/v1/studies/linked/links")).Links
	if len(links) != 1 || links[0].Name != "reviewers" || links[0].Used == nil || links[0].ID != made.ID {
		t.Fatalf("the links are %+v", links)
	}
	if status, answer := at.ask("DELETE", "/api/v1/studies/linked/links/"+made.ID, ""); status != 204 {
		t.Fatal(status, answer)
	}
	if got := cli(t, at.as(secret), "study", "show", "linked"); got.code != 1 || !strings.Contains(got.stderr, "revoked") {
		t.Errorf("a revoked link: exit code %d, %s", got.code, got.stderr)
	}
}

// auditLog is the log of the site's server, a line of JSON for each action.
func auditLog(t *testing.T, at *site) (lines string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(at.data, "audit", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(content)
	}
	return lines
}

func TestTheAuditLogTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "audited", nineEpochs, "0.01", 1)
	at := newSite(t)
	alice := at.must("token", "create", "--scope", "user", "--name", "alice")
	if got := cli(t, at.as(alice), "study", "create", s.file); got.code != 0 {
		t.Fatal(got.stderr)
	}
	if got := cli(t, at.as(alice), "token", "list"); got.code != 1 {
		t.Errorf("a user lists the tokens: %s", got.stdout)
	}
	at.server.Kill() // what was logged is there after that
	at.start()
	list := auditLog(t, at)
	for _, want := range []string{"create-token", "user:alice", "create-study", "alice:audited", "refused", "list-tokens"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	if strings.Contains(list, strings.Split(alice, "_")[3]) {
		t.Error("the log has a secret")
	}
	if text := at.must("audit", "verify", "--data", at.data); !strings.Contains(text, "as they were written") || !strings.Contains(text, at.data) {
		t.Errorf("verify says\n%s", text)
	}
	files, err := filepath.Glob(filepath.Join(at.data, "audit", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "audit")
	if err := os.MkdirAll(damaged, 0o700); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), "alice:audited", "mallory:none", 1)
	if err := os.WriteFile(filepath.Join(damaged, filepath.Base(files[0])), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := at.cli("audit", "verify", "--data", filepath.Dir(damaged)); got.code != 1 || !strings.Contains(got.stderr, "line 5: it was changed") {
		t.Errorf("a line that was changed: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}
