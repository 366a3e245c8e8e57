package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

// clusterScript trains an epoch when it is let go on, and ends at once when it is told to.
const clusterScript = `
trap 'exit 0' TERM
epoch=$TANDEM_FIRST_EPOCH
while [ "$epoch" -le "$TANDEM_EPOCHS" ]; do
	until [ -e "$PLACE/go$epoch" ]; do sleep 0.1; done
	echo "$epoch" > "$TANDEM_CHECKPOINT_DIR/epoch"
	echo "{\"epoch\": $epoch, \"accuracy\": 0.5}"
	epoch=$((epoch + 1))
done
`

const clusterStudy = `
name: %[2]s
command: [sh, %[1]s/train.sh]
environment: {PLACE: %[1]s}
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 3, max: 3}}
search: {method: random}
parallel: 2
stop: {trials: 2}
system: off
%[3]s
`

const clusterShapes = `
shapes:
  - {name: cpu, cores: 3, most: 4, options: [--partition=spot], setup: ["export TMPDIR=%[1]s"]}
  - {name: gpu, gpus: 1, cores: 1, most: 1, options: [--partition=spot], setup: ["export TMPDIR=%[1]s"]}
`

// TestSlurmRunsStudies: on a real Slurm a user writes "tandem launch slurm" and nothing
// else. Workers start when trials wait, and end when none do; a trial whose worker is
// preempted or whose node dies says so and goes on; a node without its GPUs is told. Each
// worker has a token of its own, which is in nothing that Slurm keeps, and in no argument
// or variable of a process.
func TestSlurmRunsStudies(t *testing.T) {
	t.Parallel()
	slurm := cluster.StartSlurm(t)
	at := newSite(t)
	place := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(place, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("train.sh", clusterScript)
	token := strings.TrimSpace(at.must("token", "create", "--scope", "launcher", "--name", "ann"))
	user := strings.TrimSpace(at.must("token", "create", "--scope", "user", "--name", "ann"))
	tokenFile := write("token", token)
	scratch := t.TempDir()
	shapes := write("shapes.yaml", fmt.Sprintf(clusterShapes, scratch))
	line := []string{"launch", "slurm", "--server", at.server.URL, "--token-file", tokenFile, "--shapes", shapes, "--logs", filepath.Join(place, "logs"),
		"--every", "1s", "--idle", "8s", "--binary", binary, "--", "--probe", "never"}
	line = append(line, opened(t)...)
	at.token = user
	create := func(name, more string) {
		at.must("study", "create", write(name+".yaml", fmt.Sprintf(clusterStudy, place, name, more)))
	}
	jobs := func(states string) []string {
		return slices.Sorted(strings.FieldsSeq(slurm.Run("squeue", "--noheader", "--array", "--format=%i", "--states="+states))) // it has an order of its own
	}
	leased := func(name string) (hosts []string) {
		for _, worker := range read[[]protocol.Worker](t, at.must("workers", "--json")) {
			if len(worker.Trials) > 0 {
				hosts = append(hosts, worker.Machine.Host)
			}
		}
		slices.Sort(hosts)
		return hosts
	}

	create("first", "")
	if all := jobs("all"); len(all) > 0 {
		t.Fatalf("jobs without a launcher: %v", all)
	}
	start := func() *launch.Process {
		launcher, err := launch.Start(binary, append(slurm.Environment, "TANDEM_TOKEN=leaked-"+token), line...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			launcher.Kill()
			if t.Failed() {
				t.Logf("the launcher said:\n%s", launcher.Output())
			}
		})
		return launcher
	}
	launcher := start()
	until(t, "a trial on each node", func() bool { return slices.Equal(leased("first"), []string{"n1", "n2"}) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the trials:\n%s\n%s", at.must("study", "trial", "first", "0"), at.must("study", "trial", "first", "1"))
		}
	})
	if waiting, err := os.ReadDir(filepath.Join(place, "logs", "enrolments-tandem")); err != nil || len(waiting) > 0 {
		t.Errorf("enrolments that were used are left: %v, %v", waiting, err)
	}
	if all := jobs("all"); len(all) != 2 || !strings.HasSuffix(all[0], "_0") || !strings.HasSuffix(all[1], "_1") {
		t.Errorf("two trials made the jobs %v, want one array of two", all)
	}
	noToken(t, token, slurm.Folder, launcher.PID())

	write("go1", "")
	until(t, "an epoch of each trial", func() bool {
		return strings.Contains(at.must("study", "trial", "first", "0", "--json"), `"accuracy"`) &&
			strings.Contains(at.must("study", "trial", "first", "1", "--json"), `"accuracy"`)
	})
	slurm.Run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=true", "--output=/dev/null")
	until(t, "both trials to say that they were preempted", func() bool {
		return strings.Contains(at.must("study", "trial", "first", "0", "--json"), "preempted by Slurm") &&
			strings.Contains(at.must("study", "trial", "first", "1", "--json"), "preempted by Slurm")
	})
	until(t, "a trial on each node again", func() bool { return slices.Equal(leased("first"), []string{"n1", "n2"}) })
	slurm.FailNode("n2")
	lost := func(number string) bool {
		return strings.Contains(at.must("study", "trial", "first", number, "--json"), "its node failed")
	}
	until(t, "a trial to say that its node failed", func() bool { return lost("0") || lost("1") })
	write("go2", "")
	write("go3", "")
	until(t, "the study to end on new workers", func() bool {
		return read[protocol.StudyView](t, at.must("study", "show", "first", "--json")).Status == protocol.StudyCompleted
	})
	until(t, "the workers to leave", func() bool { return len(jobs("running,pending,completing")) == 0 })
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 1 { // the node that failed took no leave
		t.Errorf("the workers left %v behind, %v", left, err)
	}

	create("second", "resources: {gpus: 1}")
	until(t, "the missing GPUs to be told", func() bool {
		return strings.Contains(launcher.Output(), "the engine gave this worker 1 GPUs and it can use 0")
	})
	until(t, "the shape to be held", func() bool {
		return strings.Contains(launcher.Output(), "second waits: no more workers of the shape gpu")
	})
	noToken(t, token, slurm.Folder, launcher.PID())

	ends := func(shape string) (said []string) {
		for _, one := range read[crew.Launches](t, at.must("pool", "launches", "--json")).Launchers[0].Ends {
			if one.Shape == shape {
				said = append(said, one.Why)
			}
		}
		return said
	}
	if all := strings.Join(ends("cpu"), "\n"); !strings.Contains(all, "its node failed") {
		t.Errorf("of the ends of workers it is said:\n%s", all)
	}
	launcher.Kill()
	failed := len(ends("gpu"))
	launcher = start()
	until(t, "a new process to know of the hold", func() bool {
		return strings.Contains(launcher.Output(), "second waits: no more workers of the shape gpu")
	})
	at.must("pool", "try-again", "gpu")
	until(t, "one more worker to be tried", func() bool { return len(ends("gpu")) > failed })
}

// noToken fails if the launcher's token, or one that was had with it, is in a file of the
// folder, or in what processes but the launcher were started with.
func noToken(t *testing.T, token, folder string, launcher int) {
	t.Helper()
	secret := []byte("_" + strings.Split(token, "_")[2]) // all of them have its id
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Errorf("there are %d processes, %v", len(paths), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			own := strings.HasPrefix(path, fmt.Sprintf("/proc/%d/", launcher))
			if err == nil && bytes.Contains(content, secret) != own && (!own || strings.HasSuffix(path, "environ")) {
				t.Errorf("%s holds a token: %v; of the launcher: %v", path, !own, own)
			}
		}
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // files of jobs that end come and go
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, secret) {
			t.Errorf("%s holds the token", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
