package graph

// PeakActivations is the largest number of bytes that the computed tensors of a
// batch need at once when the operators run in their order. A tensor lives from
// the operator that writes it until the last one that reads it, the graph's
// inputs from the start, its outputs until the end. Views live in the memory of
// what they show. No operator overwrites its input, and scratch memory inside
// operators is not in it: a runtime may need less, or more.
func (g Graph) PeakActivations(batch int64) int64 {
	memory := g.memory(max(batch, 1))
	var now, peak int64
	for _, input := range g.Inputs {
		now = Sum(now, memory.take(input.Name))
	}
	peak = now
	for at, op := range g.Operators {
		for _, name := range op.Outputs {
			now = Sum(now, memory.take(name))
		}
		peak = max(peak, now)
		for _, names := range [][]string{op.Inputs, op.Outputs} {
			for _, name := range names {
				now -= memory.release(name, at)
			}
		}
	}
	return peak
}

// memory follows which blocks are in use.
type memory struct {
	owner map[string]string // of a tensor: the one whose memory it is in
	bytes map[string]int64  // of an owner
	last  map[string]int    // of an owner: the last operator that needs it
	held  map[string]bool   // of an owner
}

func (g Graph) memory(batch int64) *memory {
	m := &memory{owner: map[string]string{}, bytes: map[string]int64{}, last: map[string]int{}, held: map[string]bool{}}
	for name, tensor := range g.Tensors {
		m.owner[name] = name
		m.bytes[name] = tensor.Bytes()
		if tensor.Batched {
			m.bytes[name] = Product(m.bytes[name], batch)
		}
	}
	for at, op := range g.Operators {
		if op.View && len(op.Inputs) == 1 && len(op.Outputs) == 1 {
			m.owner[op.Outputs[0]] = m.owner[op.Inputs[0]]
		}
		for _, names := range [][]string{op.Inputs, op.Outputs} {
			for _, name := range names {
				m.last[m.owner[name]] = at
			}
		}
	}
	for _, output := range g.Outputs {
		m.last[m.owner[output.Name]] = len(g.Operators)
	}
	return m
}

// take says how many bytes a tensor needs that are not held yet.
func (m *memory) take(name string) int64 {
	owner := m.owner[name]
	if m.held[owner] {
		return 0
	}
	m.held[owner] = true
	return m.bytes[owner]
}

// release says how many bytes are free after the operator at a place.
func (m *memory) release(name string, at int) int64 {
	owner := m.owner[name]
	if !m.held[owner] || m.last[owner] > at {
		return 0
	}
	m.held[owner] = false
	return m.bytes[owner]
}
