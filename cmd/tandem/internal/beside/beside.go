// Package beside lets a server answer programs of its own user on its own machine, by a
// socket in its data folder: who may read that folder may do everything anyway.
package beside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Where the server answers: the socket in a folder of the data folder.
const (
	Folder = "local"
	Socket = "server.sock"
	// Time bounds a request.
	Time = 10 * time.Second
)

// ErrNone tells that no server answers in a data folder.
var ErrNone = errors.New("no server answers in this data folder")

// Server answers the user that it runs as, and root, in a data folder.
type Server struct {
	http   *http.Server
	folder *os.File
	ended  chan struct{}
	// cancel ends the requests that are open, such as sessions.
	cancel context.CancelFunc
}

// openLocal answers in the data folder. What a server left there that was killed
// is removed; the data are this server's alone.
func Open(data string, handler http.Handler) (*Server, error) {
	folder, err := openPrivate(filepath.Join(data, Folder), true)
	if err != nil {
		return nil, err
	}
	listener, err := listenIn(folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	open, cancel := context.WithCancel(context.Background())
	l := &Server{folder: folder, ended: make(chan struct{}), cancel: cancel, http: &http.Server{
		Handler: handler, ReadTimeout: Time, WriteTimeout: 2 * Time, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return open },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, peerKey{}, c) },
	}}
	go func() {
		defer close(l.ended)
		_ = l.http.Serve(peers{listener}) // it ends when it is closed
	}()
	return l, nil
}

// Close ends it with all requests that are open, and removes the socket.
func (l *Server) Close(ctx context.Context) error {
	l.cancel()
	err := l.http.Shutdown(ctx)
	if err != nil {
		err = l.http.Close()
	}
	<-l.ended
	return errors.Join(err, l.folder.Close())
}

// openPrivate opens a folder; one of our own is made, and made its user's alone.
func openPrivate(path string, own bool) (*os.File, error) {
	if own {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	folder, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil || !own {
		return folder, err
	}
	about, err := folder.Stat()
	if owner, known := ownerOf(about); err == nil && (!known || owner != os.Geteuid()) {
		err = fmt.Errorf("%s belongs to another user: remove it", path)
	}
	if err == nil {
		err = folder.Chmod(0o700)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

func ownerOf(about fs.FileInfo) (int, bool) {
	if about == nil {
		return 0, false
	}
	stat, ok := about.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// inside is the socket's path by way of the open folder: a socket's own may have
// 107 bytes only, however deep the data folder is.
func inside(folder *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), Socket)
}

func listenIn(folder *os.File) (*net.UnixListener, error) {
	path := inside(folder)
	if about, err := os.Lstat(path); err == nil {
		if about.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s is no socket: remove it", filepath.Join(folder.Name(), Socket))
		}
		if other, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("another server answers at %s", filepath.Join(folder.Name(), Socket)), other.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Asker is the process that a request of the socket is from; false: it is not known.
func Asker(r *http.Request) (unix.Ucred, bool) {
	from, known := r.Context().Value(peerKey{}).(peer)
	return from.process, known
}

// Dial connects to the server of a data folder; the error is [ErrNone] if none answers there.
func Dial(ctx context.Context, data string) (net.Conn, error) {
	folder, err := openPrivate(filepath.Join(data, Folder), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err == nil {
		defer folder.Close()
		var connection net.Conn
		connection, err = (&net.Dialer{}).DialContext(ctx, "unix", inside(folder))
		if err == nil {
			return connection, nil
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	return nil, fmt.Errorf("ask the server in %s: %w: be the user that it runs as, or root", data, err)
}

// peerKey is the context key of a request's connection.
type peerKey struct{}

// peers lets in whoever could read the data folder anyway.
type peers struct{ *net.UnixListener }

// peer is a connection of a process that is known.
type peer struct {
	net.Conn
	process unix.Ucred
}

// Accept returns the next connection of the server's own user or root. The kernel
// says whose it is.
func (p peers) Accept() (net.Conn, error) {
	for {
		accepted, err := p.AcceptUnix()
		if err != nil {
			return nil, err
		}
		process, err := processOf(accepted)
		if err == nil && mayAsk(int(process.Uid), os.Geteuid()) {
			return peer{accepted, *process}, nil
		}
		_ = accepted.Close()
	}
}

// mayAsk reports whether the user's processes may make tokens of the owner's server.
func mayAsk(user, owner int) bool { return user == owner || user == 0 }

func processOf(connection *net.UnixConn) (process *unix.Ucred, err error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(descriptor uintptr) {
		process, err = unix.GetsockoptUcred(int(descriptor), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return process, errors.Join(err, failed)
}
