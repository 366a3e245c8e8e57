package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// What Kueue calls things (its pkg/controller/jobs/pod, version 0.14).
const (
	queueLabel     = "kueue.x-k8s.io/queue-name"
	admission      = "kueue.x-k8s.io/admission"
	stoppedByKueue = "TerminationTarget"
)

// jobOf says what is known of a pod. Deleted says that it is not there any more.
func jobOf(pod *corev1.Pod, deleted bool) launcher.Job {
	job := launcher.Job{ID: pod.Name, Launch: pod.Labels[launchLabel], Shape: pod.Labels[shapeLabel], Node: pod.Spec.NodeName, State: launcher.Pending}
	switch {
	case deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || unheard(pod):
		job.State = launcher.Ended
		said := ""
		job.Cause, said = ends(pod)
		job.Why = job.Cause.Words()
		if said != "" {
			job.Why += ": " + said
		}
		if job.Failed() && job.Node != "" {
			job.Why += " (on " + job.Node + ")"
		}
	case pod.DeletionTimestamp != nil:
		job.State = launcher.Leaving
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		job.Why = waits(pod)
	default:
		job.State = launcher.Running
	}
	return job
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool { return one.Type == kind })
	if at < 0 {
		return corev1.PodCondition{}
	}
	return pod.Status.Conditions[at]
}

// unheard reports that the pod is taken off a node that does not answer: nobody may ever
// confirm that it ended. Its trials may go on elsewhere, as what it writes is refused.
func unheard(pod *corev1.Pod) bool {
	return condition(pod, corev1.DisruptionTarget).Reason == "DeletionByTaintManager" && condition(pod, corev1.PodReady).Status == corev1.ConditionFalse && pod.Status.Phase == corev1.PodRunning
}

// ends is how a pod ended, and what is said of that.
func ends(pod *corev1.Pod) (protocol.Cause, string) {
	said := cmp.Or(pod.Status.Message, pod.Status.Reason)
	if disrupted := condition(pod, corev1.DisruptionTarget); disrupted.Status == corev1.ConditionTrue {
		switch said = disrupted.Message; {
		case disrupted.Reason == corev1.PodReasonPreemptionByScheduler:
			return protocol.Preempted, said
		case disrupted.Reason == "DeletionByPodGC", unheard(pod):
			return protocol.NodeFailed, said
		}
		return protocol.Evicted, said
	}
	if stopped := condition(pod, stoppedByKueue); stopped.Status == corev1.ConditionTrue {
		return protocol.Preempted, "Kueue: " + cmp.Or(stopped.Message, stopped.Reason)
	}
	switch pod.Status.Reason {
	case "DeadlineExceeded":
		return protocol.TimeLimit, ""
	case "Evicted":
		return protocol.Evicted, said
	case "Preempting":
		return protocol.Preempted, said
	case "NodeLost", "NodeShutdown", "Shutdown":
		return protocol.NodeFailed, said
	}
	for _, one := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch ended := one.State.Terminated; {
		case ended == nil:
		case ended.Reason == "OOMKilled":
			return protocol.OutOfMemory, ""
		case ended.ExitCode != 0 && pod.DeletionTimestamp == nil:
			return protocol.Crashed, cmp.Or(engine.LastWords([]byte(ended.Message)), fmt.Sprintf("the container %s ended with %d", one.Name, ended.ExitCode))
		}
	}
	switch {
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodSucceeded:
		return protocol.Finished, ""
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodFailed:
		return protocol.Crashed, said
	}
	return protocol.Cancelled, "the pod was deleted"
}

// waits says in a sentence why a pod does not run.
func waits(pod *corev1.Pod) string {
	var gates []string
	for _, gate := range pod.Spec.SchedulingGates {
		gates = append(gates, gate.Name)
	}
	scheduled := condition(pod, corev1.PodScheduled)
	switch {
	case slices.Contains(gates, admission):
		return fmt.Sprintf("waits until its queue (%s) has quota for it", pod.Labels[queueLabel])
	case len(gates) > 0:
		return "waits until somebody removes its scheduling gates: " + strings.Join(gates, ", ")
	case scheduled.Status == corev1.ConditionFalse:
		return fmt.Sprintf("waits until a node has room for it (Kubernetes: %s)", scheduled.Message)
	case pod.Spec.NodeName == "":
		return "waits for the scheduler"
	}
	for _, one := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := one.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
			return fmt.Sprintf("cannot start as the image %s cannot be had: correct --image, or give the pods a secret for it (Kubernetes: %s)", one.Image, cmp.Or(waiting.Message, waiting.Reason))
		case "", "ContainerCreating", "PodInitializing":
		default:
			return fmt.Sprintf("cannot start on %s (Kubernetes: %s)", pod.Spec.NodeName, cmp.Or(waiting.Message, waiting.Reason))
		}
	}
	return "is about to start on " + pod.Spec.NodeName
}

// endOf is when a pod ended; the present if that is not known.
func endOf(pod *corev1.Pod) time.Time {
	at := time.Time{}
	for _, one := range pod.Status.ContainerStatuses {
		if ended := one.State.Terminated; ended != nil && ended.FinishedAt.After(at) {
			at = ended.FinishedAt.Time
		}
	}
	if at.IsZero() {
		return time.Now()
	}
	return at
}
