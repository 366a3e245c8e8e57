package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/sandbox"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

// confinement is how commands are held, with what the agent knows.
func (o Options) confinement() sandbox.Options {
	held := o.Sandbox
	if held.Mode == "" {
		held.Mode = sandbox.Off
	}
	held.Home, _ = os.UserHomeDir() // a user without a home has nothing in it
	held.Protected = append(slices.Clone(held.Protected), o.Scratch)
	held.Search = append(slices.Clone(o.Path), filepath.SplitList(os.Getenv("PATH"))...)
	// What this process was told to find things in, it tells its commands.
	for _, name := range [...]string{"PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"} {
		for _, folder := range filepath.SplitList(os.Getenv(name)) {
			if _, err := os.Stat(folder); err == nil && filepath.IsAbs(folder) && folder != "/" {
				held.Read = append(slices.Clip(held.Read), folder)
			}
		}
	}
	return held
}

// sandboxed is what holds commands, as the server is told.
func (a *Agent) sandboxed() *protocol.Sandbox {
	told := &protocol.Sandbox{Mode: string(a.sandbox.Mode()), Layers: []string{}}
	for _, one := range a.sandbox.Layers() {
		if one.Active {
			told.Layers = append(told.Layers, one.Name)
		}
	}
	if a.sandbox.Mode() != sandbox.Off {
		for _, one := range sandbox.Missing(a.sandbox.Layers()) {
			told.Missing = append(told.Missing, script.Truncate(one, 512))
		}
	}
	return told
}

// hold prepares a command's launcher; nil without a sandbox.
func (a *Agent) hold(command *exec.Cmd, folder *workspace.Folder, strict bool) (*sandbox.Held, error) {
	if a.sandbox.Mode() == sandbox.Off && !strict {
		return nil, nil
	}
	return a.sandbox.Hold(sandbox.Job{Command: command, Own: []string{folder.Directory, folder.Sockets}, Strict: strict})
}

// settle gives a command in a sandbox folders of its own for temporary files and
// in place of the user's, unless its study or the worker's owner says which.
func (a *Agent) settle(environment map[string]string, folder *workspace.Folder, lease protocol.Lease) {
	if a.sandbox.Mode() == sandbox.Off {
		return
	}
	set := func(name, value string) {
		_, chosen := lease.Environment[name]
		if !chosen && !slices.Contains(a.options.PassEnvironment, name) {
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

// admits refuses requests of processes that are not the command's: where nothing
// hides one command's socket from the others, they could speak in its name.
func (s *seat) admits(ctx context.Context, pid int) error {
	if s.agent.sandbox.Mode() == sandbox.Off {
		return nil
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	if pid > 0 && s.process.owns(pid) {
		return nil
	}
	return problem.New(problem.Forbidden, "process %d is not of this trial, or has left its session and its parents: only the trial's own processes may use its socket", pid)
}

// explain adds to a command's failure what the sandbox may have to do with it.
func (r *run) explain(request protocol.FinishRequest, lastErrors []string) protocol.FinishRequest {
	if request.Outcome != protocol.CommandFailed {
		return request
	}
	if hint := r.agent.sandbox.Explain(lastErrors, r.directory); hint != "" {
		request.Reason = fmt.Sprintf("%s\ntandem: %s", request.Reason, hint)
	}
	return request
}
