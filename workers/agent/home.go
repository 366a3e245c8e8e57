package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// home is where a command lives, however many runs it has: its folder, its
// sockets, and its control group.
type home struct {
	directory, sockets string
	group              *cgroup.Group
	rooms              int
}

// room is one run's folder and socket.
type room struct{ directory, checkpoint, socket string }

// home makes a folder for a command. Its parent is 0700, and so is everything in it.
func (w *workspace) home() (*home, error) {
	number := fmt.Sprint(w.number.Add(1))
	h := &home{directory: filepath.Join(w.directory, number), sockets: filepath.Join(w.sockets, number)}
	if err := errors.Join(os.MkdirAll(h.temporary(), 0o700), os.MkdirAll(h.user(), 0o700), os.MkdirAll(h.sockets, 0o700)); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	h.group = w.group.Inner(number)
	return h, nil
}

// temporary and user are the folders that stand for the machine's temporary files
// and the user's own ones, for a command in a sandbox.
func (h *home) temporary() string { return filepath.Join(h.directory, sandbox.Temporary) }

func (h *home) user() string { return filepath.Join(h.directory, "home") }

// mark is what marks the environments of the command's processes, in all of its
// runs.
func (h *home) mark() string { return cgroup.MarkVariable + h.directory + "/" }

func (h *home) remove() error {
	h.group.Remove()
	return errors.Join(os.RemoveAll(h.directory), os.RemoveAll(h.sockets))
}

// room makes the folder of the command's next run.
func (h *home) room() (room, error) {
	h.rooms++
	number := fmt.Sprint(h.rooms)
	r := room{directory: filepath.Join(h.directory, number), socket: filepath.Join(h.sockets, "s"+number)}
	r.checkpoint = filepath.Join(r.directory, "checkpoint")
	return r, os.MkdirAll(r.checkpoint, 0o700)
}

// remove leaves the socket, which may still have to say that the run is over.
func (r room) remove() error { return os.RemoveAll(r.directory) }
