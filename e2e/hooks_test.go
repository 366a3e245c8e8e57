package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/study/hook"
)

// listener is who hooks tell. While it is not open it refuses all.
type listener struct {
	*httptest.Server
	mutex   sync.Mutex
	is      bool
	refused string // the first message
	got     []hook.Message
}

func newListener(t *testing.T) *listener {
	l := &listener{is: true}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message hook.Message
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if l.is {
			l.got = append(l.got, message)
			return
		}
		if l.refused == "" {
			l.refused = message.ID
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) open(is bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.is = is
}

func (l *listener) first() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.refused
}

// types are those of the messages about the study that were taken, in order.
func (l *listener) types(study string) (list []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, one := range l.got {
		if one.Data.Study == study {
			list = append(list, string(one.Type))
		}
	}
	return list
}

// TestAHookIsToldAfterTheServerWasKilled kills the server between the commit of a new best
// and its delivery. The second study has no new best, so none is told of it.
func TestAHookIsToldAfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "told", "epochs, epochs: {min: 1, max: 1}, eta: 3", "0.01", 2)
	none := newStudy(t, "nothing-best", "epochs, epochs: {min: 1, max: 1}, eta: 3", "0.01", 1)
	none.rewrite("train.py", "missing.py")
	for _, one := range []study{s, none} {
		content, err := os.ReadFile(one.file)
		if err == nil {
			err = os.WriteFile(one.file, append(content, "hooks: {name: team, tell: [new_best, done]}\n"...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at, told := newSite(t, "--allow-hook-address", "127.0.0.0/8"), newListener(t)
	told.open(false)
	if got := at.cli("study", "create", s.file); got.code != 2 || !strings.Contains(got.stderr, "tandem hook create") {
		t.Errorf("a study that names no hook: exit code %d, %s", got.code, got.stderr)
	}
	at.must("hook", "create", "team", "--url", told.URL+"/secret")
	at.must("study", "create", s.file)
	at.worker()
	at.must("study", "watch", s.name, "--json")
	until(t, "a message that is refused", func() bool { return told.first() != "" })
	at.server.Kill()
	told.open(true)
	at.start()
	until(t, "what was not told", func() bool { return slices.Contains(told.types(s.name), "done") })
	if types := told.types(s.name); types[0] != "new_best" || told.got[0].ID != told.first() {
		t.Errorf("told %q, the first as %s and not as %s", types, told.got[0].ID, told.first())
	}
	at.must("study", "create", none.file)
	until(t, "the end of the other study", func() bool { return slices.Contains(told.types(none.name), "done") })
	if types := told.types(none.name); len(types) != 1 {
		t.Errorf("of a study without a result is told %q", types)
	}
	shown := at.must("study", "hooks", s.name) + at.must("study", "show", s.name, "--json") + at.must("study", "export", s.name, "--format", "json") + at.must("hook", "list") + at.server.Output()
	if !strings.Contains(shown, "200 OK") || strings.Contains(shown, "/secret") {
		t.Errorf("shown is:\n%s", shown)
	}
}
