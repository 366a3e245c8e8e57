package kubernetes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// seen is a pod on a node, as the changes leave it.
func seen(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tandem-abc-0", Labels: map[string]string{launchLabel: "abc-0", shapeLabel: "gpu", queueLabel: "team-a"}}}
	pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
	for _, one := range changes {
		one(pod)
	}
	return pod
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func is(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func terminated(code int32, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", Image: "nowhere/x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func gated(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: name}} }
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }

func nowhere(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending }

func because(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	}
}

func TestWhatThePodsSay(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	disrupted := func(reason, message string) func(*corev1.Pod) {
		return is(corev1.DisruptionTarget, yes, reason, message)
	}
	for _, test := range []struct {
		pod   *corev1.Pod
		gone  bool
		state launcher.State
		cause protocol.Cause
		why   string
	}{
		{seen(nowhere), false, launcher.Pending, "", "waits for the scheduler"},
		{seen(nowhere, is(corev1.PodScheduled, no, "Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")), false, launcher.Pending, "", "waits until a node has room for it (Kubernetes: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.)"},
		{seen(nowhere, gated("kueue.x-k8s.io/admission"), is(corev1.PodScheduled, no, "SchedulingGated", "blocked")), false, launcher.Pending, "", "waits until its queue (team-a) has quota for it"},
		{seen(nowhere, gated("site/licence")), false, launcher.Pending, "", "waits until somebody removes its scheduling gates: site/licence"},
		{seen(phase(corev1.PodPending)), false, launcher.Pending, "", "is about to start on n1"},
		{seen(phase(corev1.PodPending), waiting("ContainerCreating", "")), false, launcher.Pending, "", "is about to start on n1"},
		{seen(phase(corev1.PodPending), waiting("ImagePullBackOff", "back-off pulling")), false, launcher.Pending, "", "cannot start as the image nowhere/x:1 cannot be had: correct --image, or give the pods a secret for it (Kubernetes: back-off pulling)"},
		{seen(phase(corev1.PodPending), waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")), false, launcher.Pending, "", "cannot start on n1 (Kubernetes: container has runAsNonRoot and image will run as root)"},
		{seen(), false, launcher.Running, "", ""},
		{seen(deleted), false, launcher.Leaving, "", ""},
		{seen(phase(corev1.PodSucceeded), terminated(0, "Completed", "")), false, launcher.Ended, protocol.Finished, "ended in order"},
		{seen(phase(corev1.PodFailed), terminated(4, "Error", "x\ntandem: no GPU is there\ny")), false, launcher.Ended, protocol.Crashed, "the worker failed: no GPU is there (on n1)"},
		{seen(phase(corev1.PodFailed), terminated(4, "Error", "")), false, launcher.Ended, protocol.Crashed, "the worker failed: the container worker ended with 4 (on n1)"},
		{seen(phase(corev1.PodFailed), terminated(137, "OOMKilled", "")), false, launcher.Ended, protocol.OutOfMemory, "the worker ran out of memory: raise memory_gib (on n1)"},
		{seen(because("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), terminated(137, "Error", "")), false, launcher.Ended, protocol.TimeLimit, "ended at its time limit"},
		{seen(because("Evicted", "The node was low on resource: memory."), disrupted("TerminationByKubelet", "The node was low on resource: memory.")), false, launcher.Ended, protocol.Evicted, "taken off its node: The node was low on resource: memory."},
		{seen(because("UnexpectedAdmissionError", "no healthy devices present")), false, launcher.Ended, protocol.Crashed, "the worker failed: no healthy devices present (on n1)"},
		{seen(deleted, disrupted("PreemptionByScheduler", "")), false, launcher.Leaving, "", ""},
		{seen(deleted, disrupted("PreemptionByScheduler", "preempted by pod x"), phase(corev1.PodFailed), terminated(143, "Error", "")), true, launcher.Ended, protocol.Preempted, "preempted for a job that goes first: preempted by pod x"},
		{seen(deleted, disrupted("PreemptionByScheduler", ""), phase(corev1.PodSucceeded)), true, launcher.Ended, protocol.Preempted, "preempted for a job that goes first"},
		{seen(deleted, disrupted("EvictionByEvictionAPI", "Eviction API: evicting")), true, launcher.Ended, protocol.Evicted, "taken off its node: Eviction API: evicting"},
		{seen(deleted, is("TerminationTarget", yes, "NotAdmitted", "Preempted to accommodate a workload")), true, launcher.Ended, protocol.Preempted, "preempted for a job that goes first: Kueue: Preempted to accommodate a workload"},
		{seen(deleted, disrupted("DeletionByTaintManager", "Taint manager"), is(corev1.PodReady, yes, "", "")), false, launcher.Leaving, "", ""},
		{seen(deleted, disrupted("DeletionByTaintManager", "Taint manager"), is(corev1.PodReady, no, "", "")), false, launcher.Ended, protocol.NodeFailed, "its node failed: Taint manager (on n1)"},
		{seen(disrupted("DeletionByPodGC", "node no longer exists"), phase(corev1.PodFailed)), false, launcher.Ended, protocol.NodeFailed, "its node failed: node no longer exists (on n1)"},
		{seen(deleted, phase(corev1.PodFailed), terminated(143, "Error", "")), true, launcher.Ended, protocol.Cancelled, "cancelled: the pod was deleted"},
		{seen(nowhere), true, launcher.Ended, protocol.Cancelled, "cancelled: the pod was deleted"},
	} {
		got := jobOf(test.pod, test.gone)
		if got.State != test.state || got.Cause != test.cause || got.Why != test.why || got.Launch != "abc-0" || got.Shape != "gpu" {
			t.Errorf("of %+v it is said: %+v", test.pod.Status, got)
		}
		blameless := got.Cause == protocol.Preempted || got.Cause == protocol.Evicted || got.Cause == protocol.Cancelled
		if got.Blameless() != blameless || strings.Contains(got.Why, "%!") {
			t.Errorf("it is to blame: %+v", got)
		}
	}
}
