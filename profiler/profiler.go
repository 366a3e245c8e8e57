// Package profiler answers: what did the hardware do while a trial trained, and
// what can this machine measure at all?
//
// A [Meter] gives the joules of a span of training; [Detect] lists what the
// machine can measure and control, and for everything it cannot, why not and
// what to do about it.
//
// Its one invariant: a number that comes from a model instead of a meter says
// so (its method starts with "estimate"), and a thing that cannot be measured is
// missing with a reason, never 0. The package reads the machine and changes
// nothing, but for [GPUControl], which is there for a worker that does; it knows
// neither trials nor the server.
package profiler

import (
	"path/filepath"
	"strings"
)

// host reads the machine's files below a root, "/" outside of tests.
type host struct{ root string }

func newHost(root string) host {
	if root == "" {
		root = "/"
	}
	return host{root: root}
}

func (h host) path(name string) string { return filepath.Join(h.root, name) }

// text is a file's content without the white space around it.
func (h host) text(name string) (string, error) {
	content, err := readText(h.path(name))
	return strings.TrimSpace(content), err
}

func (h host) glob(pattern string) []string {
	// The only error is a bad pattern, and ours are constants.
	found, _ := filepath.Glob(h.path(pattern))
	return found
}
