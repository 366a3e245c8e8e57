package profiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pythonPatience bounds the search for PyTorch: importing it from a cold disk
// can take seconds.
const pythonPatience = 10 * time.Second

// askPython prints the version, the folders packages are in, and PyTorch's
// version or why it cannot be had.
const askPython = `import sys, sysconfig
print(sys.version.split()[0])
print(sysconfig.get_paths()["platlib"])
sys.stdout.flush()
try:
    import torch
    print("torch " + torch.__version__ + (", CUDA " + str(torch.version.cuda) if torch.cuda.is_available() else ", CPU only"))
except Exception as error:
    print("no " + type(error).__name__ + ": " + str(error).split("\n")[0])
`

// detectPython asks the interpreter about itself and about PyTorch; packages is
// the folder its packages are in, if it said so.
func detectPython(ctx context.Context, interpreter string) (python, torch Capability, packages string) {
	python, torch = Capability{Name: "python"}, Capability{Name: "torch"}
	path, err := exec.LookPath(interpreter)
	if err != nil {
		python.Reason, python.Remedy = fmt.Sprintf("%s is not in the PATH", interpreter), "install Python 3, for instance: apt-get install python3"
		torch.Reason, torch.Remedy = "there is no Python to import it", python.Remedy
		return python, torch, ""
	}
	said, err := runBounded(ctx, path, "-c", askPython)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) < 2 {
		python.Reason, python.Remedy = fmt.Sprintf("%s does not run: %v", path, err), "repair or reinstall Python 3"
		torch.Reason, torch.Remedy = "there is no Python to import it", python.Remedy
		return python, torch, ""
	}
	python.Available, python.Detail, packages = true, fmt.Sprintf("%s at %s", lines[0], path), lines[1]
	answer := ""
	if len(lines) > 2 {
		answer = lines[2]
	}
	if version, ok := strings.CutPrefix(answer, "torch "); ok {
		torch.Available, torch.Detail = true, version
		return python, torch, packages
	}
	torch.Reason, _ = strings.CutPrefix(answer, "no ")
	torch.Remedy = "install it where this Python looks: " + path + " -m pip install torch; needed only by scripts that use PyTorch"
	if torch.Reason == "" {
		torch.Reason = fmt.Sprintf("importing it did not end well: %v", err)
	}
	return python, torch, packages
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

// detectONNXRuntime looks for the shared library where it is usually put; it is
// not loaded, which would run its code.
func detectONNXRuntime(h host, packages string) Capability {
	c := Capability{Name: "onnx runtime"}
	if named := os.Getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH"); named != "" {
		if _, err := os.Stat(named); err != nil {
			c.Reason = fmt.Sprintf("ONNXRUNTIME_SHARED_LIBRARY_PATH names a file that cannot be used: %v", errors.Unwrap(err))
			c.Remedy = "point it to libonnxruntime.so, or unset it"
			return c
		}
		c.Available, c.Detail = true, named
		return c
	}
	var looked []string
	for _, directory := range libraryDirectories(h, packages) {
		looked = append(looked, directory)
		found, _ := filepath.Glob(filepath.Join(directory, "libonnxruntime.so*")) // no metacharacters of ours are bad
		if len(found) > 0 {
			c.Available, c.Detail = true, found[0]
			return c
		}
	}
	c.Reason = "libonnxruntime.so was not found in " + strings.Join(looked, ", ")
	c.Remedy = "pip install onnxruntime, or set ONNXRUNTIME_SHARED_LIBRARY_PATH; needed only to emulate inference"
	return c
}

func libraryDirectories(h host, packages string) []string {
	directories := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	for _, directory := range []string{"usr/local/lib", "usr/lib", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "opt/onnxruntime/lib"} {
		directories = append(directories, h.path(directory))
	}
	if packages != "" {
		directories = append(directories, filepath.Join(packages, "onnxruntime", "capi"))
	}
	return directories
}
