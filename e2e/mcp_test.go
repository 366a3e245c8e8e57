package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// agent is a program that talks to "tandem mcp" with the protocol's own client.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
}

func (s *site) agent(t *testing.T, args ...string) agent {
	t.Helper()
	command := exec.Command(binary, append([]string{"mcp"}, args...)...)
	command.Env = append(os.Environ(), s.environment()...)
	client := mcp.NewClient(&mcp.Implementation{Name: "helper", Version: "7"}, nil)
	session, err := client.Connect(context.WithoutCancel(t.Context()), &mcp.CommandTransport{Command: command, TerminateDuration: 2 * time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the command ended with %v", err)
		}
	})
	return agent{t, session}
}

// withToken sends a token with each request.
type withToken string

func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(w))
	request.Header.Set("User-Agent", "helper over HTTP")
	return http.DefaultTransport.RoundTrip(request)
}

// agents is the address at which "tandem mcp" serves them.
func (s *site) agents(t *testing.T, args ...string) (url string) {
	t.Helper()
	server, err := launch.Start(binary, s.environment(), append([]string{"mcp", "--listen", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	until(t, "its address", func() bool {
		_, rest, _ := strings.Cut(server.Output(), "Agents are served at ")
		url, _, _ = strings.Cut(rest, ", ")
		return strings.HasSuffix(rest, "\n")
	})
	return url
}

// Agents over HTTP see and do what the token of each request may, and none is served with
// the token of the command.
func TestAgentsAreServedOverHTTP(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "watched", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", s.file)
	url := at.agents(t, "--allow", "stop")
	connect := func(token string) (agent, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "helper", Version: "7"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken(token)}, DisableStandaloneSSE: true}, nil)
		return agent{t, session}, err
	}
	if _, err := connect(""); err == nil {
		t.Error("an agent without a token is served")
	}
	viewer, err := connect(strings.TrimSpace(at.must("token", "create", "--scope", "viewer")))
	if err != nil {
		t.Fatal(err)
	}
	viewer.ask("describe_study", false, "x: float 0 to 1", map[string]any{"study": "watched"})
	viewer.ask("stop_study", true, "viewer", map[string]any{"study": "watched"})
	stranger, err := connect("tandem_admin_none")
	if err != nil {
		t.Fatal(err)
	}
	stranger.ask("list_studies", true, "token", nil)
	admin, err := connect(strings.TrimSpace(at.must("token", "create", "--scope", "admin")))
	if err != nil {
		t.Fatal(err)
	}
	admin.ask("stop_study", false, "Study watched is stopped", map[string]any{"study": "watched"})
	if lines := auditLog(t, at); !strings.Contains(lines, "(agent helper") {
		t.Errorf("the audit log does not name the agent:\n%s", lines)
	}
	if wrong := at.cli("mcp", "--listen", "0.0.0.0:0"); wrong.code != 2 || !strings.Contains(wrong.stderr, "--listen (0.0.0.0:0)") {
		t.Errorf("--listen 0.0.0.0:0: exit code %d, %s", wrong.code, wrong.stderr)
	}
}

// ask calls a tool, whose answer must have the part; one that is an error if wrong.
func (a agent) ask(tool string, wrong bool, part string, arguments map[string]any) {
	a.t.Helper()
	answer, err := a.session.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	text, _ := answer.Content[0].(*mcp.TextContent)
	if answer.IsError != wrong || text == nil || !strings.Contains(text.Text, part) {
		a.t.Errorf("%s %v: an error: %t, want %t, with %q:\n%+v", tool, arguments, answer.IsError, wrong, part, text)
	}
}

// TestAnAgentReadsAndChangesOnlyWhatItMay lets an agent use all tools. Without --allow
// it has none that changes anything, and one that it asks for nevertheless does nothing.
func TestAnAgentReadsAndChangesOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "watched", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", s.file)
	file, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	second := strings.Replace(string(file), "name: watched", "name: second", 1)
	named := map[string]any{"study": "watched"}

	reader := at.agent(t)
	reader.ask("list_studies", false, "watched", nil)
	reader.ask("describe_study", false, "x: float 0 to 1", named)
	reader.ask("query_trials", false, "No trials yet.", map[string]any{"study": "watched", "query": "rung = 0 order by x"})
	reader.ask("query_trials", true, "at character 1, y is no field of study watched", map[string]any{"study": "watched", "query": "y = 1"})
	reader.ask("trial_log", true, "trial 3", map[string]any{"study": "watched", "number": 3})
	reader.ask("preview_study", false, "second: bohb search", map[string]any{"file": second})
	reader.ask("preview_study", true, "space.x.low (line ", map[string]any{"file": strings.Replace(second, "low: 0", "low: 2", 1)})
	reader.ask("study_file_reference", false, "## `objective`", nil)
	list, err := reader.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("without --allow there is %s", tool.Name)
		}
	}
	count := func() int {
		return len(read[struct{ Studies []protocol.StudyView }](t, at.must("study", "list", "--json")).Studies)
	}
	if answer, err := reader.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_study", Arguments: map[string]any{"file": second}}); err == nil && !answer.IsError {
		t.Error("without --allow a study was created")
	}
	if studies := count(); studies != 1 {
		t.Errorf("without --allow there are %d studies", studies)
	}

	writer := at.agent(t, "--allow", "create,enqueue,stop")
	writer.ask("create_study", false, "Study second was created", map[string]any{"file": second})
	writer.ask("create_study", true, "second", map[string]any{"file": second}) // the name is taken
	writer.ask("enqueue_configurations", false, "1 configuration enqueued", map[string]any{"study": "second", "configurations": []map[string]any{{"x": 0.5}}})
	writer.ask("enqueue_configurations", true, "x", map[string]any{"study": "second", "configurations": []map[string]any{{"x": 7}}})
	writer.ask("stop_study", false, "Study second is stopped", map[string]any{"study": "second"})
	if studies := count(); studies != 2 {
		t.Errorf("with --allow there are %d studies", studies)
	}
	lines := strings.Split(auditLog(t, at), "\n")
	for _, action := range []string{"create-study", "stop-study"} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, action) && strings.Contains(line, "(agent helper 7)")
		}) {
			t.Errorf("the audit log does not name the agent with %s:\n%s", action, strings.Join(lines, "\n"))
		}
	}
	if wrong := at.cli("mcp", "--allow", "delete"); wrong.code != 2 || !strings.Contains(wrong.stderr, `create, enqueue, stop, not "delete"`) {
		t.Errorf("--allow delete: exit code %d, %s", wrong.code, wrong.stderr)
	}
}

// TestAgentsOfThePythonSDKAreServed has the protocol's reference client read, and change
// what --allow lets it, over both transports.
func TestAgentsOfThePythonSDKAreServed(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../.venv-test/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run() != nil {
		t.Skip("no Python 3.10, which the SDK needs: scripts/test installs them")
	}
	s := newStudy(t, "watched", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", s.file)
	file, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]func(args ...string) []string{
		"stdio": func(args ...string) []string { return append([]string{binary, "mcp"}, args...) },
		"http":  func(args ...string) []string { return []string{at.agents(t, args...)} },
	}
	for transport, line := range over {
		name := "by-" + transport
		calls, err := json.Marshal([][]any{
			{"describe_study", map[string]any{"study": "watched"}},
			{"create_study", map[string]any{"file": strings.Replace(string(file), "name: watched", "name: "+name, 1)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, may := range []bool{false, true} {
			var allowed []string
			if may {
				allowed = []string{"--allow", "create"}
			}
			command := exec.CommandContext(t.Context(), python, append([]string{"testdata/agent.py"}, line(allowed...)...)...)
			command.Env, command.Stdin = append(os.Environ(), at.environment()...), bytes.NewReader(calls)
			var complaint strings.Builder
			command.Stderr = &complaint
			said, err := command.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", transport, err, complaint.String())
			}
			got := read[struct {
				Server  string
				Tools   []string
				Answers []struct {
					Failed bool
					Text   string
				}
			}](t, string(said))
			if got.Server != "tandem" || !slices.Contains(got.Tools, "list_studies") || slices.Contains(got.Tools, "create_study") != may {
				t.Errorf("%s: %s has the tools %v with --allow: %t", transport, got.Server, got.Tools, may)
			}
			if one := got.Answers[0]; one.Failed || !strings.Contains(one.Text, "x: float 0 to 1") {
				t.Errorf("%s: the study is %+v", transport, one)
			}
			if one := got.Answers[1]; one.Failed == may || strings.Contains(one.Text, "Study "+name+" was created") != may {
				t.Errorf("%s: with --allow: %t, the answer is %+v", transport, may, one)
			}
			if listed := strings.Contains(at.must("study", "list"), name); listed != may {
				t.Errorf("%s: with --allow: %t, the study is there: %t", transport, may, listed)
			}
		}
	}
	if lines := auditLog(t, at); strings.Count(lines, "(agent python 1)") != 4 { // asked and done
		t.Errorf("the audit log does not name the agent with both studies:\n%s", lines)
	}
}
