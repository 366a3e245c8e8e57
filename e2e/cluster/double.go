package cluster

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// double is an API server as far as launchers and kubelets use it, and what a control
// plane does by itself: pods are placed, and what they own goes with them.
type double struct {
	mutex   sync.Mutex
	changed *sync.Cond
	closed  bool
	version int
	node    string
	pods    map[string]*corev1.Pod
	secrets map[string]*corev1.Secret
	past    []event
	did     map[string]bool
	denied  map[string]bool
}

type event struct {
	version int
	kind    string
	pod     *corev1.Pod
}

const (
	mostOfList   = 2 // in a page
	ofLauncher   = "of-the-launcher"
	ofTheCluster = "of-the-cluster"
	oneOfMany    = "tuning"
)

func newDouble() *double {
	d := &double{pods: map[string]*corev1.Pod{}, secrets: map[string]*corev1.Secret{}, did: map[string]bool{}, denied: map[string]bool{}}
	d.changed = sync.NewCond(&d.mutex)
	return d
}

func (d *double) open(k *Kubernetes) {
	k.Namespace = oneOfMany
	server := httptest.NewTLSServer(d.routes())
	k.api = &api{client: server.Client(), server: server.URL, token: ofTheCluster}
	k.writeConfig(server.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), ofLauncher)
	k.t.Cleanup(func() {
		d.mutex.Lock()
		d.closed = true
		d.changed.Broadcast()
		d.mutex.Unlock()
		server.Close()
	})
}

func (d *double) addNode(name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.node = name
}

// loseNode deletes the pods of a node, of which nobody will hear how they ended.
func (d *double) loseNode(name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, pod := range d.pods {
		if pod.Spec.NodeName == name && !ended(pod) {
			d.condition(pod, corev1.PodReady, corev1.ConditionFalse, "", "")
			d.condition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
			d.remove(pod, nil)
		}
	}
}

func (d *double) allow(what string, may bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.denied[what] = !may
}

func (d *double) asked() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Sorted(maps.Keys(d.did))
}

func (d *double) routes() http.Handler {
	mux := http.NewServeMux()
	in := "/api/v1/namespaces/" + oneOfMany
	route := func(pattern, verb, resource string, handle func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			does := verb
			if verb == "list" && r.URL.Query().Has("watch") {
				does = "watch"
			}
			who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			d.mutex.Lock()
			defer d.mutex.Unlock()
			if verb != "" && who == ofLauncher {
				d.did[does+" "+resource] = true
			}
			switch {
			case who != ofLauncher && who != ofTheCluster:
				refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who are you")
			case who == ofLauncher && (verb == "" && resource != "" || d.denied[does+" "+resource]):
				refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "%s is forbidden: cannot %s resource", resource, does)
			default:
				handle(w, r)
			}
		})
	}
	route("GET /version", "", "", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]string{"gitVersion": "v1.34.1"})
	})
	route("POST "+in+"/pods", "create", "pods", d.createPod)
	route("GET "+in+"/pods", "list", "pods", d.listPods)
	route("DELETE "+in+"/pods/{name}", "delete", "pods", d.deletePod)
	route("PATCH "+in+"/pods/{name}/status", "", "pods/status", d.patchStatus)
	route("POST "+in+"/pods/{name}/eviction", "", "pods/eviction", d.evict)
	route("GET "+in+"/secrets", "", "secrets", d.listSecrets)
	route("GET "+in+"/secrets/{name}", "", "secrets", d.getSecret)
	route("POST "+in+"/secrets", "create", "secrets", d.createSecret)
	route("PUT "+in+"/secrets/{name}", "update", "secrets", d.createSecret)
	route("DELETE "+in+"/secrets/{name}", "delete", "secrets", d.deleteSecret)
	route("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", d.review)
	route("GET /apis/kueue.x-k8s.io/v1beta1/namespaces/"+oneOfMany+"/localqueues/{name}", "get", "localqueues.kueue.x-k8s.io", func(w http.ResponseWriter, r *http.Request) {
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
func (d *double) note(kind string, pod *corev1.Pod) {
	d.version++
	pod.ResourceVersion = strconv.Itoa(d.version)
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	d.past = append(d.past, event{d.version, kind, pod.DeepCopy()})
	d.changed.Broadcast()
}

func (d *double) createPod(w http.ResponseWriter, r *http.Request) {
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
	case d.pods[pod.Name] != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "pods %q already exists", pod.Name)
	case r.URL.Query().Has("dryRun"):
		answer(w, http.StatusCreated, pod)
	default:
		pod.UID = types.UID(fmt.Sprint(pod.Name, "-", d.version))
		pod.CreationTimestamp = metav1.Now()
		pod.Status.Phase = corev1.PodPending
		d.pods[pod.Name] = pod
		d.note("ADDED", pod)
		d.place()
		answer(w, http.StatusCreated, pod)
	}
}

// listPods lists pods in pages, or tells what became of them.
func (d *double) listPods(w http.ResponseWriter, r *http.Request) {
	ask := r.URL.Query()
	selector, err := labels.Parse(ask.Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	if ask.Has("watch") {
		d.watch(w, r, selector)
		return
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = strconv.Itoa(d.version)
	most, err := strconv.Atoi(cmp.Or(ask.Get("limit"), "1000000"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	if ask.Has("limit") {
		most = min(most, mostOfList)
	}
	node, ofNode := strings.CutPrefix(ask.Get("fieldSelector"), "spec.nodeName=")
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		if pod := d.pods[name]; name > ask.Get("continue") && selector.Matches(labels.Set(pod.Labels)) && (!ofNode || pod.Spec.NodeName == node) {
			if len(list.Items) == most {
				list.Continue = list.Items[len(list.Items)-1].Name
				break
			}
			list.Items = append(list.Items, *pod)
		}
	}
	answer(w, 200, list)
}

// watch tells all that happened after a version, and goes on for as long as was asked.
func (d *double) watch(w http.ResponseWriter, r *http.Request, selector labels.Selector) {
	after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, err2 := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || err2 != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v, %v", err, err2)
		return
	}
	over := false
	defer time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		over = true
		d.changed.Broadcast()
	}).Stop()
	w.Header().Set("Content-Type", "application/json")
	for at := 0; ; at++ {
		for at == len(d.past) {
			w.(http.Flusher).Flush()
			if over || d.closed || r.Context().Err() != nil {
				return
			}
			d.changed.Wait()
		}
		if one := d.past[at]; one.version > after && selector.Matches(labels.Set(one.pod.Labels)) {
			if json.NewEncoder(w).Encode(map[string]any{"type": one.kind, "object": one.pod}) != nil {
				return
			}
		}
	}
}

func (d *double) deletePod(w http.ResponseWriter, r *http.Request) {
	pod := d.pods[r.PathValue("name")]
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods %q not found", r.PathValue("name"))
		return
	}
	options := &metav1.DeleteOptions{}
	if err := json.NewDecoder(r.Body).Decode(options); err != nil && err != io.EOF {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	d.remove(pod, options.GracePeriodSeconds)
	answer(w, 200, pod)
}

// remove deletes a pod: at once if nothing of it runs or its kubelet says that nothing does
// any more, and else when that has ended.
func (d *double) remove(pod *corev1.Pod, grace *int64) {
	switch {
	case pod.Spec.NodeName == "" || ended(pod) || grace != nil && *grace == 0:
		d.drop(pod)
	case pod.DeletionTimestamp == nil:
		pod.DeletionGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
		pod.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)))
		d.note("MODIFIED", pod)
	}
	d.place()
}

// evict deletes a pod as the API of evictions does.
func (d *double) evict(w http.ResponseWriter, r *http.Request) {
	pod := d.pods[r.PathValue("name")]
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods %q not found", r.PathValue("name"))
		return
	}
	d.condition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")
	d.remove(pod, nil)
	answer(w, http.StatusCreated, metav1.Status{Status: metav1.StatusSuccess})
}

// patchStatus merges what a kubelet says into a pod.
func (d *double) patchStatus(w http.ResponseWriter, r *http.Request) {
	pod, patch := d.pods[r.PathValue("name")], &corev1.Pod{}
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods %q not found", r.PathValue("name"))
		return
	}
	if err := json.NewDecoder(r.Body).Decode(patch); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	for _, one := range patch.Status.Conditions {
		d.condition(pod, one.Type, one.Status, one.Reason, one.Message)
	}
	pod.Status.Phase = cmp.Or(patch.Status.Phase, pod.Status.Phase)
	if patch.Status.ContainerStatuses != nil {
		pod.Status.ContainerStatuses = patch.Status.ContainerStatuses
	}
	d.note("MODIFIED", pod)
	d.place()
	answer(w, 200, pod)
}

// drop takes a pod out, and what it owns.
func (d *double) drop(pod *corev1.Pod) {
	delete(d.pods, pod.Name)
	d.note("DELETED", pod)
	maps.DeleteFunc(d.secrets, func(_ string, secret *corev1.Secret) bool {
		return slices.ContainsFunc(secret.OwnerReferences, func(one metav1.OwnerReference) bool { return one.UID == pod.UID })
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
