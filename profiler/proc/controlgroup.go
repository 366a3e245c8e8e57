package proc

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ControlGroup is the folder of the control group (v2) that this process is in;
// empty where there is no v2 tree, or this process is outside of what it sees of
// it.
func ControlGroup() string { return controlGroup(NewHost("")) }

// OldControlGroup is the folder of the group (v1) of a controller, such as
// "memory", that this process is in; empty where there is none.
func OldControlGroup(controller string) string { return oldControlGroup(NewHost(""), controller) }

func controlGroup(h Host) string {
	mounts, groups, known := groupTexts(h)
	if !known {
		return ""
	}
	return groupFolder(mounts, groups)
}

func oldControlGroup(h Host, controller string) string {
	mounts, groups, known := groupTexts(h)
	if !known {
		return ""
	}
	return oldGroupFolder(mounts, groups, controller)
}

func groupTexts(h Host) (mounts, groups string, known bool) {
	mounts, mountErr := h.Text("proc/self/mountinfo")
	groups, groupErr := h.Text("proc/self/cgroup")
	return mounts, groups, mountErr == nil && groupErr == nil
}

// groupFolder finds the v2 group of /proc/self/cgroup in the tree that
// /proc/self/mountinfo says is mounted.
func groupFolder(mounts, groups string) string {
	own := ""
	for line := range strings.SplitSeq(groups, "\n") {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = path
		}
	}
	return mounted(mounts, own, func(system []string) bool { return system[0] == "cgroup2" })
}

// oldGroupFolder finds the group of a controller of v1.
func oldGroupFolder(mounts, groups, controller string) string {
	own := ""
	for line := range strings.SplitSeq(groups, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			own = parts[2]
		}
	}
	return mounted(mounts, own, func(system []string) bool {
		return len(system) >= 3 && system[0] == "cgroup" && slices.Contains(strings.Split(system[2], ","), controller)
	})
}

// mounted is where this process's own group is in the first tree whose kind of file
// system, source and options are the wanted ones.
func mounted(mounts, own string, wanted func(system []string) bool) string {
	if !filepath.IsAbs(own) || strings.Contains(own, "..") {
		return ""
	}
	for line := range strings.SplitSeq(mounts, "\n") {
		before, after, _ := strings.Cut(line, " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		// Blanks in paths are escaped by a backslash: nobody mounts it there.
		if len(fields) < 5 || len(system) == 0 || !wanted(system) || strings.Contains(fields[4], `\`) {
			continue
		}
		inside, ok := strings.CutPrefix(own, strings.TrimSuffix(fields[3], "/"))
		if ok && (inside == "" || inside[0] == '/') {
			return filepath.Join(fields[4], inside)
		}
	}
	return ""
}

// limits are what the control groups around this process leave it of the
// machine, the tightest of each; 0 where there is no limit.
type limits struct {
	Cores  float64 // time, in cores
	Memory int64   // bytes
}

// LimitsOf looks at the groups from this process's own one outwards, as far as
// it sees them: a group outside of its container may limit it more.
func LimitsOf(h Host) limits {
	var found limits
	outwards(h, controlGroup(h), func(folder string) {
		if text, err := h.Text(filepath.Join(folder, "cpu.max")); err == nil {
			quota, period, _ := strings.Cut(text, " ")
			found.limitCores(quota, period)
		}
		if text, err := h.Text(filepath.Join(folder, "memory.max")); err == nil {
			found.limitMemory(text)
		}
	})
	outwards(h, oldControlGroup(h, "cpu"), func(folder string) {
		quota, quotaErr := h.Text(filepath.Join(folder, "cpu.cfs_quota_us"))
		period, periodErr := h.Text(filepath.Join(folder, "cpu.cfs_period_us"))
		if quotaErr == nil && periodErr == nil {
			found.limitCores(quota, period)
		}
	})
	outwards(h, oldControlGroup(h, "memory"), func(folder string) {
		if text, err := h.Text(filepath.Join(folder, "memory.limit_in_bytes")); err == nil {
			found.limitMemory(text)
		}
	})
	return found
}

// outwards visits a group's folder and those around it, as far as they are
// groups.
func outwards(h Host, folder string, visit func(folder string)) {
	for ; len(folder) > 1 && Exists(h.Path(filepath.Join(folder, "cgroup.procs"))); folder = filepath.Dir(folder) {
		visit(folder)
	}
}

// limitCores takes a quota of a period, both in microseconds. A quota of "max",
// or below 0 in v1, is none.
func (l *limits) limitCores(quota, period string) {
	used, quotaErr := strconv.ParseFloat(quota, 64)
	of, periodErr := strconv.ParseFloat(period, 64)
	if quotaErr != nil || periodErr != nil || !(used > 0) || !(of > 0) {
		return
	}
	if cores := used / of; l.Cores == 0 || cores < l.Cores {
		l.Cores = cores
	}
}

// limitMemory takes a number of bytes. "max", and what a signed number can't
// hold, is none; what is more than the machine has is up to the caller.
func (l *limits) limitMemory(text string) {
	bytes, err := strconv.ParseInt(text, 10, 64)
	if err == nil && bytes > 0 && (l.Memory == 0 || bytes < l.Memory) {
		l.Memory = bytes
	}
}
