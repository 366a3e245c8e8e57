package packing

import "fmt"

// grown is by how much the need of a job is raised that ran out of memory: what
// it asked for when it failed is not known, only that it was more than it held.
const grown = 1.25

// Resubmit is a job that ran out of memory, with what was learned: it held that
// many bytes when it failed, on a GPU of a capacity. It comes back with a need
// of a quarter more than it was said to need or held, at most the capacity; with
// the capacity as its need it runs alone. It is an error where it had all of the
// GPU to itself already.
func Resubmit(job Job, heldBytes, capacityBytes int64) (Job, error) {
	if heldBytes < 0 || capacityBytes <= 0 {
		return job, fmt.Errorf("job %s held %d bytes of %d when it ran out of memory: give what it held and what the GPU has", job.Name, heldBytes, capacityBytes)
	}
	if job.MemoryBytes >= capacityBytes {
		return job, fmt.Errorf("job %s needs more than the %d bytes of the GPU, which it had to itself: take a smaller batch or a larger GPU", job.Name, capacityBytes)
	}
	job.MemoryBytes = min(int64(grown*float64(max(job.MemoryBytes, heldBytes, 1))), capacityBytes)
	return job, nil
}
