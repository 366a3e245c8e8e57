package studyfile

import (
	"strings"
	"unicode"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/study/system"
)

// Bounds of what a trial may ask for.
const (
	maxGPUs   = 64
	maxCores  = 4096
	minMemory = 0.0625
	maxMemory = 65536
	// maxTimeLimit is a year.
	maxTimeLimit = 366 * 24 * 3600
)

// readResources reads what each trial needs. sys is the study's system section.
func readResources(s tree.Section, sys definition.System) *definition.Resources {
	part, ok := s.Part("resources", "gpus", "gpu_share", "cores", "memory_gib", "gpu_type", "gpu_memory_gib", "labels", "tolerates", "time_limit_seconds")
	if !ok {
		return nil
	}
	var wanted definition.Resources
	if gpus, place := part.Get("gpus"); gpus != nil {
		number, before := 0, len(s.Faults)
		s.WholeOf(place, gpus, 0, maxGPUs, &number)
		if len(s.Faults) == before {
			wanted.GPUs = &number
		}
		if sys.Sets(system.GPUs) {
			s.Fault(place, gpus, "is said by system.gpus too: keep resources.gpus, and take gpus out of system")
		}
	}
	wanted.GPUShare = readGPUShare(part, sys)
	part.Whole("cores", 1, maxCores, &wanted.Cores)
	part.Number("memory_gib", minMemory, maxMemory, &wanted.MemoryGiB)
	wanted.Selector = readSelector(part)
	wants := wanted.WantsGPUs()
	if wants && (wanted.GPUs == nil || *wanted.GPUs == 0) && wanted.GPUShare.IsZero() && !sys.Sets(system.GPUs) {
		s.Fault(part.Path, part.Node, "asks for GPUs of a kind, and not for how many: add gpus: 1")
	}
	if !wants && len(wanted.Labels)+len(wanted.Tolerates) == 0 && wanted.TimeLimitSeconds == 0 && wanted.GPUs == nil && wanted.GPUShare.IsZero() && wanted.Cores == 0 && wanted.MemoryGiB == 0 {
		return nil
	}
	return &wanted
}

// readSelector reads which machines may run trials.
func readSelector(part tree.Section) (wanted selector.Selector) {
	wanted.GPUTypes = readModels(part)
	part.Number("gpu_memory_gib", minMemory, maxMemory, &wanted.GPUMemoryGiB)
	part.Number("time_limit_seconds", 1, maxTimeLimit, &wanted.TimeLimitSeconds)
	wanted.Tolerates = readTolerated(part)
	n, at := part.Get("labels")
	switch {
	case n == nil:
	case n.Kind != tree.Mapping:
		part.Wrong(at, n, "a mapping of labels and values, such as {zone: a}")
	default:
		wanted.Labels = map[string]string{}
		for _, e := range n.Entries {
			if value, ok := part.Written(tree.Join(at, e.Key), e.Value, maxArgument); ok {
				wanted.Labels[e.Key] = value
			}
		}
		if wrong := selector.Wrong(wanted.Labels); wrong != "" {
			part.Fault(at, n, "%s", wrong)
		}
	}
	return wanted
}

// readTolerated reads which taints of workers do not keep trials away.
func readTolerated(part tree.Section) (taints []string) {
	n, at := part.Get("tolerates")
	switch {
	case n == nil:
		return nil
	case n.Kind != tree.List:
		part.Wrong(at, n, "a list of workers' taints, such as [spot]")
		return nil
	}
	before := len(part.Faults)
	for i, one := range n.Items {
		taint, _ := part.Written(tree.Index(at, i), one, maxArgument)
		taints = append(taints, taint)
	}
	if wrong := selector.WrongTaints(taints); wrong != "" && len(part.Faults) == before {
		part.Fault(at, n, "%s", wrong)
	}
	return taints
}

// readModels reads which models of GPUs will do.
func readModels(part tree.Section) (models []string) {
	n, at := part.Get("gpu_type")
	if n == nil {
		return nil
	}
	items := []*tree.Node{n}
	if n.Kind == tree.List {
		items = n.Items
	}
	if len(items) == 0 || len(items) > selector.MostGPUTypes {
		part.Fault(at, n, "names %d models: name 1 to %d, such as [A100, H100]", len(items), selector.MostGPUTypes)
		return nil
	}
	for i, one := range items {
		path := at
		if n.Kind == tree.List {
			path = tree.Index(at, i)
		}
		model, ok := part.Written(path, one, selector.MostGPUType)
		if ok && !strings.ContainsFunc(model, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			part.Fault(path, one, "names no model: write words of its name, such as A100")
		}
		models = append(models, model)
	}
	return models
}
