package e2e_test

import (
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// ownBoard is the device of examples/edge-device as a study file describes it in place.
func ownBoard(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../examples/edge-device/my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(content), "")
	return "\n    - " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// get is what the server answers.
func (s *site) get(path string) string {
	s.t.Helper()
	status, answer := s.ask(http.MethodGet, path, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d, %s", path, status, answer)
	}
	return answer
}

// ask sends the body, JSON, and is what the server answers.
func (s *site) ask(method, path, body string) (status int, answer string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestAStudySaysWhereAndUnderWhichLoad names a board of the user's that no server knows, and
// a load: the answer has the policy for it, everywhere, and the program serves by it.
func TestAStudySaysWhereAndUnderWhichLoad(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "1")
	s := newDeployedStudy(t, "loaded", "../inference_emu/onnx/testdata/lenet5.onnx", "raspberry-pi-4")
	plain, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	s.rewrite("inference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 4}}", "inference:\n  objective: energy\n  scenario: {server: {rate: 2000/s, p99_ms: 40}}\n  devices:"+ownBoard(t)+"\n    - raspberry-pi-4\n")
	s.rewrite("objective: [", "objective: [{metric: edge.p99_ms, direction: minimize}, ")
	wrong := filepath.Join(filepath.Dir(s.file), "wrong.yaml")
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(content), "cores: {value: 4,", "cores: {value: 4000,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if refused := here.cli("study", "create", wrong); refused.code == 0 || !strings.Contains(refused.stderr, "inference.devices[0].clusters[0].cores.value") || !strings.Contains(refused.stderr, "must be between 1 and 1024") {
		t.Errorf("a board with 4,000 cores: exit code %d\n%s", refused.code, refused.stderr)
	}
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	answer := read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
	if len(answer.Deployments) != 2 || answer.Deployments[0].Device != "my-board" || answer.Deployments[0].Title != "A board of mine" {
		t.Fatalf("%+v", answer.Deployments)
	}
	own := answer.Deployments[0]
	load := own.Batching
	if load == nil || !own.Feasible || load.MaxBatch < 2 || load.MaxBatch != own.Configuration.BatchSize || load.P99Seconds > 0.044 || !(load.Utilization > 0 && load.Utilization <= 1) || load.RatePerSecond != 2000 {
		t.Fatalf("%+v %+v", load, own.Unmet)
	}
	if value := float64(answer.Best.Values[0]); math.Abs(value/(1e3*load.P99Seconds)-1) > 1e-9 {
		t.Errorf("edge.p99_ms of the winner is %v, its deployment's %v ms", value, 1e3*load.P99Seconds)
	}
	if text := here.must("study", "deployments", s.name); !strings.Contains(text, "my-board: "+load.String()+", an estimate") {
		t.Errorf("the deployments are\n%s", text)
	}
	folder := filepath.Join(t.TempDir(), "deployment")
	here.must("study", "deployments", s.name, "--output", folder)
	program, err := os.ReadFile(filepath.Join(folder, "infer.py"))
	if err != nil || !strings.Contains(string(program), "# my-board: a batch of") || !regexp.MustCompile(`(?m)^max_batch, wait_seconds = \d+, [0-9.e-]+  # for `+regexp.QuoteMeta(load.String())+`$`).Match(program) {
		t.Errorf("%v, the program is\n%s", err, program)
	}
	shown := read[protocol.EdgeOverview](t, here.get("/api/v1/studies/"+s.name+"/edge"))
	if got := shown.Trials[0].Deployments[0].Batching; shown.Devices[0] != "my-board" || got == nil || *got != *load {
		t.Errorf("%v %+v", shown.Devices, got)
	}

	// Too much for it is an answer, too, and keeps nobody from the end.
	s.rewrite("name: loaded", "name: flooded")
	s.rewrite("rate: 2000/s", "rate: 900000/s", "{metric: edge.p99_ms, direction: minimize}, ", "")
	here.must("study", "create", s.file)
	here.must("study", "watch", "flooded")
	answer = read[protocol.Recommendation](t, here.must("study", "recommend", "flooded", "--json"))
	if got := answer.Deployments[0]; got.Feasible || got.Batching == nil || !got.Batching.Overloaded || !strings.Contains(got.Unmet[0], "it is overloaded, the most that it sustains is") {
		t.Errorf("%+v %v", got.Batching, got.Unmet)
	}
	s.rewrite("name: flooded", "name: drowned")
	s.rewrite("objective: [", "objective: [{metric: edge.p99_ms, direction: minimize}, ")
	here.must("study", "create", s.file)
	if ended := here.cli("study", "watch", "drowned"); ended.code != 3 || !strings.Contains(ended.stderr, "the device keeps up with inference.scenario in none of 4") {
		t.Errorf("exit code %d: %s", ended.code, ended.stderr)
	}
	// The scenario that there is without one changes nothing.
	if err := os.WriteFile(s.file, []byte(strings.NewReplacer("name: loaded", "name: single", "inference: {", "inference: {scenario: single, ").Replace(string(plain))), 0o600); err != nil {
		t.Fatal(err)
	}
	here.must("study", "create", s.file)
	here.must("study", "watch", "single")
	answer = read[protocol.Recommendation](t, here.must("study", "recommend", "single", "--json"))
	if got := answer.Deployments[0]; got.Batching != nil || strings.Contains(got.Code, "max_batch") {
		t.Errorf("without a load there is a policy: %+v", got.Batching)
	}
	for _, name := range []string{s.name, "single"} {
		here.must("study", "replay", name)
	}
}
