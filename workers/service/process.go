package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// lastLines is how much of the end of an output a reason has.
	lastLines = 6
	// mostOutput is how much of the end of the load's output is looked at.
	mostOutput = 1 << 20
	// pipeLinger is how long what a program left behind may hold its output open.
	pipeLinger = time.Second
)

// program is a child of the driver: the service, its load, or a short one. It leads a
// process group of its own, and the kernel ends it with the driver.
type program struct {
	what    string // as messages call it
	command *exec.Cmd
	output  tail // of both streams
	printed tail // standard output alone
	began   time.Time
	ended   chan struct{}
	err     error // how it ended, once ended is closed
}

// start starts the argv. The caller's thread must stay: the child ends with it.
func start(what string, argv, environment []string) (*program, error) {
	p := &program{what: what, command: exec.Command(argv[0], argv[1:]...), began: time.Now(), ended: make(chan struct{})}
	p.command.Env = environment
	// Nothing of it may be taken for a report, so all of it goes to standard error.
	p.command.Stdout, p.command.Stderr = io.MultiWriter(os.Stderr, &p.output, &p.printed), io.MultiWriter(os.Stderr, &p.output)
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.command.WaitDelay = pipeLinger
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", what, err)
	}
	go func() {
		p.err = p.command.Wait()
		if errors.Is(p.err, exec.ErrWaitDelay) { // it ended well, and left something behind
			p.err = nil
		}
		p.signal(syscall.SIGKILL) // what it left behind
		close(p.ended)
	}()
	return p, nil
}

// run runs the argv to its end.
func run(ctx context.Context, what string, argv, environment []string) (*program, error) {
	p, err := start(what, argv, environment)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.ended
		return p, ctx.Err()
	}
	if p.err != nil {
		return p, p.failure()
	}
	return p, nil
}

// failure says how it ended, with the last that it wrote.
func (p *program) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended with %s after %.1f s: %s", p.what, how, time.Since(p.began).Seconds(), p.said())
}

// said is the last line that it wrote.
func (p *program) said() string {
	if line := p.output.last(1); line != "" {
		return line
	}
	return "it wrote nothing"
}

func (p *program) signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.command.Process.Pid, signal) // fails only when nobody is left
}

// stop ends it with the signal, and after the grace without asking.
func (p *program) stop(signal syscall.Signal, grace time.Duration) {
	_ = p.command.Process.Signal(signal) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(grace):
	}
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// tail keeps the end of what is written to it.
type tail struct {
	mutex   sync.Mutex
	content []byte
}

// Write never fails.
func (t *tail) Write(more []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.content = append(t.content, more...)
	if len(t.content) > 2*mostOutput {
		t.content = bytes.Clone(t.content[len(t.content)-mostOutput:])
	}
	return len(more), nil
}

func (t *tail) text() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.content)
}

// last are the last lines that have something in them.
func (t *tail) last(count int) string {
	var lines []string
	for line := range strings.Lines(t.text()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
