package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tandem-tune/tandem/workers/launcher"
)

// needs are what the launcher does in its namespace, as rules of a Role have it.
var needs = []struct {
	resource string
	verbs    []string
}{
	{"pods", []string{"create", "delete", "list", "watch"}},
	{"secrets", []string{"create", "delete", "update"}},
}

// Doctor looks at the cluster. It changes nothing.
func (e *Engine) Doctor(ctx context.Context) []launcher.Finding {
	said, err := e.client.Get().AbsPath("/version").Do(ctx).Raw()
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err == nil {
		err = json.Unmarshal(said, &version)
	}
	if err != nil {
		return []launcher.Finding{{Name: "cluster", Says: err.Error()}}
	}
	found := []launcher.Finding{{Name: "cluster", Good: true, Says: "Kubernetes " + version.GitVersion + ", namespace " + e.namespace}}
	for _, need := range needs {
		found = append(found, e.permission(ctx, need.resource, need.verbs))
	}
	if e.pods.Queue != "" {
		found = append(found, e.queue(ctx))
	}
	return append(found, e.trial(ctx))
}

// permission asks whether this account may do what the launcher does.
func (e *Engine) permission(ctx context.Context, resource string, verbs []string) launcher.Finding {
	found := launcher.Finding{Name: resource, Good: true, Says: "may " + strings.Join(verbs, ", ")}
	var lacks []string
	for _, verb := range verbs {
		review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: e.namespace, Verb: verb, Resource: resource},
		}}
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		if err := e.ask(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review); err != nil {
			return launcher.Finding{Name: resource, Says: err.Error()}
		}
		if !review.Status.Allowed {
			lacks = append(lacks, verb)
		}
	}
	if len(lacks) > 0 {
		found.Good = false
		found.Says = fmt.Sprintf("may not %s %s in %s: have an administrator bind the Role of deploy/kubernetes/base/rights.yaml", strings.Join(lacks, ", "), resource, e.namespace)
	}
	return found
}

// queue asks for the queue: pods in one that is not there wait for ever.
func (e *Engine) queue(ctx context.Context) launcher.Finding {
	found := launcher.Finding{Name: "queue " + e.pods.Queue, Good: true, Says: "is there"}
	err := e.client.Get().AbsPath("/apis/kueue.x-k8s.io/v1beta1/namespaces", e.namespace, "localqueues", e.pods.Queue).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		found.Good, found.Says = false, "is not there: pods would wait for ever; name a LocalQueue of the namespace with --queue, and see that Kueue is installed"
	case apierrors.IsForbidden(err):
		found.Says = "may not be looked at by this account, so nobody knows whether it is there"
	case err != nil:
		found.Good, found.Says = false, err.Error()
	}
	return found
}

// trial has the cluster judge a pod without making it: its quotas, limits, rules of
// security and priority classes all have their say.
func (e *Engine) trial(ctx context.Context) launcher.Finding {
	pod, err := e.pod(launcher.Shape{Name: "doctor", Cores: 1, Trials: 1, TimeLimit: time.Hour}, "doctor-0")
	if err == nil {
		err = e.client.Post().Namespace(e.namespace).Resource("pods").Param("dryRun", "All").Body(pod).Do(ctx).Error()
	}
	if err != nil {
		return launcher.Finding{Name: "a worker's pod", Says: "is refused: " + err.Error()}
	}
	images := []string{}
	for _, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		images = append(images, one.Image)
	}
	return launcher.Finding{Name: "a worker's pod", Good: true, Says: "would be taken; whether nodes have the images " + strings.Join(images, ", ") + " is known when one starts"}
}
