package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// real is the control plane that e2e/kubernetes started. Its folder has the address (server),
// the authority (ca.pem), an administrator's token (token) and the audit log (audit.log).
type real struct {
	*Kubernetes
	folder, authority string
	role              rbacv1.Role
	lose              map[string]func() // nodes
}

// namespaces are how many this process made.
var namespaces atomic.Int64

const (
	account     = "launcher"
	roles       = "/apis/rbac.authorization.k8s.io/v1/namespaces/"
	localQueues = "/apis/kueue.x-k8s.io/v1beta1/namespaces/"
	leases      = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
)

// queues is the kind of Kueue's queues, as far as a launcher looks at one.
var queues = map[string]any{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "localqueues.kueue.x-k8s.io"},
	"spec": map[string]any{
		"group": "kueue.x-k8s.io", "scope": "Namespaced", "names": map[string]any{"kind": "LocalQueue", "plural": "localqueues"},
		"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	},
}

// ensure makes an object unless it is there.
func (r *real) ensure(path string, object any) {
	if err := r.api.do(context.Background(), "POST", path, object, nil); err != nil && !exists(err) {
		r.t.Fatal(err)
	}
}

func (r *real) open(k *Kubernetes) {
	r.Kubernetes = k
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(r.folder, name))
		if err != nil {
			k.t.Fatalf("TANDEM_KUBERNETES is not the folder of a control plane: %v", err)
		}
		return strings.TrimSpace(string(content))
	}
	r.authority = read("ca.pem")
	known := x509.NewCertPool()
	known.AppendCertsFromPEM([]byte(r.authority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}
	k.api = &api{client: &http.Client{Transport: transport, Timeout: time.Minute}, server: read("server"), token: read("token")}
	k.t.Cleanup(transport.CloseIdleConnections)

	k.Namespace = fmt.Sprintf("tuning-%d-%d", os.Getpid(), namespaces.Add(1))
	k.must("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, nil)
	k.t.Cleanup(func() { k.must("DELETE", "/api/v1/namespaces/"+k.Namespace, nil, nil) })
	r.ensure("/apis/scheduling.k8s.io/v1/priorityclasses", map[string]any{"metadata": map[string]any{"name": "low"}, "value": -10})
	r.ensure("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", queues)
	r.until("queues", func() bool {
		err := k.api.do(context.Background(), "POST", localQueues+k.Namespace+"/localqueues", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": map[string]any{"name": "team-a"}}, nil)
		return err == nil || exists(err)
	})
	k.must("POST", k.in("serviceaccounts"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, nil)
	r.giveRights()
	token := &authenticationv1.TokenRequest{}
	k.must("POST", k.in("serviceaccounts", account, "token"), token, token)
	k.writeConfig(k.api.server, base64.StdEncoding.EncodeToString([]byte(r.authority)), token.Status.Token)
	k.until("the account of pods", func() bool {
		return k.api.do(context.Background(), "GET", k.in("serviceaccounts", "default"), nil, nil) == nil
	})
	for _, verb := range r.role.Rules[0].Verbs {
		r.settle(verb, "pods", true)
	}
}

// giveRights binds the Role of the manifests to the launcher's account.
func (r *real) giveRights() {
	path := "deploy/kubernetes/base/rights.yaml"
	content, err := os.ReadFile(path)
	for range 5 { // tests run in the folder of their package
		if err != nil {
			path = "../" + path
			content, err = os.ReadFile(path)
		}
	}
	if err == nil {
		err = yaml.Unmarshal(bytes.Split(content, []byte("\n---\n"))[0], &r.role)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.role.Namespace = r.Namespace
	r.role.Rules = append(r.role.Rules, rbacv1.PolicyRule{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"localqueues"}, Verbs: []string{"get"}}) // as the overlay does
	r.must("POST", roles+r.Namespace+"/roles", &r.role, nil)
	r.must("POST", roles+r.Namespace+"/rolebindings", &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: r.role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: r.Namespace}},
	}, nil)
}

func (r *real) user() string { return "system:serviceaccount:" + r.Namespace + ":" + account }

// settle waits until those who decide know whether the launcher may do something.
func (r *real) settle(verb, resource string, may bool) {
	r.until("the launcher's rights", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: r.user(), ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Verb: verb, Resource: resource},
		}}
		r.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, review)
		return review.Status.Allowed == may
	})
}

func (r *real) allow(what string, may bool) {
	verb, of, _ := strings.Cut(what, " ")
	for i, rule := range r.role.Rules {
		if slices.Contains(rule.Resources, of) {
			r.role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(one string) bool { return one == verb })
			if may {
				r.role.Rules[i].Verbs = append(r.role.Rules[i].Verbs, verb)
			}
		}
	}
	r.must("PUT", roles+r.Namespace+"/roles/"+r.role.Name, &r.role, nil)
	r.settle(verb, of, may)
}

// addNode registers a node, and keeps its lease until the test ends or it is lost.
func (r *real) addNode(name string) {
	var others corev1.NodeList // of tests before, and lost ones
	r.must("GET", "/api/v1/nodes", nil, &others)
	for _, one := range others.Items {
		r.must("PATCH", "/api/v1/nodes/"+one.Name, map[string]any{"spec": map[string]any{"unschedulable": true}}, nil)
	}
	room := corev1.ResourceList{"cpu": *resource.NewQuantity(cores, ""), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	r.must("POST", "/api/v1/nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-L4", "zone": "a", "disk": "ssd"}}}, nil)
	r.t.Cleanup(func() { r.must("DELETE", "/api/v1/nodes/"+name, nil, nil) })
	r.must("PATCH", "/api/v1/nodes/"+name+"/status", map[string]any{"status": corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
	}}, nil)
	ctx, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { r.heartbeats(ctx, name) })
	if r.lose == nil {
		r.lose = map[string]func(){}
	}
	r.lose[name] = func() { stop(); beats.Wait() }
	r.t.Cleanup(r.lose[name])
	r.until("a node that takes pods", func() bool {
		var node corev1.Node
		r.must("GET", "/api/v1/nodes/"+name, nil, &node)
		return len(node.Spec.Taints) == 0
	})
}

// loseNode lets the lease of a node end. Pods that ask to stay are deleted thereafter.
func (r *real) loseNode(name string) { r.lose[name]() }

// heartbeats renews the lease of a node.
func (r *real) heartbeats(ctx context.Context, name string) {
	for first := true; ctx.Err() == nil; first = false {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro())}}
		verb, path := "PATCH", leases+"/"+name
		if first {
			verb, path = "POST", leases
		}
		if err := r.api.do(ctx, verb, path, lease, nil); err != nil && ctx.Err() == nil {
			r.t.Error(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// Crowd has a pod of high priority ask for the whole node, and says whether there is a
// scheduler that makes room for it.
func (k *Kubernetes) Crowd() bool {
	r, is := k.plane.(*real)
	if !is {
		return false
	}
	r.ensure("/apis/scheduling.k8s.io/v1/priorityclasses", map[string]any{"metadata": map[string]any{"name": "high"}, "value": 1000})
	k.must("POST", k.in("pods"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Spec: corev1.PodSpec{
		PriorityClassName: "high", AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "urgent", Image: "x", Command: []string{"sleep", "600"},
			Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewQuantity(cores, "")}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}}, nil)
	return true
}

func (r *real) asked() []string {
	log, err := os.Open(filepath.Join(r.folder, "audit.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // it is read
	found := map[string]bool{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Namespace, APIGroup string }
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			r.t.Error(err)
		}
		if ref := one.ObjectRef; one.User.Username == r.user() && ref.Namespace == r.Namespace {
			found[strings.TrimSuffix(one.Verb+" "+ref.Resource+"."+ref.APIGroup, ".")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
