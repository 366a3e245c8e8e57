package kubernetes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/kubernetes"
)

// open returns an engine whose workers sleep, and the folder of their tokens.
func open(t *testing.T, here *cluster.Kubernetes, pods kubernetes.Pods) (*kubernetes.Engine, engine.Enrolments) {
	t.Helper()
	tokens := engine.Enrolments(filepath.Join(t.TempDir(), "tokens"))
	if err := tokens.Open(); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, []byte("the authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	pods.Kubeconfig = here.Config
	made, err := kubernetes.New(engine.Options{Name: "tandem", Worker: []string{"/bin/sh", write(t, "exec sleep 600"), "--ca", authority}, Enrolments: tokens}, pods)
	if err != nil {
		t.Fatal(err)
	}
	return made, tokens
}

func order(id string, options ...string) launcher.Order {
	return launcher.Order{ID: id, Count: 1, Shape: launcher.Shape{Name: "gpu", GPUs: 2, GPUType: "NVIDIA-L4", Cores: 2, MemoryGiB: 1.5, Trials: 1, TimeLimit: time.Hour, Options: options}}
}

func launch(t *testing.T, made launcher.Engine, tokens engine.Enrolments, order launcher.Order) {
	t.Helper()
	if err := tokens.Keep(order.Launch(0), "tandem_enrolment_secret"); err != nil {
		t.Fatal(err)
	}
	if err := made.Launch(t.Context(), order); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const template = `apiVersion: v1
kind: Pod
metadata: {labels: {cost-centre: vision}}
spec:
  imagePullSecrets: [{name: registry}]
  nodeSelector: {zone: a}
  terminationGracePeriodSeconds: 120
  containers:
    - name: worker
      image: example.org/of-the-template:1
      env: [{name: HF_HOME, value: /data/hf}]
      volumeMounts: [{name: data, mountPath: /data}]
    - name: beside
      image: example.org/beside:1
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// TestAPod is of what a pod is made: the shape, the site's template, and what the
// restricted standard of pod security asks for. No token is in it.
func TestAPod(t *testing.T) {
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, kubernetes.Pods{Template: write(t, template), TandemImage: "example.org/tandem:1", GPUResource: "nvidia.com/gpu"})
	labelled := order("abc", "--queue=team-a", "--node-selector=disk=ssd", "--toleration=spot", "--gpu-resource=nvidia.com/mig-1g.10gb")
	labelled.Shape.Labels, labelled.Shape.Taints = map[string]string{"rack": "7"}, []string{"old"}
	launch(t, made, tokens, labelled)
	pods, secrets := here.Objects()
	if len(pods) != 1 || !slices.Equal(secrets, []string{"tandem-abc-0"}) {
		t.Fatalf("there are %+v with %v", pods, secrets)
	}
	content, err := json.Marshal(pods[0])
	if err != nil {
		t.Fatal(err)
	}
	said := string(content)
	for _, want := range []string{
		`"cost-centre":"vision"`, `"kueue.x-k8s.io/queue-name":"team-a"`, `"tandem.dev/launch":"abc-0"`, `"tandem.dev/launcher":"tandem"`, `"tandem.dev/shape":"gpu"`,
		`"imagePullSecrets":[{"name":"registry"}]`, `"nodeSelector":{"disk":"ssd","nvidia.com/gpu.product":"NVIDIA-L4","rack":"7","zone":"a"}`,
		`{"key":"spot","operator":"Exists"},{"key":"old","operator":"Exists"},{"key":"nvidia.com/mig-1g.10gb","operator":"Exists"}`, `"terminationGracePeriodSeconds":120`,
		`"image":"example.org/of-the-template:1"`, `{"name":"HF_HOME","value":"/data/hf"}`, `"image":"example.org/beside:1"`,
		`"limits":{"cpu":"2","memory":"1536Mi","nvidia.com/mig-1g.10gb":"2"}`, `"requests":{"cpu":"2","memory":"1536Mi","nvidia.com/mig-1g.10gb":"2"}`,
		`"restartPolicy":"Never"`, `"activeDeadlineSeconds":3600`, `"automountServiceAccountToken":false`, `"readOnlyRootFilesystem":true`, `"runAsNonRoot":true`, `"drop":["ALL"]`,
		`"secret":{"secretName":"tandem-abc-0","defaultMode":288}`, `"command":["cp","/usr/local/bin/tandem","/tandem/bin/tandem"]`, `'--ca' '/tandem/enrolment/authority.pem'`,
		`"terminationMessagePolicy":"FallbackToLogsOnError"`, `"fieldPath":"spec.nodeName"`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in\n%s", want, said)
		}
	}
	if strings.Contains(said, "enrolment_secret") {
		t.Errorf("a token is in\n%s", said)
	}
}

func TestOptionsThatAreNoneAreRefused(t *testing.T) {
	pods := kubernetes.Pods{Image: "x"}
	for option, good := range map[string]bool{
		"--queue=team-a": true, "--image=y": true, "--template=" + write(t, template): true, "team-a": false, "--partition=gpu": false,
		"--template=/nowhere": false, "--template=" + write(t, "kind: Job"): false, "--template=" + write(t, "kind: Pod\nspce: {}"): false,
	} {
		if _, err := pods.With([]string{option}); (err == nil) != good {
			t.Errorf("%s: %v", option, err)
		}
	}
	if _, err := (kubernetes.Pods{}).With(nil); err == nil || !strings.Contains(err.Error(), "--image is missing") {
		t.Errorf("without an image: %v", err)
	}
	for name, good := range map[string]bool{"tandem": true, "team-a": true, "Team": false, "a.b": false, "": false, strings.Repeat("a", 33): false} {
		_, err := kubernetes.New(engine.Options{Name: name}, kubernetes.Pods{Kubeconfig: cluster.StartKubernetes(t, nil).Config, Image: "x"})
		if (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestASecretLivesAsLongAsItIsNeeded: it goes when it is used or its pod does, is made
// by the next process if this one ended before, and is replaced when its token is.
func TestASecretLivesAsLongAsItIsNeeded(t *testing.T) {
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, kubernetes.Pods{Image: "x"})
	secrets := func() []string {
		_, names := here.Objects()
		return names
	}
	here.Deny("create secrets")
	if err := tokens.Keep("abc-0", "first"); err != nil {
		t.Fatal(err)
	}
	if err := made.Launch(t.Context(), order("abc")); err == nil || len(secrets()) > 0 {
		t.Errorf("without the right to make Secrets: %v, %v", err, secrets())
	}
	here.Allow("create secrets")
	after, err := kubernetes.New(engine.Options{Name: "tandem", Worker: []string{"/bin/sh", write(t, "exec sleep 600")}, Enrolments: tokens}, kubernetes.Pods{Kubeconfig: here.Config, Image: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err := after.List(t.Context()); err != nil || len(jobs) != 1 || len(secrets()) != 1 {
		t.Errorf("the next process: %+v, %v, %v", jobs, err, secrets())
	}
	carry := func() {
		t.Helper()
		if err := after.Carry(t.Context(), "abc-0"); err != nil {
			t.Error(err)
		}
	}
	if err := tokens.Keep("abc-0", "second"); err != nil {
		t.Fatal(err)
	}
	carry()
	if got := here.Secret("tandem-abc-0", "abc-0"); got != "second\n" {
		t.Errorf("the renewed one holds %q", got)
	}
	if err := tokens.Drop("abc-0"); err != nil {
		t.Fatal(err)
	}
	carry()
	carry() // what is gone is no error
	if len(secrets()) > 0 {
		t.Errorf("the used one is left: %v", secrets())
	}
	launch(t, after, tokens, order("other"))
	if err := after.Cancel(t.Context(), []string{"tandem-other-0", "tandem-abc-0", "tandem-nothing-0"}); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); len(secrets()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("five minutes passed, and Secrets of pods that are gone are left: %v", secrets())
		}
	}
}

// TestAPodThatIsNotThereAnyMoreIsExplained: one that was preempted leaves within a second,
// and is deleted then. How it ended is known at the next look all the same.
func TestAPodThatIsNotThereAnyMoreIsExplained(t *testing.T) {
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, kubernetes.Pods{Image: "x"})
	list := func() []launcher.Job {
		t.Helper()
		jobs, err := made.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	list()
	launch(t, made, tokens, order("abc"))
	launch(t, made, tokens, order("other"))
	here.Disrupt("tandem-abc-0", "EvictionByEvictionAPI")
	if err := made.Cancel(t.Context(), []string{"tandem-other-0"}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if pods, _ := here.Objects(); len(pods) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("five minutes passed, and the pods are left")
		}
	}
	for range 2 {
		if jobs := list(); len(jobs) != 2 || jobs[0].Cause != protocol.Evicted || jobs[1].Cause != protocol.Cancelled || jobs[0].State != launcher.Ended {
			t.Errorf("it lists %+v", jobs)
		}
	}
}

// TestTheSchedulerPreempts a worker for a pod of higher priority; only a real one does.
func TestTheSchedulerPreempts(t *testing.T) {
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, kubernetes.Pods{Image: "x", PriorityClass: "low"})
	launch(t, made, tokens, order("abc"))
	until := func(state launcher.State) launcher.Job {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			jobs, err := made.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) == 1 && jobs[0].State == state {
				return jobs[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("five minutes passed, and the jobs are %+v", jobs)
			}
		}
	}
	until(launcher.Running)
	if !here.Crowd() {
		t.Skip("there is no scheduler: e2e/kubernetes starts one")
	}
	if job := until(launcher.Ended); job.Cause != protocol.Preempted {
		t.Errorf("it ended as %+v", job)
	}
}

// TestDoctor: a site that has all that is needed, and one that lacks it.
func TestDoctor(t *testing.T) {
	here := cluster.StartKubernetes(t, nil)
	made, _ := open(t, here, kubernetes.Pods{Image: "example.org/training:1", Queue: "team-a"})
	for _, one := range made.Doctor(t.Context()) {
		if !one.Good {
			t.Errorf("of a good site it is said: %+v", one)
		}
	}
	here.Deny("create secrets", "watch pods")
	made, _ = open(t, here, kubernetes.Pods{Image: "x", Queue: "team-b", PriorityClass: "nowhere"})
	bad := map[string]string{}
	for _, one := range made.Doctor(t.Context()) {
		if !one.Good {
			bad[one.Name] = one.Says
		}
	}
	for name, says := range map[string]string{
		"pods": "may not watch pods in " + here.Namespace + ": have", "secrets": "may not create secrets in " + here.Namespace + ": have",
		"queue team-b": "pods would wait for ever", "a worker's pod": "no PriorityClass with name nowhere was found",
	} {
		if !strings.Contains(bad[name], says) {
			t.Errorf("of %s it is said: %q", name, bad[name])
		}
	}
	if pods, secrets := here.Objects(); len(pods)+len(secrets) > 0 {
		t.Errorf("it left %+v, %v", pods, secrets)
	}
}
