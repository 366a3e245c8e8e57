package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/ranks"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// StudyFault is something a study has wrong for this worker: no retry on it
// will help, and the user has to know.
type StudyFault struct{ reason string }

func (f StudyFault) Error() string { return f.reason }

// Find finds the program and the folder of a lease's command. Nothing is passed
// through a shell. If it is not there, the command is returned with the error.
// Faults of the study are StudyFault.
func (r Rules) Find(lease protocol.Lease) (*exec.Cmd, error) {
	if len(lease.Command) == 0 {
		return nil, StudyFault{"the study has no command: its trials are run by the process that asks for them"}
	}
	directory, advice := lease.Directory, "copy it there"
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(r.Directory, directory)
		advice += ", or start the worker in the folder that the study's directory is relative to"
	}
	// Not exec.Command: it would look the name up once more, elsewhere.
	command := &exec.Cmd{Path: lease.Command[0], Args: lease.Command, Dir: directory}
	info, err := os.Stat(directory)
	if errors.Is(err, os.ErrPermission) || err == nil && unix.Access(directory, unix.X_OK) != nil {
		return command, StudyFault{fmt.Sprintf("the study's directory %s is closed to the user that worker %s runs as (uid %d): open it to that user, or name another directory in the study", directory, r.Worker, os.Geteuid())}
	}
	if err != nil || !info.IsDir() {
		return command, StudyFault{fmt.Sprintf("the study's directory %s does not exist on worker %s: %s", directory, r.Worker, advice)}
	}
	name := lease.Command[0]
	if definition.IsService(lease.Command) { // this program drives it
		command.Path, err = os.Executable()
		return command, err
	}
	if !strings.Contains(name, "/") {
		where := r.searchPath(lease)
		path := lookUp(name, where)
		if path == "" {
			return command, StudyFault{fmt.Sprintf("command not found: %q is in no folder of the PATH on worker %s (%s): start the worker with --path and its folder", name, r.Worker, where)}
		}
		command.Path = path
	} else if filepath.IsAbs(name) {
		command.Path = name
	} else {
		command.Path = filepath.Join(directory, name)
	}
	if _, err := os.Stat(command.Path); err != nil {
		return command, StudyFault{fmt.Sprintf("command not found: %s does not exist on worker %s", command.Path, r.Worker)}
	}
	return command, nil
}

// Driven is what starts the command: itself, or this program, which drives services and
// runs as many processes as the lease wants. Its file may have been replaced meanwhile.
func Driven(command *exec.Cmd, lease protocol.Lease) *exec.Cmd {
	driver := &exec.Cmd{Path: sandbox.ThisProgram, Args: command.Args, Dir: command.Dir}
	switch {
	case definition.IsService(lease.Command):
		return driver
	case lease.Processes < 2:
		return command
	}
	driver.Args = ranks.Command(lease.Processes, command.Path, command.Args[1:])
	return driver
}

// lookUp finds a program in the folders of a PATH; empty if it is in none.
// Relative folders are passed over, since which program they mean depends on
// where one stands.
func lookUp(name, path string) string {
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, name)
		if !filepath.IsAbs(folder) || unix.Access(candidate, unix.X_OK) != nil {
			continue
		}
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() {
			return candidate
		}
	}
	return ""
}
