package agent

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// studyFault is something a study has wrong for this worker: no retry on it
// will help, and the user has to know.
type studyFault struct{ reason string }

func (f studyFault) Error() string { return f.reason }

// startCommand finds the run a process that waits for one like it, or starts
// its command.
func (r *run) startCommand() error {
	command, err := r.command()
	if command != nil { // what is not allowed is refused, also where it could not run
		if err := r.agent.options.allows(command, r.lease); err != nil {
			return err
		}
	}
	if err != nil {
		return r.agent.options.Policy.spares(err)
	}
	r.directory = command.Dir
	secrets, err := r.agent.options.secrets(r.lease)
	if err != nil {
		return err
	}
	r.secrets = newMask(secrets)
	environment := r.agent.options.environment(r.lease, r.agent.cores)
	threads := map[string]string{}
	for _, name := range threadVariables {
		threads[name] = environment[name]
	}
	wanted := kind(r.lease, command, maps.Clone(environment))
	s := r.agent.lot.seat(wanted, r.lease.GPUs)
	if s == nil {
		if s, err = r.agent.newSeat(wanted, r.lease.GPUs); err != nil {
			return err
		}
	}
	r.seat = s
	if err = r.prepare(); err == nil {
		var own map[string]string
		if own, err = script.Variables(r.lease, r.place.Checkpoint, r.place.Socket); err == nil && s.process == nil {
			maps.Copy(environment, secrets)
			maps.Copy(environment, own)
			r.agent.settle(environment, s.folder, r.lease)
			err = r.launch(command, environment)
		} else if err == nil {
			maps.Copy(threads, own)
			err = r.handOver(threads)
		}
	}
	if err != nil {
		r.giveUp()
		return err
	}
	r.reading.Go(r.readLines)
	return nil
}

// prepare makes the run's folder, restores the checkpoint, and opens the socket.
func (r *run) prepare() (err error) {
	if r.place, err = r.seat.folder.NewRun(); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	options := r.agent.options
	r.checkpoint = &artifact.Checkpoint{
		Server: options.Server, Cache: r.agent.cache, Limits: artifact.Limits{Bytes: options.MaxCheckpointBytes, Files: options.MaxCheckpointFiles},
		Lease: r.lease, Folder: r.place.Checkpoint, Stalled: r.stalled,
	}
	if err := r.checkpoint.Restore(r.preparing); err != nil {
		return err
	}
	r.reached()
	if err := r.preparing.Err(); err != nil {
		return err
	}
	r.socket, err = script.Listen(r.place.Socket, calls{r, r.seat})
	return err
}

// giveUp takes back what was prepared for a run that does not begin.
func (r *run) giveUp() {
	if r.socket != nil {
		r.socket.Close()
	}
	if r.seat.process != nil {
		r.seat.dismiss()
	} else {
		r.seat.end()
	}
	r.seat = nil
}

// command finds the program and the folder. Nothing is passed through a shell. What
// it looked for is returned beside the error that it is not there.
func (r *run) command() (*exec.Cmd, error) {
	if len(r.lease.Command) == 0 {
		return nil, studyFault{"the study has no command: its trials are run by the process that asks for them"}
	}
	directory, advice := r.lease.Directory, "copy it there"
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(r.agent.options.Directory, directory)
		advice += ", or start the worker in the folder that the study's directory is relative to"
	}
	// Not exec.Command: it would look the name up once more, elsewhere.
	command := &exec.Cmd{Path: r.lease.Command[0], Args: r.lease.Command, Dir: directory}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return command, studyFault{fmt.Sprintf("the study's directory %s does not exist on worker %s: %s", directory, r.agent.options.Name, advice)}
	}
	name := r.lease.Command[0]
	if !strings.Contains(name, "/") {
		where := r.agent.options.searchPath(r.lease)
		path := lookUp(name, where)
		if path == "" {
			return command, studyFault{fmt.Sprintf("command not found: %q is in no folder of the PATH on worker %s (%s)", name, r.agent.options.Name, where)}
		}
		command.Path = path
	} else if !filepath.IsAbs(name) {
		command.Path = filepath.Join(directory, name)
	}
	if _, err := os.Stat(command.Path); err != nil {
		return command, studyFault{fmt.Sprintf("command not found: %s does not exist on worker %s", command.Path, r.agent.options.Name)}
	}
	return command, nil
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
