package similarity

import (
	"math"
	"slices"
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
		addCPU(features, p, busy)
		addEvents(features, p, busy)
	}
	addMemory(features, p)
	for name, one := range p.Host {
		metric, ours := strings.CutPrefix(name, "tree.")
		switch {
		case !usable(float64(one)):
		case graphics(name):
			store(features, name, float64(one))
		case !ours || derived(metric) || counted(p, metric):
		case !addsUp(metric):
			store(features, metric, float64(one))
		case busy > 0:
			store(features, metric+perSecond, float64(one)/busy)
		}
	}
	return features
}

const (
	coresFeature   = "cores busy"
	wantedFeature  = "cores wanted"
	kernelFeature  = "share of CPU time in the kernel"
	firstFeature   = "share of CPU time in first threads"
	fileFeature    = "resident bytes of files"
	ownFeature     = "resident bytes of its own"
	switchFeature  = "voluntary context switches" + perSecond
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

// addCPU tells how parallel the work is. The time in which threads waited for a
// core counts as work: how many cores they want does not depend on neighbours.
func addCPU(features map[string]float64, p trial.Profile, busy float64) {
	if waiting, has := value(p.Host, "tree.cpu_waiting"); has {
		store(features, wantedFeature, busy+waiting)
	} else {
		store(features, coresFeature, busy)
	}
	if first, has := value(p.Host, "tree.cpu_first_threads"); has {
		store(features, firstFeature, min(1, first/busy))
	}
	user, hasUser := value(p.Host, "tree.cpu_user")
	kernel, hasKernel := value(p.Host, "tree.cpu_system")
	if hasUser && hasKernel && user+kernel > 0 {
		store(features, kernelFeature, kernel/(user+kernel))
	}
	if all, forced, has := switches(p); has {
		store(features, switchFeature, max(0, all-forced)/busy)
	}
}

// switches are all context switches of the tree, and those forced on it, which
// are its neighbours' doing.
func switches(p trial.Profile) (all, forced float64, has bool) {
	all, hasAll := value(p.Host, "tree.context_switches")
	forced, hasForced := value(p.Host, "tree.context_switches_forced")
	return all, forced, hasAll && hasForced
}

// addMemory tells the code and data of files that were touched, which is the mark
// of the libraries' functions in use, from memory of the processes' own. It looks at
// the largest process: children that load data come and go within an epoch.
func addMemory(features map[string]float64, p trial.Profile) {
	all, hasAll := value(p.Host, "tree.largest_resident_bytes")
	files, hasFiles := value(p.Host, "tree.largest_resident_file_bytes")
	if !hasAll { // a profile of an earlier version
		all, hasAll = value(p.Host, "tree.resident_bytes")
		files, hasFiles = value(p.Host, "tree.resident_file_bytes")
	}
	switch {
	case hasAll && hasFiles:
		store(features, fileFeature, files)
		store(features, ownFeature, max(0, all-files))
	case hasAll:
		store(features, "resident_bytes", all)
	}
}

func addEvents(features map[string]float64, p trial.Profile, busy float64) {
	instructions, counted := value(p.Events, "instructions")
	counted = counted && instructions > 0
	for name, one := range p.Events {
		switch {
		case !usable(float64(one)) || besideThePoint(p, name) || counted && name == "instructions":
		case counted && !softwareEvent(name):
			store(features, name+perInstruction, float64(one)/instructions*1e6)
		default:
			store(features, name+perSecond, float64(one)/busy)
		}
	}
}

// besideThePoint says that an event only tells how long the processes ran, or
// what neighbours did to them, or the same as another one: page faults are
// almost always minor ones.
func besideThePoint(p trial.Profile, event string) bool {
	switch event {
	case "task-clock", "cpu-clock", "minor-faults", "cpu-migrations", "cgroup-switches":
		return true
	case "context-switches":
		_, _, known := switches(p)
		return known
	}
	return strings.HasPrefix(event, "msr/")
}

func softwareEvent(name string) bool {
	return slices.Contains([]string{"page-faults", "major-faults", "context-switches", "alignment-faults", "emulation-faults"}, name)
}

// derived says that a metric of the tree is told in another way.
func derived(metric string) bool {
	switch metric {
	case "resident_bytes", "resident_file_bytes", "largest_resident_bytes", "largest_resident_file_bytes", "context_switches_forced":
		return true
	}
	return strings.HasPrefix(metric, "cpu_")
}

// counted says that something else tells what the metric says less well.
func counted(p trial.Profile, metric string) bool {
	if metric == "context_switches" {
		if _, _, known := switches(p); known {
			return true
		}
	}
	event := map[string]string{"page_faults_minor": "page-faults", "page_faults_major": "major-faults", "context_switches": "context-switches"}[metric]
	_, has := p.Events[event]
	return has
}

// graphics says that a metric is of the work on the GPUs that a trial may use;
// their clocks and temperature are rather the machine's.
func graphics(name string) bool {
	return slices.Contains([]string{"gpu.core_utilization", "gpu.memory_utilization", "gpu.memory_used_bytes", "gpu.power_watts", "gpu.pcie_receive_bytes_per_second", "gpu.pcie_send_bytes_per_second"}, name)
}

// addsUp says that a metric of the tree is an amount per second, not a state.
func addsUp(metric string) bool {
	return slices.Contains([]string{"disk_read_bytes", "disk_write_bytes", "page_faults_minor", "page_faults_major", "context_switches"}, metric)
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
	// weight is how much of what it tells is the workload and not chance.
	weight float64
}

// rules have spreads and weights from bench/similarity, on a machine that others used too.
// Those of GPUs are of epochs of one to three seconds on an H200, of 18 trials and settings
// (scripts/gpu-check): what varies much within a trial says little.
var rules = map[string]rule{
	coresFeature:                        {soft: 0.05, spread: 0.5, weight: 0.2}, // mostly the neighbours'
	wantedFeature:                       {soft: 0.05, spread: 0.05, weight: 1},
	firstFeature:                        {soft: 0.05, spread: 0.06, weight: 0.3},
	kernelFeature:                       {soft: 0.02, spread: 0.45, weight: 0.1},
	fileFeature:                         {soft: 16 << 20, spread: 0.0012, weight: 1},
	"resident_bytes":                    {soft: 16 << 20, spread: 0.03, weight: 1},
	ownFeature:                          {soft: 16 << 20, spread: 0.03, weight: 1},
	"threads":                           {soft: 1, spread: 0.1, weight: 0.1},
	"processes":                         {soft: 1, spread: 0.1, weight: 0.1},
	"page-faults" + perSecond:           {soft: 100, spread: 1, weight: 0.1},
	"page_faults_minor" + perSecond:     {soft: 100, spread: 1, weight: 0.1},
	"context-switches" + perSecond:      {soft: 20, spread: 0.2, weight: 0.1},
	"context_switches" + perSecond:      {soft: 20, spread: 0.2, weight: 0.1},
	switchFeature:                       {soft: 20, spread: 0.2, weight: 0.1},
	"disk_read_bytes" + perSecond:       {soft: 1 << 20, spread: 0.5, weight: 0.1},
	"disk_write_bytes" + perSecond:      {soft: 1 << 20, spread: 0.5, weight: 0.1},
	"major-faults" + perSecond:          {soft: 10, spread: 0.5, weight: 0.1},
	"page_faults_major" + perSecond:     {soft: 10, spread: 0.5, weight: 0.1},
	"gpu.memory_used_bytes":             {soft: 256 << 20, spread: 0.05, weight: 1},
	"gpu.power_watts":                   {soft: 20, spread: 0.17, weight: 0.5},
	"gpu.pcie_receive_bytes_per_second": {soft: 1 << 20, spread: 0.25, weight: 0.3},
	"gpu.pcie_send_bytes_per_second":    {soft: 1 << 20, spread: 0.55, weight: 0.1},
}

// ruleFor is the feature's. What has none of its own was not measured: the spread of what
// the processor counts is a guess that records correct.
func ruleFor(feature string) rule {
	known, ok := rules[feature]
	switch {
	case ok:
		return known
	case graphics(feature):
		return rule{soft: 0.05, spread: 0.45, weight: 0.3} // utilizations, from 0 to 1
	case strings.HasSuffix(feature, perSecond):
		return rule{soft: 1000, spread: 0.1, weight: 1}
	}
	return rule{soft: 1, spread: 0.1, weight: 1}
}
