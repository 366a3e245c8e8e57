package process

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
)

// passed are the variables every command gets from the worker's environment.
// Everything else stays behind, so that a secret of the worker's owner does
// not end up in a training script's log.
var passed = [...]string{
	"PATH", "HOME", "USER", "LANG", "LC_*", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH",
	"CUDA_*", "NVIDIA_*", "LD_LIBRARY_PATH",
}

// secret are never passed, whatever the worker's owner lets through.
var secret = [...]string{"TANDEM_TOKEN", "TANDEM_SERVER"}

// frugal has TensorFlow and JAX take memory of a shared GPU as they need it; left
// to themselves, they take nearly all of it at once.
var frugal = [...][2]string{{"TF_FORCE_GPU_ALLOW_GROWTH", "true"}, {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}

// Environment is what a lease's command gets beside the trial's own variables,
// later entries winning: what the worker passes, the threads, the study's own
// variables.
func (r Rules) Environment(lease protocol.Lease, cores int) map[string]string {
	values := map[string]string{"PYTHONUNBUFFERED": "1"}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if r.passes(name) {
			values[name] = value
		}
	}
	for _, name := range system.ThreadVariables() {
		values[name] = strconv.Itoa(threads(lease, r.share(cores)))
		if own := os.Getenv(name); own != "" && keepsThreads(lease, cores) {
			values[name] = own
		}
	}
	if lease.GPUShared {
		for _, variable := range frugal {
			values[variable[0]] = variable[1]
		}
	}
	maps.Copy(values, lease.Environment)
	values["PATH"] = r.searchPath(lease)
	return values
}

// OwnThreads is how many threads this process's environment gives commands, at most
// the cores; 0 where it does not say.
func OwnThreads(cores int) int {
	for _, name := range system.ThreadVariables() {
		outer, _, _ := strings.Cut(os.Getenv(name), ",") // OpenMP takes one for each level
		if n, err := strconv.Atoi(strings.TrimSpace(outer)); err == nil && n >= 1 {
			return min(n, max(1, cores))
		}
	}
	return 0
}

// keepsThreads reports whether the worker's own variables hold: where the study sets
// neither threads nor cores, and where the server asks for what they say.
func keepsThreads(lease protocol.Lease, cores int) bool {
	if wanted, set := lease.System[system.CPUThreads].Number(); set {
		return int(wanted) == OwnThreads(cores)
	}
	_, bounded := lease.System[system.Cores].Number()
	return !bounded
}

// Threads are those of the environment's variables that bound threads.
func Threads(environment map[string]string) map[string]string {
	threads := map[string]string{}
	for _, name := range system.ThreadVariables() {
		threads[name] = environment[name]
	}
	return threads
}

// Variables is an environment as a command takes it.
func Variables(values map[string]string) ([]string, error) {
	list := make([]string, 0, len(values))
	for name, value := range values {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, StudyFault{fmt.Sprintf("the environment variable %q cannot be set: no = in a name, and no zero byte", name)}
		}
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// searchPath is the PATH of a lease's command: the worker's owner's folders,
// then what the study says, else what the worker has.
func (r Rules) searchPath(lease protocol.Lease) string {
	folders := slices.Clone(r.Path)
	rest, given := lease.Environment["PATH"]
	if !given {
		rest = os.Getenv("PATH")
	}
	if rest != "" {
		folders = append(folders, rest)
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

func (r Rules) passes(name string) bool {
	if slices.Contains(secret[:], name) {
		return false
	}
	allows := func(pattern string) bool { return covers(pattern, name) }
	return slices.ContainsFunc(passed[:], allows) || slices.ContainsFunc(r.Pass, allows)
}

// share is how many cores a trial may count on that says nothing of them. An
// elastic worker gets no second one beside it.
func (r Rules) share(cores int) int {
	if r.Elastic {
		return max(1, cores)
	}
	return max(1, cores/r.Slots)
}

// threads is the system configuration's cpu_threads, else its cores, else those
// that are kept for the trial, else the slot's share.
func threads(lease protocol.Lease, share int) int {
	for _, name := range [...]string{system.CPUThreads, system.Cores} {
		if wanted, ok := lease.System[name].Number(); ok && wanted >= 1 {
			return int(wanted)
		}
	}
	if lease.Cores > 0 {
		return lease.Cores
	}
	return share
}

// Settle gives a command in a sandbox folders of its own for temporary files and
// in place of the user's, unless its study or the worker's owner says which.
func (r Rules) Settle(environment map[string]string, folder *workspace.Folder, lease protocol.Lease) {
	set := func(name, value string) {
		_, chosen := lease.Environment[name]
		if !chosen && !slices.Contains(r.Pass, name) {
			environment[name] = value
		}
	}
	set("TMPDIR", folder.Temporary())
	set("HOME", folder.User())
	// Python looks for what its user has installed below HOME.
	if user, err := os.UserHomeDir(); err == nil {
		if _, err := os.Stat(filepath.Join(user, ".local", "lib")); err == nil {
			set("PYTHONUSERBASE", filepath.Join(user, ".local"))
		}
	}
}
