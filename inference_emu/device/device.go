// Package device answers: which devices are there to deploy a model on, and what
// are they made of?
//
// The catalogue has one YAML file for each device. Every value in it says where
// it is from; what is derived or general knowledge, and not on a data sheet or
// measured, is marked as estimated with the reasoning. Users add devices in
// files of the same format. The package is pure: it reads what is embedded in
// the program or what it is given.
package device

// Value is a value of a device and where it is from. A value without a source
// is refused.
type Value[T any] struct {
	Value T `yaml:"value" json:"value"`
	// Source names a data sheet, a manufacturer's page or a measurement; for an
	// estimate it is the reasoning.
	Source string `yaml:"source" json:"source"`
	// Estimated says that the value was derived or is general knowledge.
	Estimated bool `yaml:"estimated" json:"estimated,omitempty"`
}

// Device is one machine. Operations are floating-point or integer operations, a
// multiplication and an addition counting as two.
type Device struct {
	// Name is what a study file calls it: small letters, digits and hyphens.
	Name string `yaml:"name" json:"name"`
	// Title is what people call it.
	Title string `yaml:"title" json:"title"`
	// Processor is the chip.
	Processor Value[string] `yaml:"processor" json:"processor"`
	// Clusters are the groups of equal cores, the fastest first.
	Clusters []Cluster `yaml:"clusters" json:"clusters"`
	Memory   Memory    `yaml:"memory" json:"memory"`
	Power    Power     `yaml:"power" json:"power"`
	// Accelerators may be none.
	Accelerators []Accelerator `yaml:"accelerators" json:"accelerators,omitempty"`
	// Runtime is what runs a model there if nobody says otherwise.
	Runtime Value[string] `yaml:"default_runtime" json:"default_runtime"`
}

// Cluster is a group of equal cores that share a clock.
type Cluster struct {
	// Core is the kind of core, such as cortex-a72.
	Core        string         `yaml:"core" json:"core"`
	Cores       Value[int]     `yaml:"cores" json:"cores"`
	LowestHertz Value[float64] `yaml:"lowest_hertz" json:"lowest_hertz"`
	// HighestHertz is what all the cluster's cores can run at together.
	HighestHertz Value[float64] `yaml:"highest_hertz" json:"highest_hertz"`
	// StepsHertz are the clocks between which one can choose, ascending; nil
	// where they are not known.
	StepsHertz *Value[[]float64] `yaml:"steps_hertz" json:"steps_hertz,omitempty"`
	// The operations are those of one core in a cycle, by type of operand. A
	// core that cannot compute with a type converts, and has float32's number.
	Float32OperationsPerCycle Value[float64] `yaml:"float32_operations_per_cycle" json:"float32_operations_per_cycle"`
	Float16OperationsPerCycle Value[float64] `yaml:"float16_operations_per_cycle" json:"float16_operations_per_cycle"`
	Int8OperationsPerCycle    Value[float64] `yaml:"int8_operations_per_cycle" json:"int8_operations_per_cycle"`
	// Level1DataBytes is of one core, Level2Bytes of the whole cluster; nil
	// where it is not known.
	Level1DataBytes *Value[int64] `yaml:"level1_data_bytes" json:"level1_data_bytes,omitempty"`
	Level2Bytes     *Value[int64] `yaml:"level2_bytes" json:"level2_bytes,omitempty"`
}

// Memory is the main memory and what all cores share in front of it.
type Memory struct {
	Bytes Value[int64] `yaml:"bytes" json:"bytes"`
	// BytesPerSecond is the peak bandwidth unless the source says it is measured.
	BytesPerSecond Value[float64] `yaml:"bytes_per_second" json:"bytes_per_second"`
	// StepsHertz are the memory clocks between which one can choose, ascending.
	StepsHertz *Value[[]float64] `yaml:"steps_hertz" json:"steps_hertz,omitempty"`
	// Level3Bytes is the cache of all cores; nil where there is none.
	Level3Bytes *Value[int64] `yaml:"level3_bytes" json:"level3_bytes,omitempty"`
}

// Power is what the whole board draws.
type Power struct {
	// IdleWatts is with nothing running.
	IdleWatts Value[float64] `yaml:"idle_watts" json:"idle_watts"`
	// LoadWatts is during inference on all cores.
	LoadWatts Value[float64] `yaml:"load_watts" json:"load_watts"`
}

// Accelerator is a processor beside the cores.
type Accelerator struct {
	Name string `yaml:"name" json:"name"`
	// Kind is "gpu" or "npu".
	Kind         string            `yaml:"kind" json:"kind"`
	LowestHertz  *Value[float64]   `yaml:"lowest_hertz" json:"lowest_hertz,omitempty"`
	HighestHertz Value[float64]    `yaml:"highest_hertz" json:"highest_hertz"`
	StepsHertz   *Value[[]float64] `yaml:"steps_hertz" json:"steps_hertz,omitempty"`
	// The rates are peaks at the highest clock; nil where the accelerator does
	// not compute with the type.
	Float32OperationsPerSecond *Value[float64] `yaml:"float32_operations_per_second" json:"float32_operations_per_second,omitempty"`
	Float16OperationsPerSecond *Value[float64] `yaml:"float16_operations_per_second" json:"float16_operations_per_second,omitempty"`
	Int8OperationsPerSecond    *Value[float64] `yaml:"int8_operations_per_second" json:"int8_operations_per_second,omitempty"`
	// MemoryShared says that it uses the device's main memory.
	MemoryShared Value[bool] `yaml:"memory_shared" json:"memory_shared"`
}

// Cores is the number of cores of all clusters.
func (d Device) Cores() int {
	total := 0
	for _, cluster := range d.Clusters {
		total += cluster.Cores.Value
	}
	return total
}

// Float32OperationsPerSecond is the peak of all cores at their highest clocks.
func (d Device) Float32OperationsPerSecond() float64 {
	total := 0.0
	for _, c := range d.Clusters {
		total += float64(c.Cores.Value) * c.HighestHertz.Value * c.Float32OperationsPerCycle.Value
	}
	return total
}
