// Package script is the protocol between a training script and the worker: variables,
// calls on a unix socket, and lines of standard output.
package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const (
	headerPatience = 5 * time.Second
	largestBody    = 1 << 20
	// largestModel bounds the file of a model: the most that the format allows.
	largestModel = 2 << 30
)

// Calls are what a script may ask of its run.
type Calls interface {
	// Admit refuses a call of a process that is not the run's; 0 is an unknown one.
	Admit(ctx context.Context, pid int) error
	// Called notes that the script has a client. The error says that the run is over.
	Called() error
	Trial() Trial
	Directive() protocol.Directive
	// Begin marks the start of training with the epoch.
	Begin(epoch int) error
	Report(said Outcome) (protocol.Directive, error)
	// Checkpoint publishes the checkpoint folder as the state after the epoch. It need not
	// wait for that if there is another epoch.
	Checkpoint(epoch int, wait bool) (Checkpoint, error)
	// Artifact keeps a file with the trial.
	Artifact(name string, body io.Reader) error
	// Next ends the run; nil: there is no other for this process.
	Next() *Asking
	// Model takes the model that the script trains.
	Model(body io.Reader) error
	// ModelIn takes the trained model in a precision; more: it is not the last one.
	ModelIn(body io.Reader, said trial.Precision, more bool) error
}

// Socket serves one run's script: HTTP and JSON on a unix socket in a folder
// only this user can enter, so it asks for no token.
type Socket struct {
	server *http.Server
	done   sync.WaitGroup
}

// Listen serves the calls on a socket at the path until it is closed.
func Listen(path string, calls Calls) (*Socket, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the script's socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s := &Socket{server: &http.Server{
		ConnContext: withPeer,
		Handler:     handler{calls}.routes(), ReadHeaderTimeout: headerPatience, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // a script that hangs up is no news
	}}
	s.done.Go(func() { _ = s.server.Serve(listener) }) // returns when it is closed
	return s, nil
}

// Close hangs up on everybody: the script has ended.
func (s *Socket) Close() {
	_ = s.server.Close() // nothing can be done about a socket that does not close
	s.done.Wait()
}

// peer is the key of a connection's process in the context of its requests.
type peer struct{}

// withPeer notes which process is at the other end of a connection.
func withPeer(ctx context.Context, connection net.Conn) context.Context {
	unixConnection, ok := connection.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := unixConnection.SyscallConn()
	if err != nil {
		return ctx
	}
	_ = raw.Control(func(descriptor uintptr) { // fails when it is closed, and then nobody asks
		if pid, known := peerOf(int(descriptor)); known {
			ctx = context.WithValue(ctx, peer{}, pid)
		}
	})
	return ctx
}
