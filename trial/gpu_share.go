package trial

// GPUShare is the part of one GPU that a trial has under its lease, and why. All
// amounts are estimates of what it will take, unless its study says them.
type GPUShare struct {
	// Utilization is the share of the time in which it should keep the GPU busy,
	// MemoryBytes the most that it should hold of its memory. Both say nothing where
	// Alone is set.
	Utilization float64 `json:"utilization" minimum:"0" maximum:"1" doc:"the share of the time in which it should keep the GPU busy: an estimate"`
	MemoryBytes int64   `json:"memory_bytes" minimum:"0" doc:"the most that it should hold of the GPU's memory: an estimate"`
	// Fraction is how much of a GPU it counts as for quotas and fair shares.
	Fraction float64 `json:"fraction" minimum:"0" maximum:"1" doc:"how much of a GPU it counts as for quotas and fair shares"`
	// Alone says that nothing may join it: what it takes is not known yet, or it ran out
	// of memory beside others.
	Alone bool `json:"alone,omitempty" doc:"exclusive: its use is not known yet, or it ran out of memory next to others"`
	// Basis is where the amounts come from, in words.
	Basis string `json:"basis" doc:"where the amounts come from"`
}

// GPUShortage is what a trial has learned from running out of memory on GPUs that
// it shared, which is no failure of its own.
type GPUShortage struct {
	// Times is how often that was.
	Times int `json:"times" minimum:"1"`
	// NeedBytes is what is kept free for it from now on, and GPUMemoryBytes what the
	// GPU had on which that was learned: where they are equal it runs alone on such.
	NeedBytes      int64 `json:"need_bytes" minimum:"0" doc:"memory that is kept for it since then"`
	GPUMemoryBytes int64 `json:"gpu_memory_bytes" minimum:"0" doc:"memory of the GPU on which it ran out"`
}
