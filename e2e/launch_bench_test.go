package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// engine is a cluster of which nothing is used yet.
type engine struct {
	environment, line []string
	preempt, lose     func(worker protocol.Worker)
}

// BenchmarkLaunch measures what a launcher with its defaults takes, each time on a new
// cluster: from the study's creation to its first lease, and from a worker's preemption and
// the loss of its node until its trial runs on another one.
//
//	go test ./e2e -run '^$' -bench Launch -benchtime 10x -timeout 1h
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
			return engine{
				environment: slurm.Environment, line: []string{"launch", "slurm", "--binary", binary, "--shapes", shapes},
				preempt: func(protocol.Worker) {
					slurm.Run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=true", "--output=/dev/null")
				},
				lose: func(worker protocol.Worker) { slurm.FailNode(worker.Machine.Host) },
			}
		})
	})
	b.Run("kubernetes", func(b *testing.B) {
		launches(b, func(string) engine {
			here := cluster.StartKubernetes(b, map[string]string{"/usr/local/bin/tandem": binary})
			return engine{
				line: []string{"launch", "kubernetes", "--kubeconfig", here.Config, "--image", "example.org/training:1", "--tandem-image", "example.org/tandem:1"},
				preempt: func(protocol.Worker) {
					pods, _ := here.Objects()
					here.Disrupt(pods[0].Name, "PreemptionByScheduler")
				},
				lose: func(protocol.Worker) { here.FailNode() },
			}
		})
	})
}

func launches(b *testing.B, open func(place string) engine) {
	took := map[string][]float64{}
	for range b.N {
		place := b.TempDir()
		here := newSite(b)
		on := open(place)
		for name, content := range map[string]string{
			"train.sh": clusterScript, "token": here.must("token", "create", "--scope", "launcher", "--name", "ann"),
			"study.yaml": strings.NewReplacer("parallel: 2", "parallel: 1", "trials: 2", "trials: 1").Replace(fmt.Sprintf(clusterStudy, place, "first", "")),
		} {
			if err := os.WriteFile(filepath.Join(place, name), []byte(content), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		here.token = strings.TrimSpace(here.must("token", "create", "--scope", "user", "--name", "ann"))
		launcher, err := launch.Start(binary, on.environment, slices.Concat(on.line, []string{
			"--server", here.server.URL, "--token-file", filepath.Join(place, "token"), "--logs", filepath.Join(place, "logs"), "--", "--probe", "never",
		}, opened(b))...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(launcher.Kill)
		until(b, "the launcher's report", func() bool { return strings.Contains(here.must("pool", "launches", "--json"), `"shapes"`) })

		at := protocol.Worker{}
		another := func(what string, do func()) {
			began := time.Now()
			do()
			last := at.ID
			until(b, "another worker with the trial", func() bool {
				for _, one := range read[[]protocol.Worker](b, here.must("workers", "--json")) {
					if len(one.Trials) > 0 && one.ID != last {
						at = one
					}
				}
				return at.ID != last
			})
			took[what] = append(took[what], time.Since(began).Seconds())
		}
		another("created", func() { here.must("study", "create", filepath.Join(place, "study.yaml")) })
		another("preempted", func() { on.preempt(at) })
		another("lost", func() { on.lose(at) })
		launcher.Kill()
	}
	for what, seconds := range took {
		slices.Sort(seconds)
		b.Logf("%s: median %.1f s (%.1f to %.1f), n = %d", what, seconds[len(seconds)/2], seconds[0], seconds[len(seconds)-1], len(seconds))
		b.ReportMetric(seconds[len(seconds)/2], what+"-s")
	}
}
