package device

import "fmt"

// Fact is one value of a device, as its file has it.
type Fact struct {
	// Name is where the value stands, such as "clusters[0].highest_hertz"; its
	// last word is the unit.
	Name string
	// Value is a text, a truth value, a number or a list of numbers.
	Value     any
	Source    string
	Estimated bool
}

// Facts lists all values that the device has, in the order of its file.
func (d Device) Facts() []Fact {
	var facts []Fact
	facts = add(facts, "processor", &d.Processor)
	for i, c := range d.Clusters {
		at := fmt.Sprintf("clusters[%d].", i)
		facts = add(facts, at+"cores", &c.Cores)
		facts = add(facts, at+"lowest_hertz", &c.LowestHertz)
		facts = add(facts, at+"highest_hertz", &c.HighestHertz)
		facts = add(facts, at+"steps_hertz", c.StepsHertz)
		facts = add(facts, at+"float32_operations_per_cycle", &c.Float32OperationsPerCycle)
		facts = add(facts, at+"float16_operations_per_cycle", &c.Float16OperationsPerCycle)
		facts = add(facts, at+"int8_operations_per_cycle", &c.Int8OperationsPerCycle)
		facts = add(facts, at+"level1_data_bytes", c.Level1DataBytes)
		facts = add(facts, at+"level2_bytes", c.Level2Bytes)
	}
	facts = add(facts, "memory.bytes", &d.Memory.Bytes)
	facts = add(facts, "memory.bytes_per_second", &d.Memory.BytesPerSecond)
	facts = add(facts, "memory.steps_hertz", d.Memory.StepsHertz)
	facts = add(facts, "memory.level3_bytes", d.Memory.Level3Bytes)
	facts = add(facts, "power.idle_watts", &d.Power.IdleWatts)
	facts = add(facts, "power.load_watts", &d.Power.LoadWatts)
	for i, a := range d.Accelerators {
		at := fmt.Sprintf("accelerators[%d].", i)
		facts = add(facts, at+"lowest_hertz", a.LowestHertz)
		facts = add(facts, at+"highest_hertz", &a.HighestHertz)
		facts = add(facts, at+"steps_hertz", a.StepsHertz)
		facts = add(facts, at+"float32_operations_per_second", a.Float32OperationsPerSecond)
		facts = add(facts, at+"float16_operations_per_second", a.Float16OperationsPerSecond)
		facts = add(facts, at+"int8_operations_per_second", a.Int8OperationsPerSecond)
		facts = add(facts, at+"memory_shared", &a.MemoryShared)
	}
	return add(facts, "default_runtime", &d.Runtime)
}

func add[T any](facts []Fact, name string, v *Value[T]) []Fact {
	if v == nil {
		return facts
	}
	return append(facts, Fact{Name: name, Value: v.Value, Source: v.Source, Estimated: v.Estimated})
}
