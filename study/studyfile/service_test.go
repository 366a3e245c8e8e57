package studyfile_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// served is the study that the tests change.
func served(t *testing.T) string {
	t.Helper()
	return string(read(t, "testdata/valid/service.yaml"))
}

func TestAServiceIsReadWithItsDefaults(t *testing.T) {
	t.Parallel()
	def, err := studyfile.Parse([]byte(served(t)), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if s := def.Service; s.WarmUp != 1 || s.Ready.Seconds != 60 || s.Stop != (definition.StopSignal{Signal: "INT", Seconds: 10}) {
		t.Errorf("the service is %+v", s)
	}
	if !definition.IsService(def.Command) || def.System.Word != definition.Off || def.Parallel != 1 || def.Tuning() != nil {
		t.Errorf("runs %q, tunes %+v, %d at once", def.Command, def.Tuning(), def.Parallel)
	}
	if def.Budget.Policy != budget.Epochs || def.Budget.DataFraction.Min != 1 {
		t.Errorf("the budget is %+v", def.Budget)
	}
	content, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := studyfile.Parse(content, studyfile.JSON); err != nil || !reflect.DeepEqual(again, def) {
		t.Errorf("its own JSON is read as %+v: %v", again, err)
	}
	filled := definition.Fill(strings.Join(def.Service.Start, " "), func(name string) string { return "<" + name + ">" })
	if filled != "server --port <port> --threads=<threads> {kept}" {
		t.Errorf("filled in: %s", filled)
	}
}

// TestAServiceIsComparedWithItsPresentSettings unless the file says otherwise, also when
// it is read again.
func TestAServiceIsComparedWithItsPresentSettings(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[string]search.Repeats{
		"": {Trials: 1, Times: 8, Present: true}, "repeats: 1, ": {Trials: 1, Times: 1}, "repeats: 4, ": {Trials: 1, Times: 4, Present: true},
		"repeats: {trials: 2}, ": {Trials: 2, Times: 8}, "repeats: {trials: 2, present: true}, ": {Trials: 2, Times: 8, Present: true},
	} {
		def, err := studyfile.Parse([]byte(served(t)+"search: {"+given+"initial: [{threads: 2}]}\n"), studyfile.YAML)
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(def)
		if err != nil {
			t.Fatal(err)
		}
		again, err := studyfile.Parse(content, studyfile.JSON)
		if err != nil || *def.Search.Repeats != wanted || *again.Search.Repeats != wanted {
			t.Errorf("%q is read as %+v, and as %+v again: %v", given, def.Search.Repeats, again.Search.Repeats, err)
		}
	}
}

func TestAServiceIsToldItsFaults(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ from, to, wanted string }{
		"a command too":         {"name: served", "name: served\ncommand: [true]", "command: is given beside service"},
		"an unknown field":      {"  start:", "  begin: 1\n  start:", "service.begin: is not a field of service"},
		"nothing to start":      {"  start: [server", "  stall: [server", "service.start: is missing"},
		"no load":               {"  load: [bench, \"{port}\"]\n", "", "service.load: is missing"},
		"ready in two ways":     {`{tcp: "127.0.0.1:{port}"}`, `{tcp: "127.0.0.1:{port}", command: [true]}`, "has 2 of tcp, http and command"},
		"ready by no URL":       {`{tcp: "127.0.0.1:{port}"}`, `{http: "127.0.0.1:{port}"}`, "must be a URL"},
		"no pattern":            {"tps = ([0-9.]+)", "tps = ([0-9.]+", "service.metrics.tps: is no regular expression"},
		"no group":              {"tps = ([0-9.]+)", "tps", "service.metrics.tps: has 0 groups"},
		"a metric of ours":      {"p99_ms: 'p99", "windows: 'p99", "service.metrics.windows: is a metric that Tandem adds"},
		"a metric without text": {"p99_ms: 'p99 ([0-9.]+)'", "p50_ms: 'p50 ([0-9.]+)'", "service.metrics: lacks p99_ms"},
		"an unknown name":       {"--threads={threads}", "--threads={thread}", "service.start: has {thread}, which is no parameter"},
		"a name for some":       {"cache: {type: int, low: 1, high: 64}", "cache: {type: int, low: 1, high: 64, when: {threads: 1}}", "which only some trials have"},
		"live without apply":    {"  apply: [reload, \"{cache}\"]\n", "", "service.live: needs apply"},
		"apply without live":    {"  live: [cache]\n", "", "service.apply: needs live"},
		"live and unknown":      {"live: [cache]", "live: [cash]", "names \"cash\""},
		"a file elsewhere":      {"conf/server.conf", "../server.conf", "leads out of {directory}"},
		"a signal":              {"signal: INT", "signal: KILL", "service.stop.signal: must be TERM, INT or QUIT"},
		"a name of ours":        {"cache: {type: int, low: 1, high: 64}", "cache: {type: int, low: 1, high: 64}\n  port: {type: int, low: 1, high: 8}", "has {port} for itself"},
		"tuned threads":         {"space:", "system: auto\nspace:", "system: would be tuned"},
		"models":                {"space:", "inference: {devices: [raspberry-pi-4]}\nspace:", "inference: needs models"},
		"data left out":         {"space:", "approximation: {metric_loss: 1}\nspace:", "approximation: leaves out data"},
		"a share of the data":   {"space:", "budget: {policy: multi}\nspace:", "budget: has a data_fraction"},
		"no network":            {"space:", "sandbox: strict\nspace:", "service.ready: asks over the network"},
	} {
		if !strings.Contains(served(t), one.from) {
			t.Fatalf("%s: the study has no %q", name, one.from)
		}
		_, err := studyfile.Parse([]byte(strings.Replace(served(t), one.from, one.to, 1)), studyfile.YAML)
		if err == nil || !strings.Contains(regexp.MustCompile(` \(line \d+\)`).ReplaceAllString(err.Error(), ""), one.wanted) {
			t.Errorf("%s: told %v, wanted %q", name, err, one.wanted)
		}
	}
}
