package agent

// WithLostGPU gives the agent a machine whose only GPU has fallen off the bus.
func (o Options) WithLostGPU() Options {
	o.openGPUs = func() (gpuControl, error) { return lostGPUs{newGPUs(1)}, nil }
	return o
}
