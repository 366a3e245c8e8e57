package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestTheFleetSaysWhichTandemItIs: requests of workers, boards and launchers name it, and what
// differs from the server's stands beside it.
func TestTheFleetSaysWhichTandemItIs(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(config *api.Config) { config.Version = "1.2" })
	for agent, want := range map[string]string{
		"tandem/1.1": `"version":"1.1","server_version":"1.2"`, "tandem/1.1 (a note)": `"version":"1.1","server_version":"1.2"`,
		"tandem/1.2": `"version":"1.2",`, "tandem-python/1.1": "", "curl/8": "", "tandem/": "", "tandem/" + strings.Repeat("1", 100): "",
	} {
		for path, body := range map[string]string{
			"POST /api/v1/workers": `{"id":"a-worker-of-it","name":"w","slots":1,"machine":{"host":"h","cores":1}}`, "PUT /api/v1/pool/launchers/l": `{"engine":"slurm","every_seconds":1,"shapes":[],"notes":[],"ends":[]}`,
			"POST /api/v1/boards/ask": `{"board":"b","device":"board/b","busy":true,"site":{"machine":"","processor":"p","cores":2,"lowest_hertz":2e9,"highest_hertz":2e9,"memory_bytes":4294967296,"memory_bytes_per_second":1e10}}`,
		} {
			method, path, _ := strings.Cut(path, " ")
			if got := s.admin(method, path, body, "Content-Type", "application/json", "User-Agent", agent); got.status != 200 {
				t.Fatalf("%s", got.body)
			}
		}
		for _, path := range []string{"/api/v1/workers", "/api/v1/pool", "/api/v1/pool/launches", "/api/v1/boards"} {
			got := string(s.admin("GET", path, "", "User-Agent", "tandem/1.3").body)
			if !strings.Contains(got, want) || strings.Count(got, `version"`) != strings.Count(want, `version"`) {
				t.Errorf("%s of %q: %s", path, agent, got)
			}
		}
	}
}

// TestATrialGoesToAWorkerThatKnowsWhatItWants: of three workers one does not know several
// processes, one does, and one does not say, as all did before.
func TestATrialGoesToAWorkerThatKnowsWhatItWants(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(config *api.Config) { config.Version = "1.2" })
	if got := s.admin("POST", "/api/v1/studies", "processes: 4"+smallStudy, "Content-Type", "application/yaml"); got.status != 201 {
		t.Fatalf("%s", got.body)
	}
	register := func(id, version string, features ...string) {
		body := fmt.Sprintf(`{"id":"worker-%s","name":%q,"slots":1,"machine":{"host":"h","cores":4}}`, id, id)
		header := append([]string{"Content-Type", "application/json", "User-Agent", "tandem/" + version}, features...)
		if got := s.admin("POST", "/api/v1/workers", body, header...); got.status != 200 {
			t.Fatalf("%s", got.body)
		}
	}
	leased := func(id string) bool {
		return strings.Contains(string(s.admin("POST", "/api/v1/leases", fmt.Sprintf(`{"worker":"worker-%s"}`, id), "Content-Type", "application/json").body), `"trial_id"`)
	}
	const name = "Tandem-Features"
	register("old", "1.1", name, "datasets precisions secrets")
	waits := func() string { return string(s.admin("GET", "/api/v1/studies/small", "").body) }
	if leased("old") || !strings.Contains(waits(), "worker old is tandem 1.1, which cannot run several processes of one trial: upgrade it") {
		t.Errorf("the study shows %s", waits())
	}
	register("none", "1.1", name, "none")
	if leased("none") {
		t.Error("a worker that knows none of them had the trial")
	}
	register("new", "1.2", name, "processes something-later")
	register("untold", "0.9")
	if !leased("new") || !leased("untold") || strings.Contains(waits(), "worker new") || strings.Contains(waits(), "worker untold") {
		t.Errorf("the others had no trial: %s", waits())
	}
	register("old", "1.2", name, "processes")
	if !leased("old") {
		t.Error("a worker that was upgraded had no trial")
	}
	for _, knows := range [][]protocol.Feature{{"datasets"}, protocol.Features()} {
		if _, err := s.client(auth.Admin).Register(t.Context(), protocol.WorkerRegistration{ID: "worker-client", Name: "client", Slots: 1, Features: knows}); err != nil {
			t.Fatal(err)
		}
		if had := leased("client"); had != (len(knows) > 1) {
			t.Errorf("a worker that knows %v had the trial: %t", knows, had)
		}
	}
}

// TestWhatTheServerDoesNotKnowNamesBothVersions asks for a path, and sends fields, that only
// another version may know.
func TestWhatTheServerDoesNotKnowNamesBothVersions(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(config *api.Config) { config.Version = "1.2" })
	s.create()
	const newer, both = "tandem/1.3 (a note)", " (this server is tandem 1.2, asked by tandem/1.3 (a note): upgrade the older one)"
	file := "future: 1\n" + strings.Replace(smallStudy, "small", "another", 1)
	for name, request := range map[string]struct{ method, path, body, kind string }{
		"path":        {"POST", "/api/v1/studies/small/future", "", ""},
		"method":      {"PUT", "/api/v1/studies/small", "", ""},
		"parameter":   {"GET", "/api/v1/studies/small/trials?future=1", "", ""},
		"field":       {"POST", "/api/v1/studies/small/extend", `{"trials":1,"future":1}`, "application/json"},
		"study file":  {"POST", "/api/v1/studies", file, "application/yaml"},
		"not unknown": {"GET", "/api/v1/studies/none", "", ""},
		"of a space":  {"POST", "/api/v1/studies/small/enqueue", `{"configurations":[{"rat":0.5}]}`, "application/json"},
	} {
		for _, agent := range []string{newer, "tandem/1.2", "curl/8"} {
			got := string(s.admin(request.method, request.path, request.body, "Content-Type", request.kind, "User-Agent", agent).body)
			told := agent == newer && name != "not unknown" && name != "of a space"
			if strings.Contains(got, both) != told || strings.Contains(got, "1.2") != told || !strings.Contains(got, `"detail"`) {
				t.Errorf("%s, asked by %q: %s", name, agent, got)
			}
		}
		nobody := s.do(ask{method: request.method, path: request.path, body: request.body, header: map[string]string{"User-Agent": newer}})
		if nobody.status != 401 || strings.Contains(string(nobody.body), "1.2") {
			t.Errorf("%s, asked by nobody: %s", name, nobody.body)
		}
	}
}
