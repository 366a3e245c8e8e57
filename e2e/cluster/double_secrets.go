package cluster

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *double) createSecret(w http.ResponseWriter, r *http.Request) {
	secret := &corev1.Secret{}
	err := json.NewDecoder(r.Body).Decode(secret)
	switch exists := d.secrets[secret.Name] != nil; {
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
	case exists && r.Method == http.MethodPost:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "secrets %q already exists", secret.Name)
	case !exists && r.Method == http.MethodPut:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "secrets %q not found", secret.Name)
	default:
		d.secrets[secret.Name] = secret
		answer(w, http.StatusCreated, secret)
	}
}

func (d *double) getSecret(w http.ResponseWriter, r *http.Request) {
	secret := d.secrets[r.PathValue("name")]
	if secret == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "secrets %q not found", r.PathValue("name"))
		return
	}
	answer(w, 200, secret)
}

func (d *double) listSecrets(w http.ResponseWriter, _ *http.Request) {
	list := corev1.SecretList{}
	for _, one := range d.secrets {
		list.Items = append(list.Items, *one)
	}
	answer(w, 200, list)
}

func (d *double) deleteSecret(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if d.secrets[name] == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "secrets %q not found", name)
		return
	}
	delete(d.secrets, name)
	answer(w, 200, metav1.Status{Status: metav1.StatusSuccess})
}

func (d *double) review(w http.ResponseWriter, r *http.Request) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
		return
	}
	asks := review.Spec.ResourceAttributes
	review.Status.Allowed = !d.denied[asks.Verb+" "+asks.Resource]
	answer(w, http.StatusCreated, review)
}

// place is what a scheduler does when something changed. The lock is held.
func (d *double) place() {
	used := int64(0)
	for _, pod := range d.pods {
		if pod.Spec.NodeName == d.node && !ended(pod) {
			used += coresOf(pod)
		}
	}
	waiting := []*corev1.Pod{}
	for _, pod := range d.pods {
		waiting = append(waiting, pod)
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range waiting {
		switch {
		case pod.Spec.NodeName != "":
		case len(pod.Spec.SchedulingGates) > 0:
			d.condition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
		case used+coresOf(pod) > cores:
			d.condition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Insufficient cpu.")
		default:
			used += coresOf(pod)
			pod.Spec.NodeName = d.node
			d.condition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", "")
		}
	}
}

func coresOf(pod *corev1.Pod) (sum int64) {
	for _, one := range pod.Spec.Containers {
		sum += one.Resources.Requests.Cpu().Value()
	}
	return sum
}

// condition notes one of a pod, if that is news.
func (d *double) condition(pod *corev1.Pod, kind corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) {
	news := corev1.PodCondition{Type: kind, Status: is, Reason: reason, Message: message}
	if slices.Contains(pod.Status.Conditions, news) {
		return
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool { return one.Type == kind })
	pod.Status.Conditions = append(pod.Status.Conditions, news)
	d.note("MODIFIED", pod)
}
