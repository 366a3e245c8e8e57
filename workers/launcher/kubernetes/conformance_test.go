package kubernetes_test

import (
	"testing"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/kubernetes"
	"github.com/tandem-tune/tandem/workers/launcher/launchertest"
)

// TestConformance is on a double of a cluster, whose kubelet runs pods as processes.
func TestConformance(t *testing.T) {
	launchertest.RunEach(t, func(t *testing.T) launchertest.Site {
		here := cluster.StartKubernetes(t, nil)
		return launchertest.Site{
			Open: func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine {
				made, err := kubernetes.New(
					engine.Options{Name: name, Worker: worker, Enrolments: enrolments, Home: "/home/of'it", Path: "/usr/local/bin:/usr/bin:/bin"},
					kubernetes.Pods{Kubeconfig: here.Config, Image: "example.org/training:1"})
				if err != nil {
					t.Fatal(err)
				}
				return made
			},
			TokenFile: func(name, launch string) string { return here.TokenFile(name+"-"+launch, launch) },
			Option:    "--priority-class=low", Refused: "--priority-class=nowhere",
			Preempt: func(job launcher.Job) { here.Disrupt(job.ID, "PreemptionByScheduler") },
			Lose:    func(launcher.Job) { here.FailNode() },
		}
	})
}
