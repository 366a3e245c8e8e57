// Package kubernetes starts workers as pods of their own, without a controller between:
// what is wanted, is ordered again, and the server's leases say who works.
//
// A pod is found again by its labels. Its enrolment is a Secret that it owns, mounted as a
// file, and deleted when it is used.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Engine starts workers as pods of one namespace.
type Engine struct {
	options   engine.Options
	pods      Pods
	client    rest.Interface
	namespace string
	authority []byte // that signed the server's certificate; empty: one that all know

	// seen are the pods as listed last or made since, gone how those ended that are not
	// listed any more, version the cluster's at that list.
	seen    map[string]*corev1.Pod
	gone    map[string]departed
	carried map[string]bool // pods whose Secrets this process made
	version string
}

type departed struct {
	launcher.Job
	at time.Time
}

var _ launcher.Engine = (*Engine)(nil)

// name is what a launcher may be called: the pods' names begin with it.
var name = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

const (
	managedBy     = "app.kubernetes.io/managed-by"
	manager       = "tandem"
	launcherLabel = "tandem.dev/launcher"
	launchLabel   = "tandem.dev/launch"
	shapeLabel    = "tandem.dev/shape"

	// patience is how long a call may take, pages how many pods one brings.
	patience = time.Minute
	page     = "500"
	// keeps is how long pods that ended are left for who looks at them.
	keeps = time.Hour
)

// New returns an engine of the cluster that kubectl would reach from here: by the file that
// KUBECONFIG names or ~/.kube/config, or from within a pod.
func New(options engine.Options, pods Pods) (*Engine, error) {
	if !name.MatchString(options.Name) {
		return nil, fmt.Errorf("--name is %q: begin with a lower-case letter, and use at most 32 lower-case letters, digits and dashes", options.Name)
	}
	if err := pods.check(); err != nil {
		return nil, err
	}
	options.Home = cmp.Or(options.Home, scratchFolder)
	e := &Engine{options: options, pods: pods, seen: map[string]*corev1.Pod{}, gone: map[string]departed{}, carried: map[string]bool{}}
	if at := slices.Index(options.Worker, "--ca"); at >= 0 {
		var err error
		if e.authority, err = os.ReadFile(options.Worker[at+1]); err != nil {
			return nil, err
		}
		e.options.Worker = slices.Clone(options.Worker)
		e.options.Worker[at+1] = enrolmentFolder + "/" + authorityFile
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = pods.Kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is known here: %w: name its file by --kubeconfig, or run this in a pod with a service account", err)
	}
	if e.namespace = pods.Namespace; e.namespace == "" {
		if e.namespace, _, err = loaded.Namespace(); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS, config.Burst, config.Timeout = 50, 100, patience
	config.UserAgent = "tandem-launcher"
	e.client, err = rest.RESTClientFor(config)
	return e, err
}

// Launch makes a pod for each worker, and then the Secret that it waits for, which goes
// when the pod does.
func (e *Engine) Launch(ctx context.Context, order launcher.Order) error {
	for i := range order.Count {
		pod, err := e.pod(order.Shape, order.Launch(i))
		if err != nil {
			return err
		}
		made := &corev1.Pod{}
		err = e.client.Post().Namespace(e.namespace).Resource("pods").Body(pod).Do(ctx).Into(made)
		if apierrors.IsAlreadyExists(err) {
			continue // the order was taken before, and no other has its id
		}
		if err == nil {
			e.seen[made.Name] = made
			err = e.carry(ctx, made)
		}
		if err != nil {
			return fmt.Errorf("the pod of worker %d of %d: %w", i+1, order.Count, err)
		}
	}
	return nil
}

func (e *Engine) labels() map[string]string {
	return map[string]string{managedBy: manager, launcherLabel: e.options.Name}
}

func (e *Engine) selector() string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: e.labels()})
}

func (e *Engine) podName(launch string) string { return e.options.Name + "-" + launch }

// Carry brings the enrolment of a launch to its pod, or takes it away: as it is in the
// folder of the enrolments.
func (e *Engine) Carry(ctx context.Context, launch string) error {
	if _, err := os.Stat(filepath.Join(string(e.options.Enrolments), launch)); errors.Is(err, fs.ErrNotExist) {
		return ignoreNotFound(e.client.Delete().Namespace(e.namespace).Resource("secrets").Name(e.podName(launch)).Do(ctx).Error())
	}
	if pod := e.seen[e.podName(launch)]; pod != nil {
		return e.carry(ctx, pod)
	}
	return nil // its order is not placed yet
}

// carry makes the Secret of a pod, or brings it up to date.
func (e *Engine) carry(ctx context.Context, pod *corev1.Pod) error {
	launch := pod.Labels[launchLabel]
	token, err := os.ReadFile(filepath.Join(string(e.options.Enrolments), launch)) //nolint:gosec // our own folder
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: e.namespace, Labels: e.labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Data: map[string][]byte{launch: token},
	}
	if e.authority != nil {
		secret.Data[authorityFile] = e.authority
	}
	err = e.client.Post().Namespace(e.namespace).Resource("secrets").Body(secret).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		err = e.client.Put().Namespace(e.namespace).Resource("secrets").Name(secret.Name).Body(secret).Do(ctx).Error()
	}
	if err == nil {
		e.carried[pod.Name] = true
	}
	return err
}

// List returns the pods that there are, and how those ended that were there lately.
func (e *Engine) List(ctx context.Context) ([]launcher.Job, error) {
	listed, version, err := e.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.depart(ctx, listed); err != nil {
		return nil, err
	}
	e.seen, e.version = listed, version
	maps.DeleteFunc(e.carried, func(name string, _ bool) bool { return listed[name] == nil })
	maps.DeleteFunc(e.gone, func(_ string, one departed) bool { return time.Since(one.at) > keeps })
	var jobs []launcher.Job
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		pod := listed[name]
		job := jobOf(pod, false)
		jobs = append(jobs, job)
		switch {
		case job.State == launcher.Pending && pod.DeletionTimestamp == nil && !e.carried[name]:
			// A process before this one may have ended before it made the Secret.
			if err := e.carry(ctx, pod); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		case job.State == launcher.Ended && time.Since(endOf(pod)) > keeps:
			if err := e.delete(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.gone)) {
		jobs = append(jobs, e.gone[name].Job)
	}
	return jobs, nil
}

// list asks for all pods of the launcher.
func (e *Engine) list(ctx context.Context) (pods map[string]*corev1.Pod, version string, err error) {
	pods = map[string]*corev1.Pod{}
	for more := ""; ; {
		var list corev1.PodList
		ask := e.client.Get().Namespace(e.namespace).Resource("pods").Param("labelSelector", e.selector()).Param("limit", page)
		if more != "" {
			ask = ask.Param("continue", more)
		}
		if err := ask.Do(ctx).Into(&list); err != nil {
			return nil, "", err
		}
		for i := range list.Items {
			pods[list.Items[i].Name] = &list.Items[i]
		}
		if more = list.Continue; more == "" {
			return pods, list.ResourceVersion, nil
		}
	}
}

// looksBack is for how many seconds the cluster is asked what became of pods.
const looksBack = 5

// depart notes how pods ended that are not listed any more: the cluster tells again what
// happened since the list before. Of what it has forgotten nothing is known.
func (e *Engine) depart(ctx context.Context, listed map[string]*corev1.Pod) error {
	missing := maps.Clone(e.seen)
	maps.DeleteFunc(missing, func(name string, pod *corev1.Pod) bool {
		if listed[name] != nil {
			return true
		}
		job := jobOf(pod, false)
		if job.State == launcher.Ended {
			e.gone[name] = departed{job, time.Now()}
		}
		return job.State == launcher.Ended
	})
	if len(missing) == 0 || e.version == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := e.client.Get().Namespace(e.namespace).Resource("pods").Param("labelSelector", e.selector()).
		Param("watch", "1").Param("resourceVersion", e.version).Param("timeoutSeconds", strconv.Itoa(looksBack)).Watch(ctx)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, is := event.Object.(*corev1.Pod)
		if !is {
			return nil // the cluster has forgotten
		}
		if event.Type == watch.Deleted && missing[pod.Name] != nil {
			e.gone[pod.Name] = departed{jobOf(pod, true), time.Now()}
			delete(missing, pod.Name)
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return nil
}

// Cancel deletes pods. Those that run get SIGTERM, and SIGKILL after their grace.
func (e *Engine) Cancel(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if err := e.delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) delete(ctx context.Context, pod string) error {
	return ignoreNotFound(e.client.Delete().Namespace(e.namespace).Resource("pods").Name(pod).Do(ctx).Error())
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ask posts an object of another group of the API, and reads the answer into it.
func (e *Engine) ask(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	said, err := e.client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(said, object)
}
