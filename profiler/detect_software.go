package profiler

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// pythonPatience bounds the search for PyTorch: importing it from a cold disk
// can take seconds.
const pythonPatience = 10 * time.Second

// askPython prints the version, and PyTorch's version or why it cannot be had.
const askPython = `import sys
print(sys.version.split()[0])
sys.stdout.flush()
try:
    import torch
    print("torch " + torch.__version__ + (", CUDA " + str(torch.version.cuda) if torch.cuda.is_available() else ", CPU only"))
except Exception as error:
    print("no " + type(error).__name__ + ": " + str(error).split("\n")[0])
`

// detectPython asks the interpreter about itself and about PyTorch.
func detectPython(ctx context.Context, interpreter string) (python, torch Capability) {
	python, torch = Capability{Name: "python"}, Capability{Name: "torch"}
	path, err := exec.LookPath(interpreter)
	if err != nil {
		python.Reason, python.Remedy = fmt.Sprintf("%s is not in the PATH", interpreter), "install Python 3, for instance: apt-get install python3"
		torch.Reason, torch.Remedy = "there is no Python to import it", python.Remedy
		return python, torch
	}
	said, err := runBounded(ctx, path, "-c", askPython)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if lines[0] == "" {
		python.Reason, python.Remedy = fmt.Sprintf("%s does not run: %v", path, err), "repair or reinstall Python 3"
		torch.Reason, torch.Remedy = "there is no Python to import it", python.Remedy
		return python, torch
	}
	python.Available, python.Detail = true, fmt.Sprintf("%s at %s", lines[0], path)
	answer := ""
	if len(lines) > 1 {
		answer = lines[1]
	}
	if version, ok := strings.CutPrefix(answer, "torch "); ok {
		torch.Available, torch.Detail = true, version
		return python, torch
	}
	torch.Reason, _ = strings.CutPrefix(answer, "no ")
	torch.Remedy = "install it where this Python looks: " + path + " -m pip install torch; needed only by scripts that use PyTorch"
	if torch.Reason == "" {
		torch.Reason = fmt.Sprintf("importing it did not end well: %v", err)
	}
	return python, torch
}

// runBounded runs a command for at most pythonPatience and returns what it
// printed until then.
func runBounded(ctx context.Context, name string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pythonPatience)
	defer cancel()
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = "/" // a torch.py in the current folder is not PyTorch
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	said, err := command.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", pythonPatience)
	}
	return string(said), err
}
