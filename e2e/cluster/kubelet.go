package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// work is what scheduler and kubelet do when something changed. The lock is held.
func (k *Kubernetes) work() {
	used := int64(0)
	for _, pod := range k.pods {
		if pod.Spec.NodeName == k.nodeName() && !ended(pod) {
			used += coresOf(pod)
		}
	}
	waiting := []*corev1.Pod{}
	for _, pod := range k.pods {
		waiting = append(waiting, pod)
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range waiting {
		switch {
		case pod.Spec.NodeName != "":
		case len(pod.Spec.SchedulingGates) > 0:
			k.condition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
		case used+coresOf(pod) > cores:
			k.condition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Insufficient cpu.")
		default:
			used += coresOf(pod)
			pod.Spec.NodeName = k.nodeName()
			k.condition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", "")
		}
		if pod.Spec.NodeName == k.nodeName() {
			k.keep(pod)
		}
	}
}

func (k *Kubernetes) nodeName() string { return fmt.Sprint("n", k.node) }

func coresOf(pod *corev1.Pod) (sum int64) {
	for _, one := range pod.Spec.Containers {
		sum += one.Resources.Requests.Cpu().Value()
	}
	return sum
}

// condition notes one of a pod, if that is news.
func (k *Kubernetes) condition(pod *corev1.Pod, kind corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) {
	news := corev1.PodCondition{Type: kind, Status: is, Reason: reason, Message: message}
	if slices.Contains(pod.Status.Conditions, news) {
		return
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool { return one.Type == kind })
	pod.Status.Conditions = append(pod.Status.Conditions, news)
	k.note("MODIFIED", pod)
}

// keep starts a pod of the node, and asks one to end that is deleted.
func (k *Kubernetes) keep(pod *corev1.Pod) {
	name := pod.Name
	switch {
	case pod.DeletionTimestamp != nil && !k.started[name]:
		k.drop(pod)
	case pod.DeletionTimestamp != nil:
		if running := k.process[name]; running != nil {
			delete(k.process, name)         // it is asked once
			running.Signal(syscall.SIGTERM) //nolint:errcheck // it may just have ended
			time.AfterFunc(time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second, func() {
				running.Kill() //nolint:errcheck // as a rule it has ended
			})
		}
	case !k.started[name] && k.mounted(pod):
		k.started[name] = true
		go k.run(pod.DeepCopy())
	}
}

// mounted writes the volumes of a pod, once all of its Secrets are there.
func (k *Kubernetes) mounted(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		folder := k.volume(pod.Name, volume.Name)
		err := os.MkdirAll(folder, 0o700)
		if volume.Secret != nil {
			secret := k.secrets[volume.Secret.SecretName]
			if secret == nil {
				return false
			}
			for key, value := range secret.Data {
				err = errors.Join(err, os.WriteFile(filepath.Join(folder, key), value, os.FileMode(*volume.Secret.DefaultMode)))
			}
		}
		if err != nil {
			k.t.Error(err)
		}
	}
	return true
}

func (k *Kubernetes) volume(pod, name string) string {
	return filepath.Join(k.folder, "pods", pod, name)
}

// TokenFile is where a worker finds the file of that name in the Secret of its pod.
func (k *Kubernetes) TokenFile(pod, name string) string {
	return filepath.Join(k.volume(pod, "tandem-enrolment"), name)
}

// run runs the containers of a pod, one after the other.
func (k *Kubernetes) run(pod *corev1.Pod) {
	code, said := 0, []byte(nil)
	for i, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		var here []string
		for _, mount := range one.VolumeMounts {
			if mount.MountPath != "/tmp" { // in which the test is
				here = append(here, mount.MountPath, k.volume(pod.Name, mount.Name))
			}
		}
		for path, place := range k.inPlace {
			here = append(here, path, place)
		}
		if code, said = k.contain(pod, one, strings.NewReplacer(here...), i >= len(pod.Spec.InitContainers)); code != 0 {
			break
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.process, pod.Name)
	now := k.pods[pod.Name]
	if now == nil || now.Spec.NodeName != k.nodeName() || k.closed {
		return // of a node that is lost nobody hears
	}
	now.Status.Phase = corev1.PodSucceeded
	terminated := &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Completed", FinishedAt: metav1.Now()}
	if code != 0 {
		now.Status.Phase = corev1.PodFailed
		terminated.Reason, terminated.Message = "Error", string(said[max(0, len(said)-2048):])
	}
	now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: terminated}}}
	k.note("MODIFIED", now)
	if now.DeletionTimestamp != nil {
		k.drop(now)
	}
	k.work()
}

// contain runs a container as a process, with the paths of images and volumes replaced by
// those on this machine.
func (k *Kubernetes) contain(pod *corev1.Pod, one corev1.Container, here *strings.Replacer, long bool) (code int, said []byte) {
	words := []string{}
	for _, word := range slices.Concat(one.Command, one.Args) {
		words = append(words, here.Replace(word))
	}
	command := exec.Command(words[0], words[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Dir = k.folder
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
	if err := command.Start(); err != nil {
		return 128, []byte(err.Error())
	}
	if long {
		k.began(pod.Name, command.Process)
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

// began notes that the pod runs.
func (k *Kubernetes) began(name string, process *os.Process) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.process[name] = process
	if pod := k.pods[name]; pod != nil {
		pod.Status.Phase = corev1.PodRunning
		k.condition(pod, corev1.PodReady, corev1.ConditionTrue, "", "")
	}
	k.work()
}

// Disrupt deletes a pod for a reason, such as PreemptionByScheduler.
func (k *Kubernetes) Disrupt(name, reason string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if pod := k.pods[name]; pod != nil {
		k.condition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, reason, "")
		k.remove(pod)
	}
}

// FailNode has the cluster lose its node, and gives it another. What ran there runs on.
func (k *Kubernetes) FailNode() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	lost := k.nodeName()
	k.node++
	for _, pod := range k.pods {
		if pod.Spec.NodeName == lost && !ended(pod) {
			k.condition(pod, corev1.PodReady, corev1.ConditionFalse, "", "")
			k.condition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
			k.remove(pod)
		}
	}
}

// stop ends all that runs.
func (k *Kubernetes) stop() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.closed = true
	k.changed.Broadcast()
	for _, running := range k.process {
		syscall.Kill(-running.Pid, syscall.SIGKILL) //nolint:errcheck // it may just have ended
	}
}
