// Package servertest starts a real server as a process, for the tests of this module:
// the binary that TANDEM_BINARY names, or one that is built.
package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a server may take to start.
const patience = 5 * time.Minute

// Server is a running "tandem serve".
type Server struct {
	URL, Token string
	// Binary is what was started, Folder a folder of its own.
	Binary, Folder string
	command        *exec.Cmd
	printed        *record
	ended          chan struct{}
}

// Start starts a server with a new data folder, which Stop removes.
func Start(arguments ...string) (*Server, error) {
	folder, err := os.MkdirTemp("", "tandem-go-")
	if err != nil {
		return nil, err
	}
	s := &Server{Folder: folder, Binary: os.Getenv("TANDEM_BINARY")}
	if s.Binary == "" {
		s.Binary = filepath.Join(folder, "tandem")
		if err := build(s.Binary); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		if err := os.Setenv("TANDEM_BINARY", s.Binary); err != nil { // for what else this process starts
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
	}
	if err := s.Again("127.0.0.1:0", arguments...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

// Again starts it on its data folder once more, after Kill.
func (s *Server) Again(listen string, arguments ...string) error {
	s.printed, s.ended = &record{}, make(chan struct{})
	s.command = exec.Command(s.Binary, append([]string{"serve", "--data", filepath.Join(s.Folder, "data"), "--listen", listen}, arguments...)...)
	s.command.Stdout, s.command.Stderr = s.printed, s.printed
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return err
	}
	command, ended := s.command, s.ended
	go func() {
		_ = command.Wait() //nolint:errcheck // what it printed says more
		close(ended)
	}()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.greeted() {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the server ended:\n%s", s.printed)
		default:
		}
	}
	return errors.Join(fmt.Errorf("the server did not start:\n%s", s.printed), s.command.Process.Kill())
}

// greeted finds the address and, at the first start, the token.
func (s *Server) greeted() bool {
	_, rest, found := strings.Cut(s.printed.String(), "Tandem answers at ")
	if !found || !strings.HasSuffix(rest, "\n") {
		return false
	}
	if _, token, has := strings.Cut(rest, "export TANDEM_TOKEN="); has {
		if !strings.Contains(rest, "More tokens") {
			return false
		}
		token, _, _ = strings.Cut(token, "\n")
		s.Token = strings.TrimSpace(token)
	}
	s.URL, _, _ = strings.Cut(rest, ",")
	return s.Token != ""
}

// Kill ends it as a power cut would.
func (s *Server) Kill() error {
	err := s.command.Process.Kill()
	<-s.ended
	return err
}

// Stop ends it and removes its folder.
func (s *Server) Stop() error {
	return errors.Join(s.Kill(), os.RemoveAll(s.Folder))
}

func build(binary string) error {
	root, err := filepath.Abs(".")
	for ; err == nil && root != "/"; root = filepath.Dir(root) {
		if module, failed := os.ReadFile(filepath.Join(root, "go.mod")); failed == nil && strings.HasPrefix(string(module), "module github.com/tandem-tune/tandem\n") {
			break
		}
	}
	command := exec.Command("go", "build", "-o", binary, "./cmd/tandem")
	command.Dir = root
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build tandem: %w\n%s", err, said)
	}
	return err
}

// record keeps output that is written and read at the same time.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(data)
}

// String is what was printed so far.
func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// Main runs a package's tests with one server, which the variables TANDEM_SERVER and
// TANDEM_TOKEN name as a user's do, and ends the process. Started is told of the server.
func Main(tests interface{ Run() int }, started func(*Server)) {
	server, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{"TANDEM_SERVER": server.URL, "TANDEM_TOKEN": server.Token} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	started(server)
	code := tests.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
