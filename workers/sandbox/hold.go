package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Job is a command to be held.
type Job struct {
	// Command has program, arguments, folder, environment and outputs. It is not
	// started itself.
	Command *exec.Cmd
	// Program is what the command starts, if not itself: it may read what belongs to it.
	Program string
	// Own are the command's own folders, which it may write to. The first one has
	// a folder "tmp", which stands for the machine's.
	Own []string
	// Read are folders that it may read besides.
	Read []string
	// Strict holds it as [Strict] says, whatever the worker's mode.
	Strict bool
}

// Held is a command that is started as a launcher, which becomes it.
type Held struct {
	// Command is to be started, once.
	Command *exec.Cmd
	path    string
	order   *os.File
	answer  *os.File
	theirs  *os.File
}

// Failure is why a launcher could not hold its command: a fault of the machine,
// not of the command.
type Failure struct{ reason string }

// Error says what did not hold.
func (f Failure) Error() string { return "the sandbox does not hold: " + f.reason }

// launcherPatience is how long a launcher may take; it needs some milliseconds.
const launcherPatience = time.Minute

// launcherMark is a variable of launchers. A program that takes its second start
// for a first one must not start a third.
const launcherMark = "TANDEM_SANDBOX_LAUNCHER"

// ThisProgram is this program even where its file was replaced meanwhile.
const ThisProgram = "/proc/self/exe"

// Hold prepares the start of a held command. The command's program and its folder
// may be read, and what belongs to the program. The caller closes what it gets.
func (s *Sandbox) Hold(job Job) (*Held, error) {
	if strict := job.Strict || s.mode == Strict; strict && !s.Complete() {
		return nil, Failure{"the study wants all layers, and this worker lacks some"}
	}
	granted := reach{devices: devices()}
	for _, path := range job.Own {
		resolved, err := resolve(path)
		if err != nil {
			return nil, fmt.Errorf("the command's own folder: %w", err)
		}
		granted.write = append(granted.write, resolved)
	}
	for _, path := range job.Read {
		granted.read = append(granted.read, clean(path))
	}
	granted.addTree(clean(job.Command.Dir), s.hidden())
	granted.addProgram(cmp.Or(job.Program, job.Command.Path), s.home)
	if job.Command.Path == ThisProgram { // the launcher has the same
		granted.read = append(granted.read, ThisProgram)
	}
	o := order{
		Layers: active(s.layers), Offline: job.Strict || s.mode == Strict, Reach: s.reach.plus(granted).shared(),
		Threads: namesThreads(s.driver, s.layers), Path: job.Command.Path, Arguments: job.Command.Args, Environment: job.Command.Env, Directory: job.Command.Dir,
	}
	if len(granted.write) > 0 {
		o.Temporary = filepath.Join(granted.write[0], Temporary)
		o.Reach.Write = append(o.Reach.Write, o.Temporary) // as what is mounted elsewhere too, it needs a rule of its own
	}
	held, err := o.launcher()
	if err != nil {
		return nil, err
	}
	held.path = job.Command.Path
	held.Command.Dir, held.Command.Stdout, held.Command.Stderr = job.Command.Dir, job.Command.Stdout, job.Command.Stderr
	return held, nil
}

// Temporary is the name of the folder for temporary files in a command's own.
const Temporary = "tmp"

// hidden is what a command may not read though it lies in the study's folder:
// what is protected, and all in the home of the worker's user whose name begins
// with a dot, as keys and settings do.
func (s *Sandbox) hidden() []string {
	hidden := append([]string{}, s.protected...)
	if s.home == "" {
		return hidden
	}
	found, _ := fs.Glob(os.DirFS(s.home), ".*") // the pattern is well formed
	for _, name := range found {
		hidden = append(hidden, filepath.Join(s.home, name))
	}
	return hidden
}

// launcher prepares this program's second start.
func (o order) launcher() (*Held, error) {
	if os.Getenv(launcherMark) != "" {
		return nil, errors.New("this is a launcher already: the program must call sandbox.Process for its subcommand")
	}
	// It lives for milliseconds, in which there is no garbage to collect.
	environment := []string{"LANG=C", "GOGC=off", launcherMark + "=1"}
	h := &Held{Command: &exec.Cmd{Path: ThisProgram, Args: append([]string{"tandem"}, Subcommand()...), Env: environment}}
	var err error
	if h.order, err = o.file(); err != nil {
		return nil, err
	}
	if h.answer, h.theirs, err = os.Pipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe to the launcher: %w", err), h.order.Close())
	}
	h.Command.ExtraFiles = []*os.File{h.order, h.theirs}
	h.Command.SysProcAttr = attributes(o.has(Namespaces))
	return h, nil
}

// Await returns once the started launcher has become the command. An error that
// the kernel gave when the program was to be run is an [os.PathError].
func (h *Held) Await() error {
	said, err := h.listen()
	switch {
	case errors.Is(err, io.EOF): // closed when it became the command
		return nil
	case err != nil:
		return Failure{"the launcher does not answer: " + err.Error()}
	case said.Refused != 0:
		return &os.PathError{Op: "exec", Path: h.path, Err: said.Refused}
	default:
		return Failure{said.Failure}
	}
}

func (h *Held) listen() (said answer, err error) {
	_ = h.theirs.Close() // the launcher has its own
	if err := h.answer.SetReadDeadline(time.Now().Add(launcherPatience)); err != nil {
		return said, err
	}
	err = json.NewDecoder(h.answer).Decode(&said)
	return said, err
}

// Close lets go of what the start took, also when there was none.
func (h *Held) Close() {
	_, _, _ = h.order.Close(), h.answer.Close(), h.theirs.Close() // nothing that was written can be lost
}

// Probe tries all layers on a launcher that starts nothing, and says which hold.
func Probe(ctx context.Context) ([]Layer, error) {
	found, err := probe(ctx, Names())
	if err == nil {
		return remarked(found), nil
	}
	// The kernel or a container may refuse the namespaces at the very start.
	without := []string{}
	for _, name := range layers {
		if name != Namespaces {
			without = append(without, name)
		}
	}
	found, failed := probe(ctx, without)
	if failed != nil {
		return nil, fmt.Errorf("try the sandbox: %w", failed)
	}
	return remarked(append(found, Layer{Name: Namespaces, Detail: "the kernel or the container refuses them: " + err.Error()})), nil
}

// remarked says with the layers if they keep commands from the GPUs.
func remarked(found []Layer) []Layer {
	for i := range found {
		if found[i].Name == Files && found[i].Active {
			found[i].Detail += noGPUs(nvidiaControl, found)
		}
	}
	return found
}

func probe(ctx context.Context, wanted []string) ([]Layer, error) {
	o := order{Probe: true, Layers: wanted, Reach: everybodys().shared(), Threads: exists(nvidiaControl)}
	h, err := o.launcher()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	command := exec.CommandContext(ctx, h.Command.Path)
	command.Args, command.Env, command.ExtraFiles, command.SysProcAttr = h.Command.Args, h.Command.Env, h.Command.ExtraFiles, h.Command.SysProcAttr
	if err := command.Start(); err != nil {
		return nil, err
	}
	said, err := h.listen()
	if ended := command.Wait(); err == nil && ended != nil {
		err = ended
	}
	if err == nil && len(said.Layers) == 0 {
		err = errors.New("the launcher tried nothing: the program must call sandbox.Process for its subcommand")
	}
	return said.Layers, err
}
