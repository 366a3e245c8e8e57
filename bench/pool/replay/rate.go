package replay

import "slices"

// Working reports whether the job does work: it does not while it loads a
// checkpoint, or is about to fail for want of memory.
func (r *Running) Working() bool { return !r.paused && !r.starved }

// bring reckons what a job has done until now.
func (e *engine) bring(one *Running) {
	seconds := e.now - one.since
	one.since = e.now
	if seconds <= 0 || one.rate == 0 {
		return
	}
	done := min(one.left, seconds*one.rate)
	one.left -= done
	one.worked += done * one.unit.Seconds
	joules := done * one.unit.Joules
	one.joules += joules
	e.account.workJoules += joules
}

// rate sets how fast a job goes, relative to its speed alone, and when it ends.
func (e *engine) rate(one *Running, speed float64) {
	e.bring(one)
	e.account.drawing -= one.watts()
	one.rate = speed / one.unit.Seconds
	e.account.drawing += one.watts()
	one.busy = one.Utilization * min(1, speed)
	host := &e.hosts[one.Machine]
	for _, gpu := range one.GPUs {
		busy := 0.0
		for _, beside := range host.gpus[gpu] {
			busy += beside.busy
		}
		busy = min(1, busy)
		e.account.busy += busy - host.busy[gpu]
		host.busy[gpu] = busy
	}
	one.version++
	if one.rate > 0 {
		e.push(event{at: e.now + one.left/one.rate, what: ends, job: one, version: one.version})
	}
}

// watts are what it draws over an idle machine now.
func (r *Running) watts() float64 { return r.rate * r.unit.Joules }

// speed is how fast a job goes beside what it shares its GPUs with.
func (e *engine) speed(one *Running) float64 {
	if !one.Working() {
		return 0
	}
	speed := 1.0
	for _, gpu := range one.GPUs {
		beside := e.working(one.Machine, gpu)
		if len(beside) < 2 {
			continue
		}
		one.shared = true
		speed = min(speed, e.settings.Slowdown(e.Type(one.Machine).Name, beside)[slices.Index(beside, one.Job)])
	}
	return speed
}

// refresh sets a job's speed, and that of all that shares a GPU with it.
func (e *engine) refresh(one *Running) {
	e.adjust(one)
	e.refreshOthers(one)
}

func (e *engine) adjust(one *Running) {
	if speed := e.speed(one); speed/one.unit.Seconds != one.rate {
		e.rate(one, speed)
	}
}

// refreshOthers sets the speeds of what shares a GPU with a job, or did.
func (e *engine) refreshOthers(one *Running) {
	for i, gpu := range one.GPUs {
		for _, other := range e.On(one.Machine, gpu) {
			seen := slices.ContainsFunc(one.GPUs[:i], func(before int) bool { return slices.Contains(e.On(one.Machine, before), other) })
			if other != one && !seen {
				e.adjust(other)
			}
		}
	}
}

// working are the jobs on a GPU that do work.
func (e *engine) working(machine, gpu int) []*Job {
	var list []*Job
	for _, one := range e.On(machine, gpu) {
		if one.Working() {
			list = append(list, one.Job)
		}
	}
	return list
}

// tooMuch reports whether a job that was put on its GPUs does not fit beside the
// others there.
func (e *engine) tooMuch(one *Running) bool {
	of := e.Type(one.Machine)
	for _, gpu := range one.GPUs {
		memory := int64(0)
		var beside []*Job
		for _, other := range e.On(one.Machine, gpu) {
			if !other.starved {
				memory += other.GPUMemoryBytes
				beside = append(beside, other.Job)
			}
		}
		if of.GPUMemoryBytes > 0 && memory > of.GPUMemoryBytes {
			return true
		}
		if len(beside) > 1 && slices.ContainsFunc(e.settings.Slowdown(of.Name, beside), func(speed float64) bool { return !(speed > 0) }) {
			return true
		}
	}
	return false
}
