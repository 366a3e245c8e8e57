package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// patient is until, and tells what the servers said where it was in vain.
func patient(t *testing.T, what string, servers []*launch.Server, condition func() bool) {
	t.Helper()
	came := false
	defer func() {
		for _, server := range servers {
			if !came {
				t.Logf("the server at %s said:\n%s", server.URL, server.Output())
			}
		}
	}()
	until(t, what, condition)
	came = true
}

// pair is two servers on one database; the second one, which stands by at
// first, is the one that everybody talks to.
type pair struct {
	*site
	database *launch.Database
	address  string
	servers  []*launch.Server
	folders  []string // of their data
}

// newDatabase is a PostgreSQL server, and the address of an empty database on it.
func newDatabase(t *testing.T) (*launch.Database, string) {
	t.Helper()
	database, err := launch.NewDatabase(t.Context())
	if errors.Is(err, launch.ErrNoPostgreSQL) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Remove(); err != nil {
			t.Error(err)
		}
	})
	address, err := database.Create(t.Context(), "tandem")
	if err != nil {
		t.Fatal(err)
	}
	return database, address
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{}
	p.database, p.address = newDatabase(t)
	first, second := p.serve(t), p.serve(t)
	if first.Token == "" || second.Token != "" || !strings.Contains(second.Output(), "stands by") {
		t.Fatalf("the first server said:\n%s\nthe second:\n%s", first.Output(), second.Output())
	}
	p.site = &site{t: t, listen: strings.TrimPrefix(second.URL, "http://"), data: t.TempDir(), server: second, token: first.Token}
	return p
}

// serve starts one more server.
func (p *pair) serve(t *testing.T) *launch.Server {
	t.Helper()
	folder := t.TempDir()
	server, err := launch.Serve(binary, folder, "--database", p.address, "--allow-hook-address", "127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	p.servers, p.folders = append(p.servers, server), append(p.folders, folder)
	return server
}

// completed waits for the study's end and checks what came of it.
func (p *pair) completed(t *testing.T, s study) {
	t.Helper()
	patient(t, "the study's end", p.servers, func() bool {
		shown := p.cli("study", "show", s.name, "--json")
		return shown.code == 0 && read[protocol.StudyView](t, shown.stdout).Status.Over()
	})
	found := read[result](t, p.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Created != 12 {
		t.Errorf("the study is %s after %d trials", found.Study.Status, found.Study.Progress.Created)
	}
	checkBooks(t, s, p.books(s.name))
}

func (p *pair) acknowledged(t *testing.T, s study, epochs int) {
	t.Helper()
	patient(t, "an acknowledged epoch more", p.servers, func() bool { return len(s.entries("acknowledged")) >= epochs })
}

// TestTheOwnerOfTheDatabaseIsKilled kills the server that owns the database
// while a study runs: the other one takes over, and nobody loses anything.
func TestTheOwnerOfTheDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "owner-killed", threeRungs, "0.05", 12)
	p := newPair(t)
	told := newListener(t)
	told.open(false)
	p.must("hook", "create", "team", "--all", "--tell", "new_best", "--url", told.URL)
	p.worker("--slots", "2")
	p.must("study", "create", s.file)
	p.acknowledged(t, s, 8)
	patient(t, "a message that is refused", p.servers, func() bool { return told.first() != "" })
	p.servers[0].Kill()
	told.open(true)
	p.acknowledged(t, s, len(s.entries("acknowledged"))+1)
	patient(t, "the message from the new owner", p.servers, func() bool { return len(told.types(s.name)) > 0 })
	third := p.serve(t) // one that stands by again
	p.completed(t, s)
	checkTrainedOnce(t, s)
	if err := p.servers[1].Stop(); err != nil { // hands over
		t.Errorf("the second server did not end cleanly: %v\n%s", err, p.servers[1].Output())
	}
	p.site.listen = strings.TrimPrefix(third.URL, "http://")
	if text := p.must("study", "replay", s.name); !strings.Contains(text, "came out the same") {
		t.Errorf("the third server replays:\n%s", text)
	}
	if err := third.Stop(); err != nil {
		t.Errorf("the third server did not end cleanly: %v\n%s", err, third.Output())
	}
}

// TestTheDatabaseCrashesWhileAStudyRuns crashes the database's server again and
// again: nothing that was acknowledged is lost, and the study goes on by itself.
func TestTheDatabaseCrashesWhileAStudyRuns(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "database-crashes", threeRungs, "0.05", 12)
	p := newPair(t)
	p.worker("--slots", "2")
	p.must("study", "create", s.file)
	for _, epochs := range []int{4, 10, 16} {
		p.acknowledged(t, s, epochs)
		p.database.Stop()
		if err := p.database.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.acknowledged(t, s, len(s.entries("acknowledged"))+1)
	}
	p.completed(t, s)
	checkTrainedOnce(t, s)
	for _, server := range p.servers {
		if err := server.Stop(); err != nil {
			t.Errorf("the server at %s did not end cleanly: %v\n%s", server.URL, err, server.Output())
		}
	}
}

// TestTheLastTokenIsReplacedInTheDatabase makes one beside a running server.
func TestTheLastTokenIsReplacedInTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	made := p.cli("token", "create", "--scope", "admin", "--name", "again", "--database", p.address)
	if made.code != 0 || !strings.Contains(made.stderr, "in no server's audit log") {
		t.Fatalf("exit code %d, and it says %q", made.code, made.stderr)
	}
	p.token = strings.TrimSpace(made.stdout)
	if list := p.must("token", "list"); !strings.Contains(list, "again") || !strings.Contains(list, "first start") {
		t.Errorf("the tokens are:\n%s", list)
	}
	// The server that owns the database makes one on its own machine too.
	if made = p.cli("token", "create", "--scope", "viewer", "--name", "beside", "--data", p.folders[0]); made.code != 0 || !strings.HasPrefix(made.stdout, "tandem_viewer_") {
		t.Errorf("with the folder of the owner: exit code %d, %s", made.code, made.stderr)
	}
	// Who has a folder of studies and names a database is told that they are not in it.
	const apart = "nothing of that is in --database"
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "tandem.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	late, err := launch.Serve(binary, folder, "--database", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(late.Kill)
	if !strings.Contains(late.Output(), apart) || strings.Contains(p.servers[0].Output(), apart) {
		t.Errorf("a server with a folder of studies says\n%s", late.Output())
	}
	for _, c := range []struct{ flags, says string }{
		{"--database /srv/tandem", "postgres://"},
		{"--database postgres://u:hunter2@127.0.0.1:1/x", "--database"},
		{"--advertise http://here", "--database"},
		{"--database postgres://x/y --advertise here", "--advertise"},
		{"--database postgres://x/y --database-password-file /nowhere", "--database-password-file"},
	} {
		got := cli(t, nil, append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, strings.Fields(c.flags)...)...)
		if got.code == 0 || !strings.Contains(got.stderr, c.says) || strings.Contains(got.stderr, "hunter2") {
			t.Errorf("tandem serve %s: exit code %d, %s", c.flags, got.code, got.stderr)
		}
	}
}
