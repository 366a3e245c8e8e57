// Package sandbox answers: what can a training script do to the machine it runs
// on, and to everybody else there?
//
// A command is not started by the worker itself. The worker starts its own
// program again as a launcher ([Process]), which gives up everything that a
// training does not need, one layer after the other, and then becomes the
// command. What is given up is never had again, by the command or by anything
// it starts. Which layers there are depends on the kernel and on the container
// the worker runs in: they are found out by trying ([Open]), never assumed.
//
// The package decides how a command is held, not which command may run.
package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Mode is how much a worker insists on.
type Mode string

// The modes.
const (
	// Off starts commands with all the rights of the worker.
	Off Mode = "off"
	// Auto holds them by all layers there are, and leaves them the network.
	Auto Mode = "auto"
	// Strict starts none unless all layers are there, and leaves no network.
	Strict Mode = "strict"
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	if mode := Mode(text); slices.Contains([]Mode{Off, Auto, Strict}, mode) {
		return mode, nil
	}
	return "", fmt.Errorf("%q is no kind of sandbox: it must be %s, %s or %s", text, Auto, Strict, Off)
}

// The layers, by the names that people see.
const (
	// Limits bounds processes and the size of files, and writes no core dumps.
	Limits = "limits"
	// Namespaces has mounts and System V IPC of its own: /dev/shm, /tmp, /var/tmp
	// and /run are not the machine's.
	Namespaces = "namespaces"
	// Capabilities leaves none of the parts of root's rights.
	Capabilities = "capabilities"
	// Privileges lets no program give more rights (no_new_privs).
	Privileges = "privileges"
	// Files opens only what the command was granted (Landlock), and looks into
	// no process outside.
	Files = "files"
	// Signals reaches no process outside, and no abstract socket (Landlock).
	Signals = "signals"
	// Calls refuses system calls that training has no use for (seccomp).
	Calls = "calls"
)

// layers in the order in which they are applied.
var layers = []string{Limits, Namespaces, Capabilities, Privileges, Files, Signals, Calls}

// Names are all layers there can be.
func Names() []string { return slices.Clone(layers) }

// Layer is one of the things that hold a command.
type Layer struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
	// Detail says what it does here, or why it is missing.
	Detail string `json:"detail,omitempty"`
}

// Options make a [Sandbox].
type Options struct {
	Mode Mode
	// Read and Write are what every command may read, or read and write, by the
	// word of the worker's owner. What is not there is an error.
	Read, Write []string
	// Search are the folders that programs are looked up in. What lies around
	// them, such as a Python environment, may be read.
	Search []string
	// Home is the folder of the worker's user.
	Home string
	// Protected are what no command may read, whatever folder it lies in: tokens,
	// and what belongs to other commands.
	Protected []string
}

// Sandbox holds the commands of a worker.
type Sandbox struct {
	mode      Mode
	layers    []Layer
	reach     reach
	home      string
	protected []string
	driver    string // the file that shows NVIDIA's driver
}

// Open tries what there is on this machine. In strict mode it is an error if a
// layer is missing.
func Open(ctx context.Context, options Options) (*Sandbox, error) {
	s := &Sandbox{mode: options.Mode, home: clean(options.Home), driver: nvidiaControl}
	if options.Mode == Off {
		return s, nil
	}
	for _, path := range options.Protected {
		s.protected = append(s.protected, clean(path))
	}
	s.reach = everybodys()
	for _, folder := range options.Search {
		s.reach.addPrograms(folder, s.home)
	}
	// Python's packages of the user, who is told to be somewhere else.
	for _, name := range []string{"bin", "lib"} {
		if folder, err := resolve(filepath.Join(s.home, ".local", name)); err == nil && s.home != "" {
			s.reach.read = append(s.reach.read, folder)
		}
	}
	if err := s.grantOwners(options); err != nil {
		return nil, err
	}
	found, err := Probe(ctx)
	if err != nil {
		return nil, err
	}
	if missing := Missing(found); options.Mode == Strict && len(missing) > 0 {
		return nil, problem.New(problem.Unavailable, "--sandbox strict cannot be had on this machine: %s (--sandbox auto uses what there is)", strings.Join(missing, "; "))
	}
	s.layers = found
	return s, nil
}

func (s *Sandbox) grantOwners(options Options) error {
	for flag, paths := range map[string][]string{"--allow-read": options.Read, "--allow-write": options.Write} {
		for _, path := range paths {
			resolved, err := resolve(path)
			if err != nil {
				return fmt.Errorf("%s %s: %w", flag, path, err)
			}
			for _, own := range s.protected {
				if within(resolved, own) || flag == "--allow-write" && within(own, resolved) {
					return fmt.Errorf("%s %s: it would open %s, which belongs to the worker alone: allow a folder beside it", flag, path, own)
				}
			}
			if flag == "--allow-write" {
				s.reach.write = append(s.reach.write, resolved)
			} else {
				s.reach.addTree(resolved, s.protected)
			}
		}
	}
	return nil
}

// Mode is how much the worker insists on; no sandbox at all is one that is off.
func (s *Sandbox) Mode() Mode {
	if s == nil {
		return Off
	}
	return s.mode
}

// Layers are all layers there can be, with those that are active; nil when the
// sandbox is off.
func (s *Sandbox) Layers() []Layer { return slices.Clone(s.layers) }

// Complete reports whether nothing is missing for [Strict].
func (s *Sandbox) Complete() bool { return s.Mode() != Off && len(Missing(s.layers)) == 0 }

// Missing are the layers that are not active, each with the reason.
func Missing(found []Layer) []string {
	var missing []string
	for _, name := range layers {
		at := slices.IndexFunc(found, func(one Layer) bool { return one.Name == name })
		switch {
		case at < 0:
			missing = append(missing, name)
		case !found[at].Active:
			missing = append(missing, name+": "+found[at].Detail)
		}
	}
	return missing
}

// active names the layers that hold.
func active(found []Layer) []string {
	var names []string
	for _, one := range found {
		if one.Active {
			names = append(names, one.Name)
		}
	}
	return names
}
