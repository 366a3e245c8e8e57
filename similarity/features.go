package similarity

import (
	"math"
	"strings"

	"github.com/tandem-tune/tandem/trial"
)

// Features are what a profile tells of the workload: of the process tree (and of
// the GPUs it may use) alone, as neighbours disturb what the machine counts, and
// as rates, so that an epoch
// over a part of the data looks like one over all of it. What the processor
// counts is taken per instruction where those are counted, and else, like what
// the kernel counts, per second of CPU time. All values are logarithms
// (ln(1+x/soft), see [rule]), so that the same difference means the same ratio.
//
// What was not measured is missing. A profile of processes that used no CPU time
// has only what is a state, such as memory.
func Features(p trial.Profile) map[string]float64 {
	features := map[string]float64{}
	busy := coresBusy(p)
	if busy > 0 {
		store(features, coresFeature, busy)
		addEvents(features, p, busy)
		user, hasUser := value(p.Host, "tree.cpu_user")
		kernel, hasKernel := value(p.Host, "tree.cpu_system")
		if hasUser && hasKernel && user+kernel > 0 {
			store(features, kernelFeature, kernel/(user+kernel))
		}
	}
	for name, one := range p.Host {
		if graphics(name) && usable(float64(one)) {
			store(features, name, float64(one))
		}
		metric, ours := strings.CutPrefix(name, "tree.")
		if !ours || !usable(float64(one)) || strings.HasPrefix(metric, "cpu_") || counted(p, metric) {
			continue
		}
		if !addsUp(metric) {
			store(features, metric, float64(one))
		} else if busy > 0 {
			store(features, metric+perSecond, float64(one)/busy)
		}
	}
	return features
}

const (
	coresFeature   = "cores busy"
	kernelFeature  = "share of CPU time in the kernel"
	perInstruction = " per million instructions"
	perSecond      = " per CPU second"
)

// coresBusy is the CPU time per second; 0 where it is not known.
func coresBusy(p trial.Profile) float64 {
	if nanoseconds, has := value(p.Events, "task-clock"); has {
		return nanoseconds / 1e9
	}
	user, _ := value(p.Host, "tree.cpu_user")
	kernel, _ := value(p.Host, "tree.cpu_system")
	return user + kernel
}

func addEvents(features map[string]float64, p trial.Profile, busy float64) {
	instructions, counted := value(p.Events, "instructions")
	counted = counted && instructions > 0
	for name, one := range p.Events {
		switch {
		case !usable(float64(one)) || clock(name) || counted && name == "instructions":
		case softwareEvent(name):
			store(features, name+perSecond, float64(one)/busy)
		case counted:
			store(features, name+perInstruction, float64(one)/instructions*1e6)
		default:
			store(features, name+perSecond, float64(one)/busy)
		}
	}
}

// clock says that an event only tells how long the processes ran, which is in
// the cores that were busy, or says the same as another one: page faults are
// almost always minor ones.
func clock(event string) bool {
	switch event {
	case "task-clock", "cpu-clock", "minor-faults":
		return true
	}
	return strings.HasPrefix(event, "msr/")
}

func softwareEvent(name string) bool {
	switch name {
	case "page-faults", "major-faults", "context-switches", "cpu-migrations", "cgroup-switches", "alignment-faults", "emulation-faults":
		return true
	}
	return false
}

// counted says that an event has told what the tree's metric says less well.
func counted(p trial.Profile, metric string) bool {
	event := map[string]string{"page_faults_minor": "page-faults", "page_faults_major": "major-faults", "context_switches": "context-switches"}[metric]
	_, has := p.Events[event]
	return has
}

// graphics says that a metric is of the work on the GPUs that a trial may use;
// their clocks and temperature are rather the machine's.
func graphics(name string) bool {
	switch name {
	case "gpu.core_utilization", "gpu.memory_utilization", "gpu.memory_used_bytes", "gpu.power_watts", "gpu.pcie_receive_bytes_per_second", "gpu.pcie_send_bytes_per_second":
		return true
	}
	return false
}

// addsUp says that a metric of the tree is an amount per second, not a state.
func addsUp(metric string) bool {
	switch metric {
	case "disk_read_bytes", "disk_write_bytes", "page_faults_minor", "page_faults_major", "context_switches":
		return true
	}
	return false
}

func value(of map[string]trial.Float, name string) (float64, bool) {
	v, has := of[name]
	return float64(v), has && usable(float64(v))
}

func usable(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

func store(features map[string]float64, name string, value float64) {
	if x := math.Log1p(value / ruleFor(name).soft); finite(x) {
		features[name] = x
	}
}

// rule says how a feature is read.
type rule struct {
	// soft is the value below which differences hardly count: counts that are
	// rare, and times of a few ticks, are mostly chance.
	soft float64
	// spread is the standard deviation, in logarithms, that runs of the same
	// workload are expected to have before records tell.
	spread float64
}

// ruleFor has the spreads of bench/similarity, on a machine that others used too.
func ruleFor(feature string) rule {
	switch feature {
	case coresFeature:
		return rule{soft: 0.05, spread: 0.1}
	case kernelFeature:
		return rule{soft: 0.02, spread: 0.15}
	case "resident_bytes":
		return rule{soft: 16 << 20, spread: 0.05}
	case "threads", "processes":
		return rule{soft: 1, spread: 0.1}
	case "page-faults" + perSecond, "page_faults_minor" + perSecond:
		return rule{soft: 100, spread: 0.2}
	case "context-switches" + perSecond, "context_switches" + perSecond, "cgroup-switches" + perSecond, "cpu-migrations" + perSecond:
		return rule{soft: 20, spread: 0.3}
	case "disk_read_bytes" + perSecond, "disk_write_bytes" + perSecond:
		return rule{soft: 1 << 20, spread: 0.5}
	case "major-faults" + perSecond, "page_faults_major" + perSecond:
		return rule{soft: 10, spread: 0.5}
	}
	if graphics(feature) {
		return rule{soft: graphicsSoft(feature), spread: 0.1}
	}
	if strings.HasSuffix(feature, perSecond) {
		return rule{soft: 1000, spread: 0.1}
	}
	return rule{soft: 1, spread: 0.1}
}

func graphicsSoft(feature string) float64 {
	switch feature {
	case "gpu.memory_used_bytes":
		return 256 << 20
	case "gpu.power_watts":
		return 20
	case "gpu.pcie_receive_bytes_per_second", "gpu.pcie_send_bytes_per_second":
		return 1 << 20
	}
	return 0.05 // utilizations, from 0 to 1
}
