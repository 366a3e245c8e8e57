package monitoring_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/poolview"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/monitoring"
)

// whole is a state with everything that may be told.
func whole() monitoring.State {
	state := monitoring.State{
		Census: poolview.Census{
			Studies: map[protocol.StudyStatus]int{protocol.StudyRunning: 2, protocol.StudyPaused: 1}, Ended: map[protocol.StudyStatus]int{protocol.StudyFailed: 7}, Trials: map[trial.State]int{},
			Alive: 3, Silent: 1, Slots: 6, Leases: 4,
		},
		Healthy: true, Connections: 17, Shed: 5, FreeBytes: 1 << 30, DatabaseBytes: 4096, CertificateExpires: time.Unix(2_000_000_000, 0),
	}
	for i, one := range trial.States() {
		state.Trials[one] = i
	}
	return state
}

func scrape(t *testing.T, m *monitoring.Monitor) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	if recorder.Code != 200 || !strings.HasPrefix(recorder.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s: %s", recorder.Code, recorder.Header(), recorder.Body)
	}
	return recorder.Body.String()
}

func newMonitor(state func() monitoring.State) *monitoring.Monitor {
	return monitoring.New(monitoring.Options{Version: "v1.2.3", Logger: slog.New(slog.DiscardHandler),
		State: func(context.Context) monitoring.State { return state() }})
}

const heartbeats = "POST /api/v1/workers/{worker}/heartbeat"

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	m := newMonitor(whole)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.Answered(heartbeats, 200, 3*time.Millisecond)
				m.Limited("token")
			}
		})
	}
	all.Wait()
	m.Answered(heartbeats, 429, time.Second)
	text := scrape(t, m)
	for _, line := range []string{
		`tandem_build_info{version="v1.2.3"} 1`, "tandem_healthy 1", `tandem_studies{status="running"} 2`, `tandem_trials{state="running"} 2`, `tandem_studies_ended_total{status="failed"} 7`,
		`tandem_workers{state="alive"} 3`, `tandem_workers{state="silent"} 1`, "tandem_worker_slots 6", "tandem_leases 4",
		"tandem_http_connections 17", "tandem_http_connections_shed_total 5", "tandem_data_free_bytes 1.073741824e+09", "tandem_database_bytes 4096",
		"tandem_certificate_expires_timestamp_seconds 2e+09", `tandem_http_limited_total{bound="token"} 800`,
		`tandem_http_requests_total{route="POST /api/v1/workers/{worker}/heartbeat",status="200"} 800`,
		`tandem_http_request_seconds_bucket{route="POST /api/v1/workers/{worker}/heartbeat",le="0.0025"} 0`,
		`tandem_http_request_seconds_bucket{route="POST /api/v1/workers/{worker}/heartbeat",le="0.005"} 800`,
		`tandem_http_request_seconds_count{route="POST /api/v1/workers/{worker}/heartbeat"} 801`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("it does not say %s:\n%s", line, text)
		}
	}
}

func TestWhatIsNotKnownIsNotTold(t *testing.T) {
	t.Parallel()
	text := scrape(t, newMonitor(func() monitoring.State { return monitoring.State{FreeBytes: -1, DatabaseBytes: -1} }))
	if !strings.Contains(text, "tandem_healthy 0\n") {
		t.Errorf("an unhealthy server:\n%s", text)
	}
	for _, name := range []string{"tandem_data_free_bytes", "tandem_database_bytes", "tandem_certificate_expires"} {
		if strings.Contains(text, name) {
			t.Errorf("it tells %s", name)
		}
	}
}

// metric is the name of a metric in a query.
var metric = regexp.MustCompile(`\b(?:tandem|process|go)_[a-z_]+\b`)

// exported are the metrics that a server has, with the parts of histograms.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	m := newMonitor(whole)
	m.Answered(heartbeats, 200, time.Millisecond)
	m.Limited("token")
	names := map[string]bool{}
	for line := range strings.Lines(scrape(t, m)) {
		if !strings.HasPrefix(line, "#") {
			name, _, _ := strings.Cut(line, " ")
			name, _, _ = strings.Cut(name, "{")
			names[name] = true
		}
	}
	return names
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// queries are the expressions of the dashboard and of the alerts.
func queries(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	if err := json.Unmarshal(read(t, "../../deploy/grafana/tandem.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			list = append(list, target.Expr)
		}
	}
	for _, variable := range dashboard.Templating.List {
		list = append(list, variable.Definition)
	}
	return append(list, alerts(t)...)
}

type rule struct {
	Alert       string
	Expr        string
	Annotations map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(read(t, "../../deploy/prometheus/tandem-alerts.yml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func alerts(t *testing.T) (list []string) {
	t.Helper()
	for _, one := range rules(t) {
		if one.Expr == "" || one.Annotations["summary"] == "" || one.Annotations["description"] == "" {
			t.Errorf("the alert %s lacks an expression, a summary, or a description of what to do", one.Alert)
		}
		list = append(list, one.Expr)
	}
	return list
}

func TestTheDashboardAndTheAlertsAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known, asked := exported(t), 0
	routes := string(read(t, "../../docs/openapi.json"))
	label := regexp.MustCompile(`\b(route|state|status)="([^"]*)"`)
	for _, query := range queries(t) {
		for _, name := range metric.FindAllString(query, -1) {
			if asked++; !known[name] {
				t.Errorf("%s: there is no metric %s", query, name)
			}
		}
		for _, found := range label.FindAllStringSubmatch(query, -1) {
			_, path, isRoute := strings.Cut(found[2], " ")
			switch {
			case found[1] == "route" && (!isRoute || !strings.Contains(routes, `"`+path+`": {`)):
				t.Errorf("%s: there is no route %s", query, found[2])
			case found[1] == "state" && !slices.Contains(trial.States(), trial.State(found[2])) && found[2] != "alive" && found[2] != "silent":
				t.Errorf("%s: there is no state %s", query, found[2])
			case strings.Count(query, "(") != strings.Count(query, ")"):
				t.Errorf("%s: brackets", query)
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d metrics are asked for: the test reads the files wrongly", asked)
	}
}

var update = flag.Bool("update", false, "write docs/reference/monitoring.md")

// TestEveryMetricIsDocumented makes docs/reference/monitoring.md of what a scrape says of
// the metrics, and of the file of alerts.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	m := newMonitor(whole)
	m.Answered(heartbeats, 200, time.Millisecond)
	m.Limited("token")
	told := scrape(t, m)
	var page strings.Builder
	page.WriteString("# Metrics and alerts\n\nMade from `GET /metrics` and `deploy/prometheus/tandem-alerts.yml`: `go test ./web/monitoring -update`. How to watch a server: [operations](../operations.md#monitor).\n\n| metric | labels | meaning |\n|---|---|---|\n")
	label := regexp.MustCompile(`(\w+)="`)
	for _, help := range regexp.MustCompile(`(?m)^# HELP (tandem_\w+) (.*)$`).FindAllStringSubmatch(told, -1) {
		var labels []string
		for _, found := range label.FindAllStringSubmatch(regexp.MustCompile(`(?m)^`+help[1]+`(_count)?\{.*`).FindString(told), -1) {
			labels = append(labels, "`"+found[1]+"`")
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", help[1], strings.Join(labels, ", "), help[2])
	}
	page.WriteString("\n| alert | when | what to do |\n|---|---|---|\n")
	for _, rule := range rules(t) {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", rule.Alert, rule.Annotations["summary"], rule.Annotations["description"])
	}
	const reference = "../../docs/reference/monitoring.md"
	if *update {
		if err := os.WriteFile(reference, []byte(page.String()), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	if string(read(t, reference)) != page.String() {
		t.Error("docs/reference/monitoring.md is not of this server: run go test ./web/monitoring -update")
	}
	for name := range exported(t) {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "tandem_") && !strings.Contains(page.String(), "| `"+name+"` |") {
			t.Errorf("docs/reference/monitoring.md does not tell %s", name)
		}
	}
}
