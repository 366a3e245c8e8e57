package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/command"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/launchertest"
)

func TestConformance(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("there is no flock for the engine of the test")
	}
	launchertest.RunEach(t, func(t *testing.T) launchertest.Site {
		folder := t.TempDir()
		words := func(more ...string) []string {
			return append([]string{"/bin/sh", "testdata/engine.sh", filepath.Join(folder, "jobs")}, more...)
		}
		run := func(more ...string) {
			if said, err := exec.Command("/bin/sh", words(more...)[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v: %s", more, err, said)
			}
		}
		return launchertest.Site{
			Open: func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine {
				made, err := command.New(
					engine.Options{Name: name, Logs: folder, Worker: worker, Enrolments: enrolments, Home: "/home/of'it", Path: "/usr/local/bin:/usr/bin:/bin"},
					command.Commands{Submit: words("submit", "{name}", "{log}"), List: words("list"), Cancel: words("cancel"), Why: words("why")})
				if err != nil {
					t.Fatal(err)
				}
				return made
			},
			Option: "--some", Refused: "--refuse",
			Preempt: func(job launcher.Job) { run("preempt", job.ID) },
			Lose:    func(job launcher.Job) { run("lose", job.ID) },
		}
	})
}

// says returns an engine whose list prints the text.
func says(t *testing.T, text string) launcher.Engine {
	t.Helper()
	made, err := command.New(engine.Options{Name: "tandem"}, command.Commands{Submit: []string{"true"}, List: []string{"printf", "%s", text}, Cancel: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAListThatIsWrongSaysWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"id": "1"}]`: "a JSON object for each job, not an array",
		`{"id": "1", "name": "tandem.cpu.a-0", "state": "queued"}`:                  `the state of job 1 is "queued" and must be pending, running, leaving or ended`,
		`{"id": "1", "name": "tandem.cpu.a-0", "state": "ended", "cause": "tired"}`: `the cause of job 1 is "tired" and must be one of`,
	} {
		if _, err := says(t, text).List(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	jobs, err := says(t, `{"id": "1", "name": "backup", "state": "???"} {"id": "2", "name": "tandem.cpu.a-0", "state": "pending"}`).List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].ID != "2" {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestCommandsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	good := command.Commands{Submit: []string{"true", "{name}"}, List: []string{"true"}, Cancel: []string{"true"}}
	for want, change := range map[string]func(*command.Commands){
		"list is missing":                         func(c *command.Commands) { c.List = nil },
		`cancel: "no-such-program" is no program`: func(c *command.Commands) { c.Cancel = []string{"no-such-program"} },
		"submit: {nome} is not known":             func(c *command.Commands) { c.Submit = []string{"true", "-N{nome}"} },
	} {
		bad := good
		change(&bad)
		if _, err := command.New(engine.Options{}, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestPlaceholdersStandForTheShape(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	noted := filepath.Join(folder, "noted")
	made, err := command.New(engine.Options{Name: "tandem", Logs: folder, Worker: []string{"tandem", "worker"}}, command.Commands{
		Submit: []string{"sh", "-c", `echo "$@" > "$0"`, noted, "-N{name}", "{shape}", "{gpus}:{gpu_type}", "{labels}", "{cores}", "{memory_mib}", "{minutes}", "{walltime}", "{log}"},
		List:   []string{"true"}, Cancel: []string{"true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	shape := launcher.Shape{Name: "big", GPUs: 2, GPUType: "a100", Labels: map[string]string{"zone": "a", "disk": "ssd"}, Cores: 8, MemoryGiB: 1.5, Trials: 1, TimeLimit: 90 * time.Minute, Options: []string{"-q", "gpu"}}
	if err := made.Launch(t.Context(), launcher.Order{ID: "abc", Shape: shape, Count: 1}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(noted)
	if want := "-Ntandem.big.abc-0 big 2:a100 disk=ssd,zone=a 8 1536 90 01:30:00 " + folder + "/tandem.big.abc-0.log -q gpu\n"; err != nil || string(content) != want {
		t.Errorf("%q, %v, want %q", content, err, want)
	}
}
