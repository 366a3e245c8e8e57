package slurm_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/launchertest"
	"github.com/tandem-tune/tandem/workers/launcher/slurm"
)

// TestConformance is on a real Slurm. TestSlurmRunsStudies in e2e loses a node.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("a Slurm takes time to start")
	}
	launchertest.Run(t, func() launchertest.Site {
		site := cluster.StartSlurm(t)
		site.Run("scontrol", "update", "nodename=n2", "state=drain", "reason=test") // n1 has four cores
		for _, one := range site.Environment {
			name, value, _ := strings.Cut(one, "=")
			t.Setenv(name, value)
		}
		return launchertest.Site{
			Open: func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine {
				made, err := slurm.New(engine.Options{Name: name, Logs: t.TempDir(), Worker: worker, Enrolments: enrolments, Home: "/home/of'it", Path: "/usr/local/bin:/usr/bin:/bin"})
				if err != nil {
					t.Fatal(err)
				}
				return made
			},
			Option: "--comment=some", Refused: "--partition=nowhere",
			Preempt: func(launcher.Job) {
				site.Run("sbatch", "--partition=urgent", "--exclusive", "--nodes=1", "--wrap=true", "--output=/dev/null")
			},
		}
	}())
}
