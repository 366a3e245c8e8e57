package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/e2e/launch"
)

// engine is a cluster of which nothing is used yet.
type engine struct {
	submit  func() // sends one training, which never ends
	preempt func()
	lose    func() // the node that it runs on
	end     func() // ends what else would go on asking the engine
}

// started is what a training does first: it says so.
const started = `echo started >> "$PLACE/told/starts"
`

// plainly sends a training to Slurm as the manual of submitit does.
const plainly = `
import os, sys, time
import submitit

def train(place):
    with open(os.path.join(place, "told", "starts"), "a") as starts:
        starts.write("started\n")
    while True:
        time.sleep(1)

executor = submitit.AutoExecutor(folder=os.path.join(sys.argv[1], "jobs"), cluster="slurm")
executor.update_parameters(slurm_partition="spot", cpus_per_task=3, timeout_min=60)
executor.submit(train, sys.argv[1])
`

// BenchmarkLaunch measures what a launcher with its defaults takes, each time on a new
// cluster, until the first line of a training runs: from the study's creation, from its
// worker's preemption, and from the loss of its node. With a Python that has submitit it
// measures a plain script of that on the same Slurm too.
//
//	TANDEM_SUBMITIT=PYTHON go test ./e2e -run '^$' -bench Launch -benchtime 10x -timeout 1h
//
// Slurm is a real one; its controller misses a node after 10 s. Kubernetes is a double,
// unless e2e/kubernetes runs this; it misses a node after 50 s then.
func BenchmarkLaunch(b *testing.B) {
	b.Run("slurm", func(b *testing.B) {
		launches(b, func(place string) engine {
			slurm := cluster.StartSlurm(b)
			shapes := filepath.Join(place, "shapes.yaml")
			if err := os.WriteFile(shapes, fmt.Appendf(nil, clusterShapes, place), 0o600); err != nil {
				b.Fatal(err)
			}
			on := onSlurm(slurm)
			on.submit, on.end = launched(b, place, slurm.Environment, "launch", "slurm", "--binary", binary, "--shapes", shapes)
			return on
		})
	})
	b.Run("submitit", func(b *testing.B) {
		python := os.Getenv("TANDEM_SUBMITIT")
		if python == "" {
			b.Skip("TANDEM_SUBMITIT names no Python that has submitit")
		}
		launches(b, func(place string) engine {
			slurm := cluster.StartSlurm(b)
			on := onSlurm(slurm)
			on.end = func() {}
			on.submit = func() {
				command := exec.Command(python, "-c", plainly, place)
				command.Env = append(os.Environ(), slurm.Environment...)
				if said, err := command.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, said)
				}
			}
			return on
		})
	})
	b.Run("kubernetes", func(b *testing.B) {
		launches(b, func(place string) engine {
			here := cluster.StartKubernetes(b, map[string]string{"/usr/local/bin/tandem": binary})
			submit, end := launched(b, place, nil, "launch", "kubernetes", "--kubeconfig", here.Config, "--image", "example.org/training:1", "--tandem-image", "example.org/tandem:1")
			return engine{
				submit: submit, end: end,
				preempt: func() {
					pods, _ := here.Objects()
					here.Disrupt(pods[0].Name, "PreemptionByScheduler")
				},
				lose: here.FailNode,
			}
		})
	})
}

func onSlurm(slurm *cluster.Slurm) engine {
	return engine{
		preempt: func() {
			slurm.Run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=true", "--output=/dev/null")
		},
		lose: func() {
			slurm.FailNode(strings.TrimSpace(slurm.Run("squeue", "--noheader", "--partition=spot", "--states=running", "--format=%N")))
		},
	}
}

// launched starts a server and a launcher, and returns what creates a study of one trial,
// and what ends the launcher.
func launched(b *testing.B, place string, environment []string, line ...string) (submit, end func()) {
	here := newSite(b)
	for name, content := range map[string]string{
		"train.sh": started + clusterScript, "token": here.must("token", "create", "--scope", "launcher", "--name", "ann"),
		"study.yaml": strings.NewReplacer("parallel: 2", "parallel: 1", "trials: 2", "trials: 1").Replace(fmt.Sprintf(clusterStudy, place, "first", "")),
	} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	here.token = strings.TrimSpace(here.must("token", "create", "--scope", "user", "--name", "ann"))
	launcher, err := launch.Start(binary, environment, slices.Concat(line, []string{
		"--server", here.server.URL, "--token-file", filepath.Join(place, "token"), "--logs", filepath.Join(place, "logs"), "--", "--probe", "never", "--allow-write", filepath.Join(place, "told"),
	}, opened(b))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(launcher.Kill)
	until(b, "the launcher's report", func() bool { return strings.Contains(here.must("pool", "launches", "--json"), `"shapes"`) })
	return func() { here.must("study", "create", filepath.Join(place, "study.yaml")) }, launcher.Kill
}

func launches(b *testing.B, open func(place string) engine) {
	took := map[string][]float64{}
	for range b.N {
		place, count := b.TempDir(), 0
		if err := os.Mkdir(filepath.Join(place, "told"), 0o700); err != nil {
			b.Fatal(err)
		}
		on := open(place)
		another := func(what string, do func()) {
			began := time.Now()
			do()
			until(b, "another start of the training", func() bool {
				content, _ := os.ReadFile(filepath.Join(place, "told", "starts")) //nolint:errcheck // there may be none yet
				before := count
				count = strings.Count(string(content), "started")
				return count > before
			})
			took[what] = append(took[what], time.Since(began).Seconds())
		}
		another("created", on.submit)
		another("preempted", on.preempt)
		another("lost", on.lose)
		on.end()
	}
	for what, seconds := range took {
		slices.Sort(seconds)
		b.Logf("%s: median %.1f s (%.1f to %.1f), n = %d", what, seconds[len(seconds)/2], seconds[0], seconds[len(seconds)-1], len(seconds))
		b.ReportMetric(seconds[len(seconds)/2], what+"-s")
	}
}
