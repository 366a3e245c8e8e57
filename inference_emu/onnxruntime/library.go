// Package onnxruntime finds the shared library of ONNX Runtime on this machine. It loads nothing.
package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Variable is the environment variable that names ONNX Runtime's shared library.
const Variable = "TANDEM_ONNXRUNTIME"

// The versions of ONNX Runtime: the oldest one that has the interface we use (its
// number 24), and the one that we test with.
const (
	leastMinor    = 24
	testedVersion = "1.30.0"
)

// HowToInstall says how to get ONNX Runtime.
const HowToInstall = "pip install onnxruntime==" + testedVersion + " where the python3 in the PATH finds it, or name libonnxruntime.so with --onnxruntime or " + Variable

// Options say where to look for the library. The zero value is this machine.
type Options struct {
	// Named is the library's path, or the folder it is in; then nothing else is
	// looked at. Empty: what [Variable] names.
	Named string
	// Root is prefixed to the folders of the system; "/" when empty.
	Root string
	// Python is the interpreter whose package onnxruntime is looked for; "python3"
	// from the PATH when empty.
	Python string
}

// Find finds ONNX Runtime's shared library: as named, beside this program, where
// systems keep libraries, and in the Python package. Of several it takes the first that
// is new enough by its name. The error is a
// [problem.NotFound] and says how to get one.
func Find(ctx context.Context, options Options) (path string, err error) {
	named, by := options.Named, "--onnxruntime"
	if named == "" {
		named, by = os.Getenv(Variable), Variable
	}
	if named != "" {
		return namedLibrary(named, by)
	}
	var looked, old []string
	take := func(folder string) string {
		looked = append(looked, folder)
		for _, found := range librariesIn(folder) {
			if minor, known := minorVersion(found); !known || minor >= leastMinor {
				return found
			}
			old = append(old, found)
		}
		return ""
	}
	for _, folder := range systemFolders(options.Root) {
		if found := take(folder); found != "" {
			return found, nil
		}
	}
	for _, folder := range pythonFolders(ctx, options.Python) {
		if found := take(filepath.Join(folder, "onnxruntime", "capi")); found != "" {
			return found, nil
		}
	}
	if len(old) > 0 {
		return "", problem.New(problem.NotFound, "ONNX Runtime is too old: %s, and at least 1.%d is needed: %s", strings.Join(old, ", "), leastMinor, HowToInstall)
	}
	return "", problem.New(problem.NotFound, "ONNX Runtime is not installed: there is no libonnxruntime.so in %s: %s", strings.Join(looked, ", "), HowToInstall)
}

func namedLibrary(named, by string) (string, error) {
	about, err := os.Stat(named)
	if err != nil {
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err
		}
		return "", problem.New(problem.NotFound, "%s names %s, which cannot be used: %w", by, named, err)
	}
	if about.IsDir() {
		found := librariesIn(named)
		if len(found) == 0 {
			return "", problem.New(problem.NotFound, "%s names the folder %s, in which there is no libonnxruntime.so", by, named)
		}
		named = found[0]
	}
	absolute, err := filepath.Abs(named)
	if err != nil {
		return "", fmt.Errorf("the path of %s: %w", named, err)
	}
	if minor, known := minorVersion(absolute); known && minor < leastMinor {
		return "", problem.New(problem.NotFound, "ONNX Runtime at %s is too old: at least 1.%d is needed: %s", absolute, leastMinor, HowToInstall)
	}
	return absolute, nil
}

func librariesIn(folder string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, "libonnxruntime.so*")) // a folder with metacharacters has none
	return found
}

// minorVersion is the second number of the version in a library's name, or in the
// name of what it links to.
func minorVersion(path string) (int, bool) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		target = path
	}
	numbers := regexp.MustCompile(`libonnxruntime\.so\.1\.(\d+)`).FindStringSubmatch(filepath.Base(target))
	if numbers == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(numbers[1])
	return minor, err == nil
}

// systemFolders are those beside this program and those of the system.
func systemFolders(root string) []string {
	var folders []string
	if program, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(program))
	}
	for _, folder := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(folder) {
			folders = append(folders, folder)
		}
	}
	for _, folder := range []string{"usr/local/lib", "usr/lib", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "opt/onnxruntime/lib"} {
		folders = append(folders, filepath.Join("/", root, folder))
	}
	return folders
}

// pythonPatience bounds the question to the interpreter.
const pythonPatience = 10 * time.Second

// pythonFolders are where an interpreter has its packages; none where there is no
// interpreter. That of an activated virtual environment is in the PATH.
func pythonFolders(ctx context.Context, python string) []string {
	if python == "" {
		python = "python3"
	}
	ctx, cancel := context.WithTimeout(ctx, pythonPatience)
	defer cancel()
	command := exec.CommandContext(ctx, python, "-c", `import sys; print("\n".join(p for p in sys.path if p.endswith("-packages")))`)
	command.Dir = "/" // nothing of the current folder is imported
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = time.Second
	said, err := command.Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(said))
}
