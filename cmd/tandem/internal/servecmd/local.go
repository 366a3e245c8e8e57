package servecmd

import (
	"context"
	"encoding/json"
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

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// Where a server answers who may read its data folder anyway: in that folder.
const (
	localFolder = "local"
	localSocket = "server.sock"
	localTokens = "/api/v1/tokens"
	// localSessions answers with the server's address and an admin token, which is
	// valid until who asked hangs up.
	localSessions = "/api/v1/sessions"
	// localTime bounds a request, and maxLocal its body.
	localTime = 10 * time.Second
	maxLocal  = 64 << 10
)

// errNoLocal tells that no server answers in a data folder.
var errNoLocal = errors.New("no server answers in this data folder")

// localServer makes tokens for the user that the server runs as, and for root, while
// the server has its data.
type localServer struct {
	http   *http.Server
	folder *os.File
	ended  chan struct{}
	// cancel ends the requests that are open, such as sessions.
	cancel context.CancelFunc
}

// openLocal answers in the data folder. What a server left there that was killed
// is removed; the data are this server's alone.
func openLocal(data string, handler http.Handler) (*localServer, error) {
	folder, err := openPrivate(filepath.Join(data, localFolder), true)
	if err != nil {
		return nil, err
	}
	listener, err := listenIn(folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	open, cancel := context.WithCancel(context.Background())
	l := &localServer{folder: folder, ended: make(chan struct{}), cancel: cancel, http: &http.Server{
		Handler: handler, ReadTimeout: localTime, WriteTimeout: 2 * localTime, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return open },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, peerKey{}, c) },
	}}
	go func() {
		defer close(l.ended)
		_ = l.http.Serve(peers{listener}) // it ends when it is closed
	}()
	return l, nil
}

// close ends it, and removes the socket.
func (l *localServer) close(ctx context.Context) error {
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
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), localSocket)
}

func listenIn(folder *os.File) (*net.UnixListener, error) {
	path := inside(folder)
	if about, err := os.Lstat(path); err == nil {
		if about.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s is no socket: remove it", filepath.Join(folder.Name(), localSocket))
		}
		if other, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("another server answers at %s", filepath.Join(folder.Name(), localSocket)), other.Close())
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

// answerLocally makes tokens for who owns the data folder; where that cannot be
// done, the server does without.
func (s *server) answerLocally() {
	var err error
	if s.local, err = openLocal(s.process.options.Data, s.localHandler()); err != nil {
		s.process.options.Logger.Warn("tokens cannot be made beside this server, without a token", "error", err)
	}
}

// localHandler makes tokens and sessions, and nothing else.
func (s *server) localHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := error(problem.New(problem.NotFound, "only tokens and sessions are made here"))
		if from, known := r.Context().Value(peerKey{}).(peer); known && r.Method == http.MethodPost {
			by := maker{who: fmt.Sprintf("user %d on the server's machine", from.process.Uid), from: fmt.Sprintf("process %d", from.process.Pid)}
			switch r.URL.Path {
			case localTokens:
				err = s.tokenBeside(w, r, by)
			case localSessions:
				err = s.session(w, r, by)
			}
		}
		if err != nil {
			refuseLocal(w, err)
		}
	})
}

// tokenBeside makes a token. An error was not answered yet.
func (s *server) tokenBeside(w http.ResponseWriter, r *http.Request, by maker) error {
	var ask protocol.TokenRequest
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLocal))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&ask); err != nil {
		return problem.New(problem.Invalid, "this is no request for a token: %w", err)
	}
	request, err := requestOf(ask)
	if err != nil {
		return err
	}
	secret, token, err := issueLogged(r.Context(), s.store, s.audit, request, by)
	if err != nil {
		s.process.options.Logger.Error("make a token", "error", err)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(issuedOf(secret, token)) // who hung up has no token
	return nil
}

// refuseLocal answers with a problem document, as the client reads it.
func refuseLocal(w http.ResponseWriter, err error) {
	told := &problem.Error{Code: problem.Internal, Detail: "the server failed on this request: its log says why"}
	errors.As(err, &told)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(protocol.StatusOf(told.Code))
	_ = json.NewEncoder(w).Encode(map[string]any{"code": told.Code, "detail": told.Detail, "errors": told.Fields})
}

// createTokenBeside has the server make a token that has the data folder now; the
// error is errNoLocal if none has.
func createTokenBeside(ctx context.Context, data string, ask protocol.TokenRequest) (protocol.IssuedToken, error) {
	folder, err := openPrivate(filepath.Join(data, localFolder), false)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.IssuedToken{}, errNoLocal
	}
	if err != nil {
		return protocol.IssuedToken{}, fmt.Errorf("ask the server in %s: %w: be the user that it runs as, or root", data, err)
	}
	defer folder.Close()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", inside(folder))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return protocol.IssuedToken{}, errNoLocal
	case err != nil:
		return protocol.IssuedToken{}, fmt.Errorf("ask the server in %s: %w: be the user that it runs as, or root", data, err)
	}
	defer connection.Close()
	client, err := rest.New(rest.Options{URL: "http://localhost", Patience: -1, UserAgent: "tandem/" + term.Version(), HTTPClient: &http.Client{
		Timeout:   2 * localTime,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil }},
	}})
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	return client.CreateToken(ctx, ask)
}

// requestOf is what a token is made from.
func requestOf(ask protocol.TokenRequest) (auth.Request, error) {
	if !(ask.TTLSeconds >= 0 && ask.TTLSeconds <= maxTokenSeconds) {
		return auth.Request{}, problem.WithFields("the token is not valid", []problem.Field{{Path: "ttl_seconds", Value: ask.TTLSeconds, Message: "must be from 0, for a token that never expires, to ten years"}})
	}
	return auth.Request{Name: ask.Name, Scope: auth.Scope(ask.Scope), Worker: ask.Worker, Life: time.Duration(ask.TTLSeconds * float64(time.Second))}, nil
}

// maxTokenSeconds is the longest that a token may live that ends.
const maxTokenSeconds = 10 * 365 * 24 * 60 * 60

// issuedOf is a token as who asked for it is shown it, this once.
func issuedOf(secret string, token auth.Token) protocol.IssuedToken {
	return protocol.IssuedToken{Token: secret, TokenView: protocol.TokenView{
		ID: token.ID, Name: token.Name, Scope: string(token.Scope), Worker: token.Worker, Created: token.Created, Expires: token.Expires,
	}}
}
