package kubernetes

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tandem-tune/tandem/workers/launcher"
)

// Pods say what the pods of workers are beside their shape. Options of a shape change
// them.
type Pods struct {
	// Kubeconfig is the file that says how the cluster is reached; empty: as kubectl would.
	Kubeconfig string
	// Namespace is where they are; empty: that of the kubeconfig, or of this pod.
	Namespace string
	// Image has the training's programs; TandemImage has tandem, which is copied out of
	// it; empty: Image has it.
	Image, TandemImage string
	// Template is a file with a manifest of a pod, to which the rest is added.
	Template string
	// Queue is a LocalQueue of Kueue, PriorityClass what goes first.
	Queue, PriorityClass string
	// GPUResource is what a GPU is called.
	GPUResource  string
	NodeSelector map[string]string
	// Tolerations are keys of taints.
	Tolerations []string
}

// AddFlags adds them to those of a command.
func (p *Pods) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Image, "image", p.Image, "image with the training's programs, in which the worker runs")
	flags.StringVar(&p.TandemImage, "tandem-image", p.TandemImage, "image that tandem is copied from (default: --image has it)")
	flags.StringVar(&p.Template, "template", p.Template, "file with a manifest of a pod, which the worker's is made from: volumes, variables, secrets for images")
	flags.StringVar(&p.Queue, "queue", p.Queue, "LocalQueue of Kueue that admits the pods")
	flags.StringVar(&p.PriorityClass, "priority-class", p.PriorityClass, "PriorityClass of the pods")
	flags.StringVar(&p.GPUResource, "gpu-resource", cmp.Or(p.GPUResource, "nvidia.com/gpu"), "what a GPU is called, such as nvidia.com/mig-1g.10gb")
	flags.StringToStringVar(&p.NodeSelector, "node-selector", p.NodeSelector, "label=value that nodes must have (repeatable)")
	flags.StringSliceVar(&p.Tolerations, "toleration", p.Tolerations, "key of a taint that the pods tolerate (repeatable)")
}

// Tandem is the path of the program in the worker's container.
func (p Pods) Tandem() string {
	if p.TandemImage == "" {
		return "tandem"
	}
	return copied
}

// With are the pods with the options of a shape.
func (p Pods) With(options []string) (Pods, error) {
	flags := pflag.NewFlagSet("options", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	p.AddFlags(flags)
	if err := flags.Parse(options); err != nil {
		return p, fmt.Errorf("options: %w", err)
	}
	if flags.NArg() > 0 {
		return p, fmt.Errorf("option %q: write it as one word, such as --queue=team-a", flags.Arg(0))
	}
	return p, p.check()
}

func (p Pods) check() error {
	_, err := p.template()
	return err
}

// container is what the worker's container of a template is called.
const container = "worker"

// template reads the template. It has the worker's container, with an image.
func (p Pods) template() (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if p.Template != "" {
		content, err := os.ReadFile(p.Template)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, pod); err != nil {
			return nil, fmt.Errorf("--template %s: %w", p.Template, err)
		}
		if pod.Kind != "Pod" {
			return nil, fmt.Errorf("--template %s: kind is %q: write a manifest of a Pod", p.Template, pod.Kind)
		}
	}
	if workerOf(pod) == nil {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
	}
	worker := workerOf(pod)
	if worker.Image = cmp.Or(p.Image, worker.Image, p.TandemImage); worker.Image == "" {
		return nil, fmt.Errorf("--image is missing: name the image with your training's programs")
	}
	return pod, nil
}

func workerOf(pod *corev1.Pod) *corev1.Container {
	at := slices.IndexFunc(pod.Spec.Containers, func(one corev1.Container) bool { return one.Name == container })
	if at < 0 {
		return nil
	}
	return &pod.Spec.Containers[at]
}

// Where things are in a pod.
const (
	programFolder   = "/tandem/bin"
	scratchFolder   = "/tandem/scratch"
	enrolmentFolder = "/tandem/enrolment"
	authorityFile   = "authority.pem"
	// program is tandem's path in its image, and copied where it is copied to.
	program = "/usr/local/bin/tandem"
	copied  = programFolder + "/tandem"
)

// pod is that of a worker of the shape.
func (e *Engine) pod(shape launcher.Shape, launch string) (*corev1.Pod, error) {
	pods, err := e.pods.With(shape.Options)
	if err != nil {
		return nil, err
	}
	pod, err := pods.template()
	if err != nil {
		return nil, err
	}
	pod.ObjectMeta = metav1.ObjectMeta{Name: e.podName(launch), Namespace: e.namespace, Labels: pod.Labels, Annotations: pod.Annotations}
	for key, value := range e.labels() {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, launchLabel, launch)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, shapeLabel, shape.Name)
	if pods.Queue != "" {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, queueLabel, pods.Queue)
	}
	spec := &pod.Spec
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ActiveDeadlineSeconds = new(int64(shape.TimeLimit / time.Second))
	spec.TerminationGracePeriodSeconds = cmp.Or(spec.TerminationGracePeriodSeconds, new(int64(60)))
	spec.AutomountServiceAccountToken = cmp.Or(spec.AutomountServiceAccountToken, new(false))
	spec.EnableServiceLinks = cmp.Or(spec.EnableServiceLinks, new(false))
	spec.PriorityClassName = cmp.Or(pods.PriorityClass, spec.PriorityClassName)
	pods.place(spec, shape)
	e.fill(pod, pods, shape, launch)
	return pod, nil
}

// soon is for how many seconds a pod stays on a node that does not answer: its trials are
// leased to others after a minute.
const soon = 60

// place says which nodes will do.
func (p Pods) place(spec *corev1.PodSpec, shape launcher.Shape) {
	selector := map[string]string{}
	maps.Copy(selector, shape.Labels)
	if shape.GPUType != "" {
		selector["nvidia.com/gpu.product"] = shape.GPUType
	}
	maps.Copy(selector, spec.NodeSelector)
	maps.Copy(selector, p.NodeSelector)
	spec.NodeSelector = selector
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(soon))})
	}
	tolerated := slices.Concat(p.Tolerations, shape.Taints)
	if shape.GPUs > 0 {
		tolerated = append(tolerated, p.GPUResource)
	}
	for _, key := range tolerated {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

// fill makes the worker's container, and what comes before it.
func (e *Engine) fill(pod *corev1.Pod, pods Pods, shape launcher.Shape, launch string) {
	spec := &pod.Spec
	if spec.SecurityContext == nil {
		const user = 10001
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	restricted := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	volume := func(name, path string, source corev1.VolumeSource, containers ...*corev1.Container) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		for _, one := range containers {
			one.VolumeMounts = append(one.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		}
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	worker, options := workerOf(pod), e.options
	options.Enrolments = enrolmentFolder
	worker.Command, worker.Args = []string{"/bin/sh", "-c", options.Script(shape, "", scratchFolder, launch)}, nil
	worker.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	worker.SecurityContext = cmp.Or(worker.SecurityContext, restricted)
	worker.Resources = pods.resources(shape, worker.Resources)
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "TANDEM_NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}})
	volume("tandem-scratch", scratchFolder, empty, worker)
	volume("tandem-tmp", "/tmp", empty, worker)
	volume("tandem-enrolment", enrolmentFolder, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: pod.Name, DefaultMode: new(int32(0o440))}}, worker)
	if pods.TandemImage == "" {
		return
	}
	copies := corev1.Container{
		Name: "tandem", Image: pods.TandemImage, Command: []string{"cp", program, copied},
		SecurityContext: restricted, Resources: worker.Resources, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	volume("tandem-bin", programFolder, empty, worker, &copies)
	spec.InitContainers = append(spec.InitContainers, copies)
}

// resources are those of the shape: as much as is asked for, and no more.
func (p Pods) resources(shape launcher.Shape, given corev1.ResourceRequirements) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	maps.Copy(list, given.Limits)
	list[corev1.ResourceCPU] = resource.MustParse(strconv.Itoa(shape.Cores))
	if shape.MemoryGiB > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(int64(shape.MemoryGiB*1024)<<20, resource.BinarySI)
	}
	if shape.GPUs > 0 {
		list[corev1.ResourceName(p.GPUResource)] = resource.MustParse(strconv.Itoa(shape.GPUs))
	}
	return corev1.ResourceRequirements{Limits: list, Requests: list, Claims: given.Claims}
}
