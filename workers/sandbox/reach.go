package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// reach is what commands may open. Its paths are absolute and lead over no
// symbolic links.
type reach struct{ read, write, list, devices []string }

func (r reach) shared() shared {
	return shared{Read: compact(r.read), Write: compact(r.write), List: compact(r.list), Devices: compact(r.devices)}
}

func compact(paths []string) []string {
	sorted := slices.Sorted(slices.Values(paths))
	return slices.Compact(sorted)
}

func (r reach) plus(other reach) reach {
	return reach{
		read: slices.Concat(r.read, other.read), write: slices.Concat(r.write, other.write),
		list: slices.Concat(r.list, other.list), devices: slices.Concat(r.devices, other.devices),
	}
}

// everybodys is what all commands reach: the system's programs and libraries,
// what of its settings everybody may read, and devices that compute.
func everybodys() reach { return public().plus(reach{}) }

// public is looked for once: a worker's start needs it twice.
var public = sync.OnceValue(func() reach {
	r := reach{write: []string{sharedMemory}, list: []string{"/dev", "/etc"}}
	for _, path := range []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
		"/proc", "/sys/devices", "/sys/class", "/sys/bus", "/sys/dev", "/sys/block", "/sys/module", "/sys/fs/cgroup", "/sys/kernel/mm",
		"/var/cache/fontconfig", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/nvidia-persistenced", "/run/opengl-driver",
	} {
		if resolved, err := resolve(path); err == nil {
			r.read = append(r.read, resolved)
		}
	}
	r.addPublic("/etc")
	r.devices = devices()
	return r
})

// devices are those that everybody uses, and those that compute. The driver of a GPU
// makes some when the first program asks for them.
func devices() (all []string) {
	for _, pattern := range []string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/dev/nvidia*", "/dev/dri", "/dev/kfd", "/dev/infiniband/*",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		all = append(all, found...)
	}
	return all
}

// addPublic grants of the folder what everybody may read by its mode. What only
// its owner or a group may read has a reason to be so, also where the owner is
// the worker's user.
func (r *reach) addPublic(folder string) bool {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	whole := reach{}
	all := true
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		about, err := os.Stat(path) // of what a link leads to
		if err != nil {
			continue // it leads nowhere
		}
		resolved := path
		if entry.Type()&fs.ModeSymlink != 0 {
			// Only to where the system keeps such things: what else everybody may
			// read has its own place here.
			resolved, err = resolve(path)
			if err != nil || about.IsDir() || !within(resolved, "/run") && !within(resolved, "/var/lib") {
				continue
			}
		}
		switch {
		case about.Mode().IsRegular() && about.Mode().Perm()&0o004 != 0:
			whole.read = append(whole.read, resolved)
		case about.IsDir() && about.Mode().Perm()&0o005 == 0o005:
			if !whole.addPublic(path) {
				all = false
			}
		default:
			all = false
		}
	}
	if all && folder != "/etc" { // which may get a secret later
		r.read = append(r.read, folder)
		return true
	}
	r.read = append(r.read, whole.read...)
	return false
}

// addTree grants reading of all that lies in the folder but what is protected.
func (r *reach) addTree(folder string, protected []string) {
	inside := false
	for _, path := range protected {
		if within(folder, path) {
			return
		}
		inside = inside || within(path, folder)
	}
	if !inside {
		r.read = append(r.read, folder)
		return
	}
	r.list = append(r.list, folder) // programs look for modules in it
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // then nobody can read it
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			r.addTree(filepath.Join(folder, entry.Name()), protected)
		}
	}
}

// addPrograms grants a folder of programs, what belongs to them, and where its
// Python comes from.
func (r *reach) addPrograms(folder, home string) {
	folder, err := resolve(folder)
	if err != nil {
		return // not there: nothing is found in it either
	}
	r.read = append(r.read, around(folder, home)...)
	for _, name := range []string{"python", "python3"} {
		r.addProgram(filepath.Join(folder, name), home)
	}
}

// addProgram grants a program, and what belongs to it.
func (r *reach) addProgram(path, home string) {
	if folder, err := resolve(filepath.Dir(path)); err == nil {
		r.addBase(folder, home)
	}
	resolved, err := resolve(path)
	if err != nil {
		return
	}
	r.read = append(r.read, resolved)
	if folder := filepath.Dir(resolved); slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(folder)) {
		r.read = append(r.read, around(folder, home)...)
	}
}

// addBase grants the Python that the virtual environment around a folder of
// programs was made from.
func (r *reach) addBase(folder, home string) {
	settings, err := os.ReadFile(filepath.Join(filepath.Dir(folder), environmentFile))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(settings)) {
		name, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(name) != "home" {
			continue
		}
		if base, err := resolve(strings.TrimSpace(value)); err == nil {
			r.read = append(r.read, around(base, home)...)
		}
	}
}

// environmentFile is in the root of a virtual environment of Python.
const environmentFile = "pyvenv.cfg"

// around is what belongs to a folder of programs: all of an environment made for
// Python or by a manager of versions, else the folders beside it that programs
// have by custom.
func around(folder, home string) []string {
	outer := filepath.Dir(folder)
	if outer == "/" || home != "" && within(home, outer) {
		return []string{folder}
	}
	if filepath.Base(folder) == "shims" || exists(filepath.Join(outer, environmentFile)) || exists(filepath.Join(outer, "conda-meta")) {
		return []string{outer}
	}
	found := []string{folder}
	for _, name := range []string{"lib", "lib32", "lib64", "libexec", "include", "shims", "versions"} {
		if path, err := resolve(filepath.Join(outer, name)); err == nil {
			found = append(found, path)
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// within reports whether the path is the folder or lies in it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// resolve makes a path absolute and follows its links.
func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("it cannot be found: %w", err)
	}
	return resolved, nil
}

// clean is resolve for what may not be there.
func clean(path string) string {
	if path == "" {
		return ""
	}
	if resolved, err := resolve(path); err == nil {
		return resolved
	}
	return filepath.Clean(path)
}
