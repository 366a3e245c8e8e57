package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// Folder is where a command lives, however many runs it has: its folder, its
// sockets, and its control group.
type Folder struct {
	Directory, Sockets string
	Group              *cgroup.Group
	// Read are folders elsewhere that the command may read, and Free, if set, is called
	// when it does so no more.
	Read []string
	Free func()
	runs int
}

// Run is one run's folder and socket.
type Run struct{ Directory, Checkpoint, Artifacts, Socket string }

// NewFolder makes a folder for a command. Its parent is 0700, and so is everything in it.
func (w *Workspace) NewFolder() (*Folder, error) {
	number := fmt.Sprint(w.number.Add(1))
	f := &Folder{Directory: filepath.Join(w.directory, number), Sockets: filepath.Join(w.sockets, number)}
	if err := errors.Join(os.MkdirAll(f.Temporary(), 0o700), os.MkdirAll(f.User(), 0o700), os.MkdirAll(f.Sockets, 0o700)); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	f.Group = w.group.Inner(number)
	return f, nil
}

// Temporary is the folder that stands for the machine's temporary files, for a
// command in a sandbox.
func (f *Folder) Temporary() string { return filepath.Join(f.Directory, sandbox.Temporary) }

// User is the folder that stands for the user's own one.
func (f *Folder) User() string { return filepath.Join(f.Directory, "home") }

// Mark is what marks the environments of the command's processes, in all of its
// runs.
func (f *Folder) Mark() string { return cgroup.MarkVariable + f.Directory + "/" }

// Remove removes the folder and its control group.
func (f *Folder) Remove() error {
	f.Group.Remove()
	if f.Free != nil {
		f.Free()
	}
	return errors.Join(os.RemoveAll(f.Directory), os.RemoveAll(f.Sockets))
}

// NewRun makes the folder of the command's next run.
func (f *Folder) NewRun() (Run, error) {
	f.runs++
	number := fmt.Sprint(f.runs)
	r := Run{Directory: filepath.Join(f.Directory, number), Socket: filepath.Join(f.Sockets, "s"+number)}
	r.Checkpoint = filepath.Join(r.Directory, "checkpoint")
	r.Artifacts = filepath.Join(r.Directory, "artifacts")
	return r, errors.Join(os.MkdirAll(r.Checkpoint, 0o700), os.MkdirAll(r.Artifacts, 0o700))
}

// Remove leaves the socket, which may still have to say that the run is over.
func (r Run) Remove() error { return os.RemoveAll(r.Directory) }
