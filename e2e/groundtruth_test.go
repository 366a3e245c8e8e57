package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestGroundTruthMovesBetweenServers takes a ground truth from one server to
// another, from the command line, and kills the second one in between.
func TestGroundTruthMovesBetweenServers(t *testing.T) {
	t.Parallel()
	here, there, folder := newSite(t), newSite(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	record := func(id, machine string) string {
		return fmt.Sprintf(`{"id":%q,"machine":%q,"updated":"2026-01-02T03:04:05.000000006Z","cells":[{"configuration":{"cores":2,"memory_gib":0.5},`+
			`"neighbours":0,"epochs":3,"log_seconds":0.1,"log_joules":2,"variance":0,"profiles":4,"features":{"tree.cpu_user":-1.5}}]}`, id, machine)
	}
	if empty := here.must("ground-truth", "list"); !strings.Contains(empty, "Nothing is known yet") {
		t.Errorf("a new server says:\n%s", empty)
	}
	made := file("made.json", `{"version":1,"records":[`+record("record-1", "x86, 2 cores")+","+record("record-2", "arm (big), 4 cores")+`]}`)
	if said := here.must("ground-truth", "import", made); said != "2 records imported, 0 skipped\n" {
		t.Errorf("import says %q", said)
	}
	if list := here.must("ground-truth", "list"); !strings.Contains(list, "MACHINE") || !strings.Contains(list, "arm (big), 4 cores  1        1               3") {
		t.Errorf("the list is:\n%s", list)
	}

	runs := read[protocol.GroundTruthRuns](t, here.get("/api/v1/ground-truth/runs?machine=x86%2C+2+cores&limit=20"))
	if runs.Total != 1 || len(runs.Runs) != 1 || runs.Runs[0].Configurations != 1 || runs.Runs[0].Epochs != 3 {
		t.Errorf("the runs of one type: %+v", runs)
	}
	clusters := read[protocol.GroundTruthClusters](t, here.get("/api/v1/ground-truth/clusters?machine=x86%2C+2+cores"))
	if clusters.Configuration.Key() != "cores=2 memory_gib=0.5" {
		t.Errorf("the workloads of one type: %+v", clusters)
	}
	written := filepath.Join(folder, "exported.json")
	here.must("ground-truth", "export", "--output", written)
	part := file("part.json", here.must("ground-truth", "export", "--machine", "x86, 2 cores"))
	if got := read[protocol.GroundTruthImported](t, there.must("ground-truth", "import", part, "--json")); got.Imported != 1 || got.Skipped != 0 {
		t.Errorf("the part: %+v", got)
	}
	there.server.Kill()
	there.start()
	if got := read[protocol.GroundTruthImported](t, there.must("ground-truth", "import", written, "--json")); got.Imported != 1 || got.Skipped != 1 {
		t.Errorf("the whole, behind its part: %+v", got)
	}
	if a, b := here.must("ground-truth", "export"), there.must("ground-truth", "export"); a != b || !strings.Contains(a, `"tree.cpu_user":-1.5`) {
		t.Errorf("one server has\n%s\nthe other\n%s", a, b)
	}

	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"another version": {[]string{"import", file("newer.json", `{"version":2,"records":[]}`)}, "version 2"},
		"another file":    {[]string{"import", file("other.json", `{"studies":[]}`)}, "not what"},
		"unknown field":   {[]string{"import", file("field.json", `{"version":1,"records":[{"user":"me"}]}`)}, "user"},
		"a fault":         {[]string{"import", file("fault.json", `{"version":1,"records":[`+strings.Replace(record("record-3", "x"), `"cores":2`, `"cores":0`, 1)+`]}`)}, "records[0].cells[0].configuration.cores"},
		"forget nothing":  {[]string{"forget"}, "--all"},
		"forget unasked":  {[]string{"forget", "--all"}, "--yes"},
	} {
		if got := here.cli(append([]string{"ground-truth"}, c.args...)...); got.code != 2 || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.stderr)
		}
	}
	if got := here.cli("ground-truth", "export", "--machine", "none"); got.code != 1 || !strings.Contains(got.stderr, "ground-truth list") {
		t.Errorf("exporting nothing: exit code %d, %s", got.code, got.stderr)
	}
	if said := here.must("ground-truth", "forget", "--machine", "x86, 2 cores", "--yes"); said != "1 record of x86, 2 cores forgotten\n" {
		t.Errorf("forget says %q", said)
	}
	if left := read[protocol.GroundTruth](t, here.must("ground-truth", "export")); len(left.Records) != 1 || left.Records[0].ID != "record-2" {
		t.Errorf("left are %+v", left.Records)
	}
	here.must("ground-truth", "forget", "--all", "-y")
	if list := here.must("ground-truth", "list", "--json"); !strings.Contains(list, `"machines": []`) {
		t.Errorf("left is %s", list)
	}
}
