package api_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/web/api"
)

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
	} {
		for _, agent := range []string{newer, "tandem/1.2", "curl/8"} {
			got := string(s.admin(request.method, request.path, request.body, "Content-Type", request.kind, "User-Agent", agent).body)
			told := agent == newer && name != "not unknown"
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
