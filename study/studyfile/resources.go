package studyfile

import (
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/study/system"
)

// Bounds of what a trial may ask for.
const (
	maxGPUs   = 64
	maxCores  = 4096
	minMemory = 0.0625
	maxMemory = 65536
	// maxParallel bounds the trials of a study at once.
	maxParallel = 1_000_000
)

// readResources reads what each trial needs. sys is the study's system section.
func readResources(s tree.Section, sys definition.System) *definition.Resources {
	n, at := s.Get("resources")
	if n == nil {
		return nil
	}
	part, ok := s.Open(at, n, "gpus", "gpu_share", "cores", "memory_gib")
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
	if wanted == (definition.Resources{}) {
		return nil
	}
	return &wanted
}
