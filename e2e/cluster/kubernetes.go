package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes is a namespace of a cluster in which a launcher may do what the Role of
// deploy/kubernetes allows, and a node of four processors whose kubelet runs pods as
// processes of this machine. It has no images and no isolation.
//
// The control plane is that which TANDEM_KUBERNETES names the folder of (see
// e2e/kubernetes), and a double where it names none.
type Kubernetes struct {
	t      testing.TB
	folder string
	// Config is a kubeconfig of the launcher, Namespace the only one that it may use.
	Config, Namespace string

	plane   controlPlane
	api     *api // of an administrator
	nodes   int
	kubelet *kubelet
}

// controlPlane is what differs between a real one and the double.
type controlPlane interface {
	// open makes a namespace, and writes the launcher's kubeconfig.
	open(k *Kubernetes)
	addNode(name string)
	loseNode(name string)
	// allow changes what the launcher may do, and returns when that holds.
	allow(what string, may bool)
	// asked are the launcher's requests.
	asked() []string
}

const cores = 4

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: me, user: {token: %q}}]
contexts: [{name: here, context: {cluster: here, user: me, namespace: %q}}]
`

// StartKubernetes starts one that ends with the test. The paths of images are where it
// says on this machine.
func StartKubernetes(t testing.TB, inPlace map[string]string) *Kubernetes {
	t.Helper()
	k := &Kubernetes{t: t, folder: t.TempDir()}
	k.Config = filepath.Join(k.folder, "kubeconfig")
	if folder := os.Getenv("TANDEM_KUBERNETES"); folder != "" {
		k.plane = &real{folder: folder}
	} else {
		k.plane = newDouble()
	}
	k.plane.open(k)
	k.addNode(inPlace)
	t.Cleanup(func() { k.kubelet.stop() })
	return k
}

func (k *Kubernetes) addNode(inPlace map[string]string) {
	k.nodes++
	name := fmt.Sprint(k.Namespace, "-n", k.nodes)
	k.plane.addNode(name)
	k.kubelet = startKubelet(k, name, inPlace)
}

// Node is the name of the node.
func (k *Kubernetes) Node() string { return k.kubelet.node }

// writeConfig writes a kubeconfig of a token.
func (k *Kubernetes) writeConfig(server, authority, token string) {
	if err := os.WriteFile(k.Config, fmt.Appendf(nil, kubeconfig, server, authority, token, k.Namespace), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// in is a path of the namespace.
func (k *Kubernetes) in(path ...string) string {
	return "/api/v1/namespaces/" + k.Namespace + "/" + strings.Join(path, "/")
}

// must fails the test, unless what is asked for is not there any more.
func (k *Kubernetes) must(verb, path string, body, into any) {
	k.t.Helper()
	if err := k.api.do(context.Background(), verb, path, body, into); err != nil && !notFound(err) {
		k.t.Error(err)
	}
}

// TokenFile is where a worker finds the file of that name in the Secret of its pod.
func (k *Kubernetes) TokenFile(pod, name string) string {
	return filepath.Join(k.kubelet.volume(pod, "tandem-enrolment"), name)
}

// Disrupt has the cluster delete a pod for a reason, such as PreemptionByScheduler, in the
// way that it does so itself.
func (k *Kubernetes) Disrupt(name, reason string) {
	k.t.Helper()
	if reason == "EvictionByEvictionAPI" {
		k.must("POST", k.in("pods", name, "eviction"), &policyv1.Eviction{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: k.Namespace},
		}, nil)
		return
	}
	k.must("PATCH", k.in("pods", name, "status"), statusOf(corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()},
	}}), nil)
	k.must("DELETE", k.in("pods", name), nil, nil)
}

// FailNode has the cluster lose its node, and gives it another. What ran there runs on.
func (k *Kubernetes) FailNode() {
	lost := k.kubelet
	k.addNode(lost.inPlace)
	k.t.Cleanup(lost.stop)
	lost.lose()
	k.plane.loseNode(lost.node)
}

// Deny has the launcher's account lose what it may do, such as "create secrets".
func (k *Kubernetes) Deny(what ...string) {
	for _, one := range what {
		k.plane.allow(one, false)
	}
}

// Allow undoes Deny.
func (k *Kubernetes) Allow(what string) { k.plane.allow(what, true) }

// Asked are the requests that the launcher made, such as "create pods".
func (k *Kubernetes) Asked() []string { return k.plane.asked() }

// Secret is what the Secret of that name has under the key.
func (k *Kubernetes) Secret(name, key string) string {
	k.t.Helper()
	var secret corev1.Secret
	k.must("GET", k.in("secrets", name), nil, &secret)
	return string(secret.Data[key])
}

// Objects are all that the cluster keeps of pods: nothing secret may be in it.
func (k *Kubernetes) Objects() (pods []corev1.Pod, secrets []string) {
	k.t.Helper()
	var list corev1.PodList
	k.must("GET", k.in("pods"), nil, &list)
	var kept corev1.SecretList
	k.must("GET", k.in("secrets"), nil, &kept)
	names := map[string]bool{}
	for _, one := range kept.Items {
		names[one.Name] = true
	}
	return list.Items, slices.Sorted(maps.Keys(names))
}

// statusOf is a patch of a pod's status.
func statusOf(status corev1.PodStatus) any {
	content, err := json.Marshal(status)
	if err != nil {
		panic(err) // it is made of what can be written
	}
	return map[string]json.RawMessage{"status": content}
}

// until waits for what the control plane does in its own time.
func (k *Kubernetes) until(what string, is func() bool) {
	k.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.t.Fatalf("five minutes passed without %s", what)
		}
	}
}
