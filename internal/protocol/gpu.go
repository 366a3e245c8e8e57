package protocol

// GPUEstimate is what a trial should use of a type of GPU, by a model that the
// server learned from other trainings: an estimate. Where there is none, Reason
// says why, and all numbers are 0.
type GPUEstimate struct {
	GPU string `json:"gpu" doc:"name of the type of GPU"`
	// Utilization is the share of the time in which it should keep the GPU busy when
	// it has it to itself; two of three trainings fall between low and high.
	Utilization     float64 `json:"utilization" minimum:"0" maximum:"1" doc:"expected share of time in which it keeps the GPU busy; an estimate"`
	UtilizationLow  float64 `json:"utilization_low" minimum:"0" maximum:"1" doc:"two of three trainings fall between low and high"`
	UtilizationHigh float64 `json:"utilization_high" minimum:"0" maximum:"1"`
	MemoryBytes     int64   `json:"memory_bytes" minimum:"0" doc:"expected peak of GPU memory; an estimate"`
	MemoryLow       int64   `json:"memory_low" minimum:"0"`
	MemoryHigh      int64   `json:"memory_high" minimum:"0"`
	// Trainings is from how many it was learned.
	Trainings int `json:"trainings" minimum:"0" doc:"number of trainings learned from"`
	// UtilizationOff and MemoryOff are how far predictions of trainings were off that
	// were hidden: for half of them by no more than that, the memory in parts of what
	// it was.
	UtilizationOff float64 `json:"utilization_off" minimum:"0" doc:"median error of predictions for held-out trainings"`
	MemoryOff      float64 `json:"memory_off" minimum:"0" doc:"the same for the memory, relative to the measured value"`
	// Unseen says that no training of its architecture was among them: then both are
	// of architectures that were hidden whole.
	Unseen bool   `json:"unseen,omitempty" doc:"no training of its architecture was among them"`
	Reason string `json:"reason,omitempty" doc:"why there is no estimate"`
}

// Known reports whether there is an estimate.
func (e GPUEstimate) Known() bool { return e.Reason == "" }

// GPUExpected is what a trial should use of GPUs, before or while it runs.
type GPUExpected struct {
	// Architecture is the key of what it trains, and Basis how that is known, or why
	// it is not.
	Architecture string `json:"architecture,omitempty" doc:"key of its architecture; absent: unknown"`
	Basis        string `json:"basis" doc:"how the architecture is known, or why it is not"`
	// BatchSize is how many samples a step takes; 0 where no parameter says so.
	BatchSize int64 `json:"batch_size,omitempty" minimum:"0" doc:"samples of a step, by the parameter batch_size; absent: no parameter says so"`
	// GPUs are the type that it is on, or else those that are connected.
	GPUs []GPUEstimate `json:"gpus" doc:"for its type of GPU, else for the connected types"`
}

// GPUErrors say how far predictions of hidden trainings were off.
type GPUErrors struct {
	Utilization float64 `json:"utilization" minimum:"0" doc:"median error of the utilization"`
	Memory      float64 `json:"memory" minimum:"0" doc:"median relative error of the memory"`
	// RMSLE is the root mean squared error of logarithms of percent (Yeung and others,
	// 2020, table 3).
	RMSLE float64 `json:"rmsle" minimum:"0" doc:"root mean squared logarithmic error of the utilization in percent"`
}

// PoolGPUModel is what was learned of trainings on a type of GPU.
type PoolGPUModel struct {
	GPU string `json:"gpu" doc:"name of the type of GPU"`
	// Trainings were seen alone, of so many Architectures; the model was learned from
	// LearnedFrom of them, 0: there is none, and Reason says why.
	Trainings     int    `json:"trainings" minimum:"0" doc:"trainings measured alone, with a known architecture"`
	Architectures int    `json:"architectures" minimum:"0"`
	LearnedFrom   int    `json:"learned_from" minimum:"0" doc:"trainings that the model learned from; 0: no model"`
	Reason        string `json:"reason,omitempty" doc:"why there is no model"`
	// Known is how far trainings were off that were hidden, Unseen those whose
	// architecture was hidden whole; absent where these are not predicted, for
	// UnseenReason.
	Known        *GPUErrors   `json:"known,omitempty" doc:"errors for known architectures"`
	Unseen       *GPUErrors   `json:"unseen,omitempty" doc:"errors for new architectures; absent: these are not predicted"`
	UnseenReason string       `json:"unseen_reason,omitempty" doc:"why new architectures are not predicted"`
	Pairs        PoolGPUPairs `json:"pairs" doc:"measurements of trainings that share such a GPU"`
}

// PoolGPUPairs is what is known of trainings that share a type of GPU.
type PoolGPUPairs struct {
	Kinds   int            `json:"kinds" minimum:"0" doc:"measured kinds of trainings: by study, architecture and batch"`
	Seen    int            `json:"seen" minimum:"0" doc:"pairs of kinds measured together for long enough"`
	Learned []GPUPairModel `json:"learned,omitempty" doc:"how unmeasured pairs are predicted"`
	Reason  string         `json:"reason,omitempty" doc:"why unmeasured pairs are not predicted"`
}

// GPUPairModel is a way to tell how fast two will be that share a GPU.
type GPUPairModel struct {
	// Basis is factors (by what each did beside others) or mean (one was never seen beside
	// others).
	Basis string `json:"basis" enum:"factors,mean" doc:"factors: from the slowdown of each with others; mean: one was never measured with others, from what those do with the other"`
	Pairs int    `json:"pairs" minimum:"0" doc:"pairs that it was learned from"`
	// Off is how far speeds of hidden pairs were off, in parts of the speed alone, and
	// PlainOff how far the mean of the others was.
	Off      float64 `json:"off" minimum:"0" doc:"median error of the speed for held-out pairs"`
	PlainOff float64 `json:"plain_off" minimum:"0" doc:"the same for a prediction by the mean"`
}
