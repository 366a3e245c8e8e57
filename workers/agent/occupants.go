package agent

import "github.com/tandem-tune/tandem/workers/agent/gpu"

// occupants are the runs that may use some of the worker's GPUs.
func (a *Agent) occupants(count int) []gpu.Occupant {
	var list []gpu.Occupant
	for _, r := range a.running() {
		one := gpu.Occupant{Places: r.lease.GPUs, Given: r.lease.GPUCount != nil, Use: &r.gpu}
		if !one.Given {
			for place := range count {
				one.Places = append(one.Places, place)
			}
		}
		r.mutex.Lock()
		p := r.process
		r.mutex.Unlock()
		if p == nil || p.Ended() || len(one.Places) == 0 {
			continue
		}
		one.Members = p.Members()
		list = append(list, one)
	}
	return list
}
