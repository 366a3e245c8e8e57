package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

// TestKubernetesRunsStudies: on a cluster, or a double of one, a user writes "tandem launch
// kubernetes" and nothing else. A pod starts when trials wait, with tandem copied into it
// and a token of its own, and ends when none do; a trial whose pod is preempted goes on in
// another one. Without a launcher there is no pod.
func TestKubernetesRunsStudies(t *testing.T) {
	t.Parallel()
	here := cluster.StartKubernetes(t, map[string]string{"/usr/local/bin/tandem": binary})
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
	tokenFile, shapes := write("token", token), write("shapes.yaml", "shapes: [{name: cpu, cores: 3, most: 2}]")
	at.token = user
	trial := func() string { return at.must("study", "trial", "first", "0", "--json") }
	at.must("study", "create", write("first.yaml", strings.Replace(fmt.Sprintf(clusterStudy, place, "first", ""), "parallel: 2\nstop: {trials: 2}", "parallel: 1\nstop: {trials: 1}", 1)))
	if pods, _ := here.Objects(); len(pods) > 0 {
		t.Fatalf("pods without a launcher: %+v", pods)
	}
	line := []string{"launch", "kubernetes", "--server", at.server.URL, "--token-file", tokenFile, "--shapes", shapes, "--logs", filepath.Join(place, "logs"), "--every", "1s", "--idle", "1s",
		"--kubeconfig", here.Config, "--image", "example.org/training:1", "--tandem-image", "example.org/tandem:1", "--", "--probe", "never"}
	launcher, err := launch.Start(binary, []string{"TANDEM_TOKEN=leaked-" + token}, append(line, opened(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		launcher.Kill()
		if t.Failed() {
			t.Logf("the launcher said:\n%s", launcher.Output())
		}
	})

	host := ""
	until(t, "a trial in a pod", func() bool {
		for _, worker := range read[[]protocol.Worker](t, at.must("workers", "--json")) {
			if len(worker.Trials) > 0 {
				host = worker.Machine.Host
			}
		}
		return host != ""
	})
	if host != here.Node() {
		t.Errorf("the worker's machine is %s, want the node %s", host, here.Node())
	}
	noToken(t, token, filepath.Join(place, "nothing"), launcher.PID())
	write("go1", "")
	until(t, "an epoch", func() bool { return strings.Contains(trial(), `"accuracy"`) })
	until(t, "the used Secret to be gone", func() bool {
		_, secrets := here.Objects()
		return len(secrets) == 0
	})
	pods, _ := here.Objects()
	if len(pods) != 1 || len(pods[0].Spec.InitContainers) != 1 {
		t.Fatalf("one trial made the pods %+v", pods)
	}
	if content, err := json.Marshal(pods); err != nil || strings.Contains(string(content), "tandem_") {
		t.Errorf("a token is in %s, %v", content, err)
	}
	here.Disrupt(pods[0].Name, "PreemptionByScheduler")
	until(t, "the trial to say that its pod was ended", func() bool { return strings.Contains(trial(), "stopped by Kubernetes (pod "+pods[0].Name+")") })
	write("go2", "")
	write("go3", "")
	until(t, "the study to end in another pod", func() bool {
		return read[protocol.StudyView](t, at.must("study", "show", "first", "--json")).Status == protocol.StudyCompleted
	})
	until(t, "the pods to end", func() bool {
		pods, secrets := here.Objects()
		return len(secrets) == 0 && len(pods) == 1 && pods[0].Status.Phase == "Succeeded"
	})
	until(t, "both ends to be told", func() bool {
		ends := read[crew.Launches](t, at.must("pool", "launches", "--json")).Launchers[0].Ends
		return len(ends) == 2 && ends[1].Cause == protocol.Preempted && ends[0].Cause == protocol.Finished
	})
}
