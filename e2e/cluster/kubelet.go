package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubelet runs the pods of a node as processes, and tells the API server what becomes of
// them. It looks at its pods again and again.
type kubelet struct {
	*Kubernetes
	node    string
	inPlace map[string]string // what is where in images, and where it is here
	end     context.CancelFunc
	ended   sync.WaitGroup

	mutex   sync.Mutex
	pods    map[types.UID]*process
	isLost  bool
	stopped bool
}

// process is a pod that was started.
type process struct {
	running *os.Process // its worker, once that has begun
	told    bool        // to end
	last    *corev1.PodStatus
}

func startKubelet(k *Kubernetes, node string, inPlace map[string]string) *kubelet {
	ctx, cancel := context.WithCancel(context.Background())
	kl := &kubelet{Kubernetes: k, node: node, inPlace: inPlace, end: cancel, pods: map[types.UID]*process{}}
	kl.ended.Go(func() {
		for ctx.Err() == nil {
			kl.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return kl
}

// look does what its pods ask for.
func (kl *kubelet) look(ctx context.Context) {
	var list corev1.PodList
	if err := kl.api.do(ctx, "GET", kl.in("pods")+"?fieldSelector=spec.nodeName="+kl.node, nil, &list); err != nil {
		if ctx.Err() == nil {
			kl.t.Error(err)
		}
		return
	}
	for i := range list.Items {
		kl.keep(ctx, &list.Items[i])
	}
}

// keep starts a pod, asks one to end that is deleted, and says how one ended.
func (kl *kubelet) keep(ctx context.Context, pod *corev1.Pod) {
	kl.mutex.Lock()
	defer kl.mutex.Unlock()
	one := kl.pods[pod.UID]
	deleted := pod.DeletionTimestamp != nil
	switch {
	case kl.isLost:
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		if deleted {
			kl.drop(ctx, pod)
		}
	case one == nil && deleted:
		kl.drop(ctx, pod)
	case one == nil:
		if kl.mounted(ctx, pod) {
			kl.pods[pod.UID] = &process{}
			kl.ended.Go(func() { kl.run(ctx, pod) })
		}
	case one.last != nil: // it has ended
		kl.patch(ctx, pod, *one.last)
	case deleted && one.running != nil && !one.told:
		one.told = true
		one.running.Signal(syscall.SIGTERM) //nolint:errcheck // it may just have ended
		time.AfterFunc(time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second, func() {
			one.running.Kill() //nolint:errcheck // as a rule it has ended
		})
	}
}

// drop says that nothing is left of a deleted pod.
func (kl *kubelet) drop(ctx context.Context, pod *corev1.Pod) {
	at := metav1.NewDeleteOptions(0)
	at.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	kl.ask(ctx, "DELETE", kl.in("pods", pod.Name), at, nil)
}

func (kl *kubelet) patch(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) {
	kl.ask(ctx, "PATCH", kl.in("pods", pod.Name, "status"), statusOf(status), nil)
}

// ask fails the test, unless what is asked for is not there any more or the test is over.
func (kl *kubelet) ask(ctx context.Context, verb, path string, body, into any) bool {
	err := kl.api.do(ctx, verb, path, body, into)
	if err != nil && !notFound(err) && ctx.Err() == nil {
		kl.t.Error(err)
	}
	return err == nil
}

// mounted writes the volumes of a pod, once all of its Secrets are there.
func (kl *kubelet) mounted(ctx context.Context, pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		folder := kl.volume(pod.Name, volume.Name)
		err := os.MkdirAll(folder, 0o700)
		if volume.Secret != nil {
			var secret corev1.Secret
			if !kl.ask(ctx, "GET", kl.in("secrets", volume.Secret.SecretName), nil, &secret) {
				return false
			}
			for key, value := range secret.Data {
				err = errors.Join(err, os.WriteFile(filepath.Join(folder, key), value, os.FileMode(*volume.Secret.DefaultMode)))
			}
		}
		if err != nil {
			kl.t.Error(err)
		}
	}
	return true
}

func (kl *kubelet) volume(pod, name string) string {
	return filepath.Join(kl.folder, "pods", pod, name)
}

// run runs the containers of a pod, one after the other.
func (kl *kubelet) run(ctx context.Context, pod *corev1.Pod) {
	code, said := 0, []byte(nil)
	for i, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		var here []string
		for _, mount := range one.VolumeMounts {
			if mount.MountPath != "/tmp" { // in which the test is
				here = append(here, mount.MountPath, kl.volume(pod.Name, mount.Name))
			}
		}
		for path, place := range kl.inPlace {
			here = append(here, path, place)
		}
		if code, said = kl.contain(ctx, pod, one, strings.NewReplacer(here...), i >= len(pod.Spec.InitContainers)); code != 0 {
			break
		}
	}
	status := corev1.PodStatus{Phase: corev1.PodSucceeded}
	terminated := &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Completed", FinishedAt: metav1.Now()}
	if code != 0 {
		status.Phase = corev1.PodFailed
		terminated.Reason, terminated.Message = "Error", string(said[max(0, len(said)-2048):])
	}
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: terminated}}}
	kl.mutex.Lock()
	defer kl.mutex.Unlock()
	kl.pods[pod.UID].last = &status
}

// contain runs a container as a process, with the paths of images and volumes replaced by
// those on this machine.
func (kl *kubelet) contain(ctx context.Context, pod *corev1.Pod, one corev1.Container, here *strings.Replacer, long bool) (code int, said []byte) {
	words := []string{}
	for _, word := range slices.Concat(one.Command, one.Args) {
		words = append(words, here.Replace(word))
	}
	command := exec.Command(words[0], words[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Dir = kl.folder
	command.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOSTNAME=" + pod.Name, "KUBERNETES_SERVICE_HOST=10.0.0.1"}
	for _, variable := range one.Env {
		value := here.Replace(variable.Value)
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "spec.nodeName" {
			value = pod.Spec.NodeName
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = time.Minute
	if !kl.begin(ctx, pod, command, long) {
		return 128, []byte("it could not be started")
	}
	err := command.Wait()
	syscall.Kill(-command.Process.Pid, syscall.SIGKILL) //nolint:errcheck // what it left behind, if anything
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		if code = ended.ExitCode(); code < 0 {
			code = 128 + int(ended.Sys().(syscall.WaitStatus).Signal())
		}
	}
	return code, output.Bytes()
}

// begin starts a process, unless the test is over, and says that its pod runs.
func (kl *kubelet) begin(ctx context.Context, pod *corev1.Pod, command *exec.Cmd, long bool) bool {
	kl.mutex.Lock()
	defer kl.mutex.Unlock()
	if kl.stopped || command.Start() != nil {
		return false
	}
	if long {
		kl.pods[pod.UID].running = command.Process
		kl.patch(ctx, pod, corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(metav1.Now()), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}})
	}
	return true
}

// lose has nobody hear of its pods any more, which run on.
func (kl *kubelet) lose() {
	kl.mutex.Lock()
	defer kl.mutex.Unlock()
	kl.isLost = true
}

// stop ends all that runs.
func (kl *kubelet) stop() {
	kl.mutex.Lock()
	kl.stopped = true
	for _, one := range kl.pods {
		if one.running != nil && one.last == nil {
			syscall.Kill(-one.running.Pid, syscall.SIGKILL) //nolint:errcheck // it may just have ended
		}
	}
	kl.mutex.Unlock()
	kl.end()
	kl.ended.Wait()
}
