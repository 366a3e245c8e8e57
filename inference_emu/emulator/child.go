package emulator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is the process that does the job, as this one sees it.
type child struct {
	orders  *os.File
	answers *os.File
	printed *tail
	folder  string
	ended   chan error
	cancel  context.CancelFunc
}

// thisProgram is this program even where its file was replaced meanwhile.
const thisProgram = "/proc/self/exe"

// start starts the process in a group of its own, in an empty folder, without
// this one's environment and with nothing open but the model, for reading, and
// two pipes. It dies with this process.
func start(ctx context.Context, job Job) (*child, error) {
	model, err := readOnly(job.Model)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	c := &child{printed: &tail{most: maxErrorBytes}, ended: make(chan error, 1)}
	if c.folder, err = os.MkdirTemp("", "tandem-emulation-"); err != nil {
		return nil, fmt.Errorf("make an empty folder to run in: %w", err)
	}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, c.clear(err)
	}
	defer theirOrders.Close()
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, c.clear(err)
	}
	defer theirAnswers.Close()
	c.orders, c.answers = orders, answers
	var alive context.Context
	alive, c.cancel = context.WithCancel(ctx)
	command := exec.CommandContext(alive, thisProgram, Subcommand()...)
	command.Dir, command.Env = c.folder, []string{"LANG=C", "GOTRACEBACK=single"}
	command.Stdin, command.Stderr = theirOrders, c.printed
	command.ExtraFiles = []*os.File{model, theirAnswers}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := c.launch(command); err != nil {
		c.cancel()
		orders.Close()
		answers.Close()
		return nil, c.clear(fmt.Errorf("start the emulation process: %w", err))
	}
	return c, nil
}

// launch starts the command from a thread that stays until it ends: the kernel
// kills it when the thread that started it is gone.
func (c *child) launch(command *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			c.ended <- command.Wait()
		}
	}()
	return <-started
}

func (c *child) clear(err error) error {
	_ = os.RemoveAll(c.folder) // it is empty, and in the folder of temporary files
	return err
}

// end waits for a process that has nothing more to say, and says how it ended.
// One that goes on nevertheless is ended.
func (c *child) end() *ending {
	_ = c.orders.Close()
	_ = c.answers.Close()
	var err error
	select {
	case err = <-c.ended:
	case <-time.After(endPatience):
		c.cancel()
		err = <-c.ended
	}
	c.cancel()
	return &ending{err: c.clear(err), printed: string(c.printed.kept)}
}

// endPatience is how long a process may take to end after its last answer.
const endPatience = 10 * time.Second

// tail keeps the last bytes that are written to it.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.most; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}
