package cluster

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kubernetes is a double of a cluster: an API server as far as launchers use it, and a
// node of four processors whose kubelet runs pods as processes of this machine. It has no
// images and no isolation.
type Kubernetes struct {
	t      *testing.T
	folder string
	// Config is a kubeconfig that reaches it, Namespace the only one that it has.
	Config, Namespace string

	mutex   sync.Mutex
	changed *sync.Cond
	closed  bool
	version int
	node    int
	pods    map[string]*corev1.Pod
	secrets map[string]*corev1.Secret
	past    []event
	asked   map[string]bool
	denied  map[string]bool
	inPlace map[string]string // what is where in images, and where it is here
	started map[string]bool
	told    map[string]bool // to end
	process map[string]*os.Process
}

type event struct {
	version int
	kind    string
	pod     *corev1.Pod
}

const (
	cores      = 4
	mostOfList = 2 // in a page
	bearer     = "of-the-launcher"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: me, user: {token: %q}}]
contexts: [{name: here, context: {cluster: here, user: me, namespace: tuning}}]
`

// StartKubernetes starts one that ends with the test. The paths of images are where it
// says on this machine.
func StartKubernetes(t *testing.T, inPlace map[string]string) *Kubernetes {
	t.Helper()
	k := &Kubernetes{
		t: t, folder: t.TempDir(), Namespace: "tuning", node: 1, inPlace: inPlace, pods: map[string]*corev1.Pod{}, secrets: map[string]*corev1.Secret{},
		asked: map[string]bool{}, denied: map[string]bool{}, started: map[string]bool{}, told: map[string]bool{}, process: map[string]*os.Process{},
	}
	k.changed = sync.NewCond(&k.mutex)
	server := httptest.NewTLSServer(k.routes())
	k.Config = filepath.Join(k.folder, "kubeconfig")
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err := os.WriteFile(k.Config, fmt.Appendf(nil, kubeconfig, server.URL, authority, bearer), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.stop()
		server.Close()
	})
	return k
}

func (k *Kubernetes) routes() http.Handler {
	mux := http.NewServeMux()
	in := "/api/v1/namespaces/" + k.Namespace
	route := func(pattern, verb, resource string, handle func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			does := verb
			if verb == "list" && r.URL.Query().Has("watch") {
				does = "watch"
			}
			k.mutex.Lock()
			defer k.mutex.Unlock()
			if verb != "" {
				k.asked[does+" "+resource] = true
			}
			switch {
			case r.Header.Get("Authorization") != "Bearer "+bearer:
				refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who are you")
			case k.denied[does+" "+resource]:
				refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "%s is forbidden: cannot %s resource", resource, does)
			default:
				handle(w, r)
			}
		})
	}
	route("GET /version", "", "", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]string{"gitVersion": "v1.34.1"})
	})
	route("POST "+in+"/pods", "create", "pods", k.createPod)
	route("GET "+in+"/pods", "list", "pods", k.listPods)
	route("DELETE "+in+"/pods/{name}", "delete", "pods", k.deletePod)
	route("POST "+in+"/secrets", "create", "secrets", k.createSecret)
	route("PUT "+in+"/secrets/{name}", "update", "secrets", k.createSecret)
	route("DELETE "+in+"/secrets/{name}", "delete", "secrets", k.deleteSecret)
	route("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", k.review)
	route("GET /apis/kueue.x-k8s.io/v1beta1/namespaces/"+k.Namespace+"/localqueues/{name}", "get", "localqueues.kueue.x-k8s.io", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != "team-a" {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "localqueues.kueue.x-k8s.io %q not found", r.PathValue("name"))
			return
		}
		answer(w, 200, map[string]string{})
	})
	return mux
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // who asked may be gone
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, format string, arguments ...any) {
	answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, arguments...)})
}

// note has a pod as it is now in the history.
func (k *Kubernetes) note(kind string, pod *corev1.Pod) {
	k.version++
	pod.ResourceVersion = strconv.Itoa(k.version)
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	k.past = append(k.past, event{k.version, kind, pod.DeepCopy()})
	k.changed.Broadcast()
}

func (k *Kubernetes) createPod(w http.ResponseWriter, r *http.Request) {
	pod := &corev1.Pod{}
	if err := json.NewDecoder(r.Body).Decode(pod); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	wrong := validation.IsDNS1123Subdomain(pod.Name)
	for key, value := range pod.Labels {
		wrong = slices.Concat(wrong, validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
	}
	switch {
	case len(wrong) > 0:
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "Pod %q is invalid: %v", pod.Name, wrong)
	case !slices.Contains([]string{"", "low"}, pod.Spec.PriorityClassName):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "pods %q is forbidden: no PriorityClass with name %s was found", pod.Name, pod.Spec.PriorityClassName)
	case k.pods[pod.Name] != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "pods %q already exists", pod.Name)
	case r.URL.Query().Has("dryRun"):
		answer(w, http.StatusCreated, pod)
	default:
		pod.UID = types.UID(fmt.Sprint(pod.Name, "-", k.version))
		pod.CreationTimestamp = metav1.Now()
		pod.Status.Phase = corev1.PodPending
		k.pods[pod.Name] = pod
		k.note("ADDED", pod)
		k.work()
		answer(w, http.StatusCreated, pod)
	}
}

// listPods lists pods in pages, or tells what became of them.
func (k *Kubernetes) listPods(w http.ResponseWriter, r *http.Request) {
	ask := r.URL.Query()
	selector, err := labels.Parse(ask.Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	if ask.Has("watch") {
		k.watch(w, r, selector)
		return
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = strconv.Itoa(k.version)
	most, err := strconv.Atoi(cmp.Or(ask.Get("limit"), "1000"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(k.pods)) {
		if pod := k.pods[name]; name > ask.Get("continue") && selector.Matches(labels.Set(pod.Labels)) {
			if len(list.Items) == min(most, mostOfList) {
				list.Continue = list.Items[len(list.Items)-1].Name
				break
			}
			list.Items = append(list.Items, *pod)
		}
	}
	answer(w, 200, list)
}

// watch tells all that happened after a version, and goes on for as long as was asked.
func (k *Kubernetes) watch(w http.ResponseWriter, r *http.Request, selector labels.Selector) {
	after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, err2 := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || err2 != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v, %v", err, err2)
		return
	}
	over := false
	defer time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		over = true
		k.changed.Broadcast()
	}).Stop()
	w.Header().Set("Content-Type", "application/json")
	for at := 0; ; at++ {
		for at == len(k.past) {
			w.(http.Flusher).Flush()
			if over || k.closed || r.Context().Err() != nil {
				return
			}
			k.changed.Wait()
		}
		if one := k.past[at]; one.version > after && selector.Matches(labels.Set(one.pod.Labels)) {
			if json.NewEncoder(w).Encode(map[string]any{"type": one.kind, "object": one.pod}) != nil {
				return
			}
		}
	}
}

func (k *Kubernetes) deletePod(w http.ResponseWriter, r *http.Request) {
	pod := k.pods[r.PathValue("name")]
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods %q not found", r.PathValue("name"))
		return
	}
	k.remove(pod)
	answer(w, 200, pod)
}

// remove deletes a pod: at once if nothing of it runs, and else when that has ended.
func (k *Kubernetes) remove(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || ended(pod) {
		k.drop(pod)
	} else if pod.DeletionTimestamp == nil {
		pod.DeletionGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
		pod.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)))
		k.note("MODIFIED", pod)
	}
	k.work()
}

// drop takes a pod out, and what it owns.
func (k *Kubernetes) drop(pod *corev1.Pod) {
	delete(k.pods, pod.Name)
	k.note("DELETED", pod)
	maps.DeleteFunc(k.secrets, func(_ string, secret *corev1.Secret) bool {
		return slices.ContainsFunc(secret.OwnerReferences, func(one metav1.OwnerReference) bool { return one.UID == pod.UID })
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (k *Kubernetes) createSecret(w http.ResponseWriter, r *http.Request) {
	secret := &corev1.Secret{}
	err := json.NewDecoder(r.Body).Decode(secret)
	switch exists := k.secrets[secret.Name] != nil; {
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
	case exists && r.Method == http.MethodPost:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "secrets %q already exists", secret.Name)
	case !exists && r.Method == http.MethodPut:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "secrets %q not found", secret.Name)
	default:
		k.secrets[secret.Name] = secret
		k.work()
		answer(w, http.StatusCreated, secret)
	}
}

func (k *Kubernetes) deleteSecret(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if k.secrets[name] == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "secrets %q not found", name)
		return
	}
	delete(k.secrets, name)
	answer(w, 200, metav1.Status{Status: metav1.StatusSuccess})
}

func (k *Kubernetes) review(w http.ResponseWriter, r *http.Request) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	asks := review.Spec.ResourceAttributes
	review.Status.Allowed = !k.denied[asks.Verb+" "+asks.Resource]
	answer(w, http.StatusCreated, review)
}

// Deny has the launcher's account lose what it may do, such as "create secrets".
func (k *Kubernetes) Deny(what ...string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, one := range what {
		k.denied[one] = true
	}
}

// Allow undoes Deny.
func (k *Kubernetes) Allow(what string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.denied, what)
}

// Secret is what the Secret of that name has under the key.
func (k *Kubernetes) Secret(name, key string) string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.secrets[name] == nil {
		return ""
	}
	return string(k.secrets[name].Data[key])
}

// Asked are the requests that were made, such as "create pods".
func (k *Kubernetes) Asked() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Sorted(maps.Keys(k.asked))
}

// Objects are all that the cluster keeps of pods: nothing secret may be in it.
func (k *Kubernetes) Objects() (pods []corev1.Pod, secrets []string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, pod := range k.pods {
		pods = append(pods, *pod.DeepCopy())
	}
	return pods, slices.Sorted(maps.Keys(k.secrets))
}
