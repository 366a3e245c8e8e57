package agent

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/script"
	"github.com/tandem-tune/tandem/workers/sandbox"
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
