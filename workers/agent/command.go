package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler"
)

// studyFault is something a study has wrong for this worker: no retry on it
// will help, and the user has to know.
type studyFault struct{ reason string }

func (f studyFault) Error() string { return f.reason }

// started is what runs beside a command and has to be ended after it.
type started struct {
	socket *socket
	window *profiler.Window
	lines  sync.WaitGroup
}

func (s *started) close() {
	s.socket.close()
	s.window.Close()
}

// startCommand makes the run's room, restores the checkpoint, and starts the
// command.
func (r *run) startCommand() (*started, error) {
	command, err := r.command()
	if err != nil {
		return nil, err
	}
	if r.place, err = r.agent.workspace.room(); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	if command.Env, err = r.agent.options.environment(r.lease, r.place, r.agent.cores); err != nil {
		return nil, studyFault{err.Error()}
	}
	if err := r.restore(r.preparing); err != nil {
		return nil, err
	}
	if err := r.preparing.Err(); err != nil {
		return nil, err
	}
	running := &started{}
	if running.socket, err = listen(r); err != nil {
		return nil, err
	}
	if err := r.launch(command); err != nil {
		running.socket.close()
		return nil, err
	}
	running.window = r.window
	running.lines.Go(r.readLines)
	return running, nil
}

// launch starts the prepared command and the measurement of its first epoch.
func (r *run) launch(command *exec.Cmd) error {
	r.output = &capture{log: r.log, line: func(line []byte) {
		if report, ok := parseLine(line); ok {
			r.lines <- report
		}
	}}
	stdout, stderr, err := r.output.open()
	if err != nil {
		r.output.drain()
		return fmt.Errorf("make the pipes for the output: %w", err)
	}
	command.Stdout, command.Stderr = stdout, stderr
	r.reporting.Lock() // a quick script waits until its measurement has begun
	defer r.reporting.Unlock()
	r.subject = &subject{cage: r.place.cage, environment: command.Env, mark: variableScratch + r.place.checkpoint}
	r.apply()
	command.Env = r.subject.environment
	p, err := start(command, r.place.cage, r.agent.events, r.subject.cores)
	_, _ = stdout.Close(), stderr.Close() // the command has its own
	if err != nil {
		r.unset()
		r.output.drain()
		return startFault(command, err)
	}
	r.subject.process = p
	used := 0.0
	r.window = r.agent.meter.OpenFor(command.Env, func() float64 {
		used = max(used, p.cpuSeconds()) // what was orphaned does not count backwards
		return used
	})
	r.agent.company.change(1)
	r.mark = r.agent.company.stand()
	r.apply()
	r.begin(p)
	return nil
}

// startFault tells a command that cannot be started from a worker that is out
// of something.
func startFault(command *exec.Cmd, err error) error {
	for _, scarce := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, scarce) {
			return fmt.Errorf("start the command: %w", err)
		}
	}
	return studyFault{fmt.Sprintf("the command cannot be started: %s: %v", command.Path, errors.Unwrap(err))}
}

// command finds the program and the folder. Nothing is passed through a shell.
func (r *run) command() (*exec.Cmd, error) {
	if len(r.lease.Command) == 0 {
		return nil, studyFault{"the study has no command: its trials are run by the process that asks for them"}
	}
	directory, advice := r.lease.Directory, "copy it there"
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(r.agent.options.Directory, directory)
		advice += ", or start the worker in the folder that the study's directory is relative to"
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, studyFault{fmt.Sprintf("the study's directory %s does not exist on worker %s: %s", directory, r.agent.options.Name, advice)}
	}
	name := r.lease.Command[0]
	path := name
	if !strings.Contains(name, "/") {
		where := r.agent.options.searchPath(r.lease)
		if path = lookUp(name, where); path == "" {
			return nil, studyFault{fmt.Sprintf("command not found: %q is in no folder of the PATH on worker %s (%s)", name, r.agent.options.Name, where)}
		}
	} else if !filepath.IsAbs(name) {
		path = filepath.Join(directory, name)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, studyFault{fmt.Sprintf("command not found: %s does not exist on worker %s", path, r.agent.options.Name)}
	}
	// Not exec.Command: it would look the name up once more, elsewhere.
	return &exec.Cmd{Path: path, Args: r.lease.Command, Dir: directory}, nil
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
