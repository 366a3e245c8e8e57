package kubernetes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/workers/launcher/kubernetes"
)

const deploy = "../../../deploy/kubernetes"

// manifests are the objects of the base, by kind, namespace and name. A field that is not
// one of its kind fails.
func manifests(t *testing.T) map[string]any {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(deploy, "base", "*.yaml"))
	if err != nil || len(paths) < 6 {
		t.Fatalf("the base is %v, %v", paths, err)
	}
	kinds := map[string]func() any{
		"Namespace": func() any { return &corev1.Namespace{} }, "Service": func() any { return &corev1.Service{} }, "ServiceAccount": func() any { return &corev1.ServiceAccount{} },
		"PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} }, "StatefulSet": func() any { return &appsv1.StatefulSet{} }, "Deployment": func() any { return &appsv1.Deployment{} },
		"Role": func() any { return &rbacv1.Role{} }, "RoleBinding": func() any { return &rbacv1.RoleBinding{} }, "NetworkPolicy": func() any { return &networkingv1.NetworkPolicy{} },
	}
	found := map[string]any{}
	for _, path := range paths {
		if name := filepath.Base(path); name == "kustomization.yaml" || name == "shapes.yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range strings.Split(string(content), "\n---\n") {
			var meta metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(one), &meta); err != nil || kinds[meta.Kind] == nil {
				t.Fatalf("%s: %v, kind %q", path, err, meta.Kind)
			}
			object := kinds[meta.Kind]()
			if err := yaml.UnmarshalStrict([]byte(one), object); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			found[meta.Kind+" "+meta.Namespace+"/"+meta.Name] = object
		}
	}
	return found
}

// everything has an engine do all that it can, and returns what it asked the cluster for.
func everything(t *testing.T, pods kubernetes.Pods) []string {
	t.Helper()
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, pods)
	list := func() {
		t.Helper()
		if _, err := made.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	made.Doctor(t.Context())
	list()
	launch(t, made, tokens, order("abc"))
	if err := tokens.Keep("abc-0", "another"); err != nil {
		t.Fatal(err)
	}
	err := made.Carry(t.Context(), "abc-0")
	if err == nil {
		if err = tokens.Drop("abc-0"); err == nil {
			err = made.Carry(t.Context(), "abc-0")
		}
	}
	if err == nil {
		err = made.Cancel(t.Context(), []string{"tandem-abc-0"})
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if left, _ := here.Objects(); len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("five minutes passed, and the pod is left")
		}
	}
	list()
	return here.Asked()
}

// TestTheLauncherMayDoWhatItDoes: the Role has each right that the engine uses, and none
// that it does not.
func TestTheLauncherMayDoWhatItDoes(t *testing.T) {
	objects := manifests(t)
	role := objects["Role tandem-workers/tandem-launcher"].(*rbacv1.Role)
	rights := func(rules []rbacv1.PolicyRule) (list []string) {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				if rule.APIGroups[0] != "" {
					resource += "." + rule.APIGroups[0]
				}
				for _, verb := range rule.Verbs {
					list = append(list, verb+" "+resource)
				}
			}
			if len(rule.APIGroups) != 1 || len(rule.ResourceNames)+len(rule.NonResourceURLs) > 0 {
				t.Errorf("the rule %+v is not read by this test", rule)
			}
		}
		slices.Sort(list)
		return list
	}
	if has, does := rights(role.Rules), everything(t, kubernetes.Pods{Image: "x"}); !slices.Equal(has, does) {
		t.Errorf("the launcher may %v, and does %v", has, does)
	}
	content, err := os.ReadFile(filepath.Join(deploy, "overlays", "kueue", "kustomization.yaml"))
	if err != nil || !strings.Contains(string(content), "value: {apiGroups: [kueue.x-k8s.io], resources: [localqueues], verbs: [get]}") {
		t.Errorf("the overlay for Kueue gives no right to look at the queue: %v", err)
	}
	more := slices.DeleteFunc(everything(t, kubernetes.Pods{Image: "x", Queue: "team-a"}), func(one string) bool { return slices.Contains(rights(role.Rules), one) })
	if !slices.Equal(more, []string{"get localqueues.kueue.x-k8s.io"}) {
		t.Errorf("with a queue it does %v beside", more)
	}
	binding := objects["RoleBinding tandem-workers/tandem-launcher"].(*rbacv1.RoleBinding)
	deployment := objects["Deployment tandem/tandem-launcher"].(*appsv1.Deployment)
	if account := binding.Subjects[0]; binding.RoleRef.Name != role.Name || account.Name != deployment.Spec.Template.Spec.ServiceAccountName || account.Namespace != deployment.Namespace {
		t.Errorf("%+v is bound to %+v, and the launcher is %s", binding.RoleRef, account, deployment.Spec.Template.Spec.ServiceAccountName)
	}
}

// TestAllPodsAreRestricted judges the pods of the manifests, and those that the launcher
// makes, as the admission of pod security does.
func TestAllPodsAreRestricted(t *testing.T) {
	objects := manifests(t)
	here := cluster.StartKubernetes(t, nil)
	made, tokens := open(t, here, kubernetes.Pods{Image: "x", TandemImage: "y"})
	launch(t, made, tokens, order("abc"))
	workers, _ := here.Objects()
	server := objects["StatefulSet tandem/tandem"].(*appsv1.StatefulSet).Spec.Template
	deployment := objects["Deployment tandem/tandem-launcher"].(*appsv1.Deployment).Spec.Template
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	denied := func(spec corev1.PodSpec) (why []string) {
		for _, one := range judge.EvaluatePod(restricted, &metav1.ObjectMeta{}, &spec) {
			if !one.Allowed {
				why = append(why, fmt.Sprint(one.ForbiddenReason, ": ", one.ForbiddenDetail))
			}
		}
		return why
	}
	for name, spec := range map[string]corev1.PodSpec{"server": server.Spec, "launcher": deployment.Spec, "worker": workers[0].Spec} {
		if why := denied(spec); len(why) > 0 {
			t.Errorf("the pod of the %s is not restricted: %v", name, why)
		}
		spec.SecurityContext = nil
		if len(denied(spec)) == 0 {
			t.Errorf("the pod of the %s is judged by nothing", name)
		}
	}
	for _, name := range []string{"tandem", "tandem-workers"} {
		if level := objects["Namespace /"+name].(*corev1.Namespace).Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
			t.Errorf("the namespace %s enforces %q", name, level)
		}
	}
}

// TestTheNetworkIsClosedButForTheServer: policies select the pods that there are.
func TestTheNetworkIsClosedButForTheServer(t *testing.T) {
	objects := manifests(t)
	labels := map[string]string{}
	for name, template := range map[string]corev1.PodTemplateSpec{
		"server": objects["StatefulSet tandem/tandem"].(*appsv1.StatefulSet).Spec.Template, "launcher": objects["Deployment tandem/tandem-launcher"].(*appsv1.Deployment).Spec.Template,
	} {
		labels[name] = template.Labels["app.kubernetes.io/component"]
		policy := objects["NetworkPolicy tandem/tandem-"+name].(*networkingv1.NetworkPolicy)
		if policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"] != labels[name] {
			t.Errorf("the policy of the %s selects %v", name, policy.Spec.PodSelector)
		}
	}
	workers := objects["NetworkPolicy tandem-workers/tandem-workers"].(*networkingv1.NetworkPolicy).Spec
	if len(workers.PodSelector.MatchLabels) > 0 || !slices.Equal(workers.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) || len(workers.Ingress) > 0 || len(workers.Egress) != 2 {
		t.Errorf("workers may do %+v", workers)
	}
	port := objects["Service tandem/tandem"].(*corev1.Service).Spec.Ports[0].Port
	if to := workers.Egress[0]; to.To[0].PodSelector.MatchLabels["app.kubernetes.io/component"] != labels["server"] || to.Ports[0].Port.IntVal != port {
		t.Errorf("workers reach %+v", to)
	}
}

// TestTheOverlaysAreRendered is with kubectl, where there is one.
func TestTheOverlaysAreRendered(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl to render them")
	}
	for folder, wants := range map[string][]string{
		"base": {"registry.example/tandem:1", "name: tandem-launcher-", "namespace: tandem-workers"}, "overlays/kueue": {"--queue=tandem", "- localqueues", "kind: LocalQueue"}, "overlays/gpu": {"name: gpu4", "TANDEM_IMAGE: registry.example/tandem:1"},
		"overlays/postgresql": {"- --database-password-file=/etc/tandem-database/password", "name: TANDEM_DATABASE", "secretName: tandem-database", "storage: 5Gi", "--advertise=https://tandem.tandem.svc:7171", "secretName: tandem-tls"},
	} {
		said, err := exec.Command(kubectl, "kustomize", filepath.Join(deploy, folder)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", folder, err, said)
		}
		for _, want := range wants {
			if !strings.Contains(string(said), want) {
				t.Errorf("%s has no %q:\n%s", folder, want, said)
			}
		}
	}
}

// TestTheManifestsAreTaken applies them to a real API server, whose controllers make the
// pods: nothing of them is refused, by pod security or for a field that is none.
func TestTheManifestsAreTaken(t *testing.T) {
	folder := os.Getenv("TANDEM_KUBERNETES")
	if folder == "" {
		t.Skip("there is no control plane: e2e/kubernetes starts one")
	}
	kubectl := func(words ...string) string {
		t.Helper()
		said, err := exec.Command("kubectl", append([]string{"--kubeconfig", filepath.Join(folder, "admin.kubeconfig")}, words...)...).CombinedOutput()
		if err != nil || strings.Contains(string(said), "Warning") {
			t.Errorf("kubectl %s: %v: %s", words, err, said)
		}
		return string(said)
	}
	for _, overlay := range []string{"base", "overlays/gpu", "overlays/postgresql"} {
		kubectl("apply", "-k", filepath.Join(deploy, overlay))
		for _, pod := range []string{"server", "launcher"} {
			kubectl("--namespace", "tandem", "wait", "--for=create", "--timeout=5m", "pod", "--selector=app.kubernetes.io/component="+pod)
		}
		kubectl("delete", "-k", filepath.Join(deploy, overlay), "--timeout=5m")
	}
}
