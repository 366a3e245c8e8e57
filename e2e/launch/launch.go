// Package launch builds the tandem binary and starts real servers and workers
// as processes, for the end-to-end tests and the benchmarks. It knows the
// command line and nothing behind it.
package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a process may take to start or to end.
const patience = 5 * time.Minute

// Build compiles tandem into the folder and returns the binary's path.
func Build(ctx context.Context, folder string) (string, error) {
	return build(ctx, filepath.Join(folder, "tandem"), "")
}

// BuildForBoards is Build of the smaller tandem for boards.
func BuildForBoards(ctx context.Context, folder string) (string, error) {
	return build(ctx, filepath.Join(folder, "tandem-edge"), "/edge")
}

// BuildClient is Build of the tandem for machines without Linux, for this one.
func BuildClient(ctx context.Context, folder string) (string, error) {
	return build(ctx, filepath.Join(folder, "tandem-client"), "", "-tags", "client")
}

// BuildForTests is Build for a tandem that can be told where to break (see package
// failpoint), and that believes to be in a confidential machine where a test is the
// processor.
func BuildForTests(ctx context.Context, folder string) (string, error) {
	return build(ctx, filepath.Join(folder, "tandem-for-tests"), "", "-tags", "fakeenclave,failpoints")
}

func build(ctx context.Context, binary, folder string, flags ...string) (string, error) {
	args := append(append([]string{"build"}, flags...), "-o", binary, "github.com/tandem-tune/tandem/cmd/tandem"+folder)
	build := exec.CommandContext(ctx, "go", args...)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tandem: %w\n%s", err, output)
	}
	return binary, nil
}

// Process is a started tandem. Its output is kept.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error
	output  *record
}

// Start runs the command line. The environment is this process's with the
// variables on top; the process group is its own.
func Start(binary string, environment []string, args ...string) (*Process, error) {
	p := &Process{command: exec.Command(binary, args...), ended: make(chan struct{}), output: &record{}}
	p.command.Env = append(os.Environ(), environment...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Output is what it has printed so far.
func (p *Process) Output() string { return p.output.String() }

// Kill ends it as a power cut would: SIGKILL, to it alone.
func (p *Process) Kill() {
	p.command.Process.Kill() //nolint:errcheck // it may have ended already
	<-p.ended
}

// Stop asks it to end (SIGTERM) and waits; it kills one that does not.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		<-p.ended
		return p.err
	}
	return p.Wait(patience)
}

// Ended reports whether it has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Wait waits for its end. One that takes longer is killed.
func (p *Process) Wait(longest time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(longest):
		p.Kill()
		return fmt.Errorf("it was still running after %v:\n%s", longest, p.Output())
	}
}

// Server is a running "tandem serve".
type Server struct {
	*Process
	URL string
	// Token is the admin token of a new data folder; empty at later starts.
	Token string
}

// Serve starts a server on the data folder and waits until it answers.
func Serve(binary, data string, args ...string) (*Server, error) {
	return serve(nil, nil, binary, data, args)
}

// ServeIn is Serve with further variables in the environment.
func ServeIn(environment []string, binary, data string, args ...string) (*Server, error) {
	return serve(nil, environment, binary, data, args)
}

// ServeBy is Serve where the server is run by another command, such as one that
// enters a namespace.
func ServeBy(by []string, binary, data string, args ...string) (*Server, error) {
	return serve(by, nil, binary, data, args)
}

func serve(by, environment []string, binary, data string, args []string) (*Server, error) {
	line := append(slices.Clone(by), binary, "serve", "--data", data, "--listen", "127.0.0.1:0")
	line = append(line, args...)
	process, err := Start(line[0], environment, line[1:]...)
	if err != nil {
		return nil, err
	}
	server := &Server{Process: process}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if server.read(); server.URL != "" {
			return server, nil
		}
		select {
		case <-process.ended:
			return nil, fmt.Errorf("the server ended: %w\n%s", process.err, process.Output())
		default:
		}
	}
	process.Kill()
	return nil, fmt.Errorf("the server did not start:\n%s", process.Output())
}

// read finds the address and the token in the greeting, once it is whole.
func (s *Server) read() {
	output := s.Output()
	_, rest, found := strings.Cut(output, "Tandem answers at ")
	if !found || !strings.HasSuffix(output, "\n") {
		return
	}
	if _, token, first := strings.Cut(rest, "export TANDEM_TOKEN="); first {
		token, _, _ = strings.Cut(token, "\n")
		if !strings.Contains(rest, "More tokens") {
			return
		}
		s.Token = strings.TrimSpace(token)
	}
	s.URL, _, _ = strings.Cut(rest, ",")
}

// record keeps output that is written and read at the same time.
type record struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (r *record) Write(data []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.Write(data)
}

func (r *record) String() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.String()
}

// Lines reads a file a script appends to, without its unfinished last line. A
// file that is not there yet has none.
func Lines(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	var lines []string
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if err == io.EOF {
			return lines
		}
		if err != nil {
			return nil
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}
