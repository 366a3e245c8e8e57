package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// ErrNoPostgreSQL says that there is no PostgreSQL server to start here.
var ErrNoPostgreSQL = errors.New("no PostgreSQL server can be started here")

// Database is a PostgreSQL server of its own, which listens on a socket in its
// folder and on no network.
type Database struct {
	folder, binaries string
	credential       *syscall.Credential
	server           *exec.Cmd
	ended            chan struct{}
	log              bytes.Buffer
}

// NewDatabase makes a database cluster in a new folder and starts its server.
// The error is ErrNoPostgreSQL where the programs for it are not installed.
func NewDatabase(ctx context.Context) (*Database, error) {
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	d := &Database{binaries: binaries}
	if d.credential, err = otherThanRoot(); err != nil {
		return nil, err
	}
	if d.folder, err = os.MkdirTemp("", "tandem-pg-"); err != nil {
		return nil, err
	}
	if d.credential != nil {
		err = os.Chown(d.folder, int(d.credential.Uid), int(d.credential.Gid))
	}
	if err == nil {
		err = d.run(ctx, "initdb", "--pgdata", d.data(), "--username", "tandem", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync", "--data-checksums")
	}
	if err == nil {
		err = d.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

// postgresBinaries finds the newest server: Debian keeps them out of the PATH.
func postgresBinaries() (string, error) {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(folder string) int {
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return number
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			folders = append([]string{filepath.Dir(path)}, folders...)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%w: initdb and postgres are not installed (Debian: apt-get install postgresql)", ErrNoPostgreSQL)
}

// otherThanRoot is the user a server is started as by root, which PostgreSQL
// does not run as; nil for everybody else.
func otherThanRoot() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%w: root may not start one, and there is no user postgres or nobody", ErrNoPostgreSQL)
}

// File is where it keeps what pg_relation_filepath names.
func (d *Database) File(path string) string { return filepath.Join(d.data(), path) }

func (d *Database) data() string { return filepath.Join(d.folder, "data") }

// command is one of PostgreSQL's programs, as the user it runs as.
func (d *Database) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(d.binaries, name), args...)
	command.Dir = d.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: d.credential, Pdeathsig: syscall.SIGKILL}
	return command
}

func (d *Database) run(ctx context.Context, name string, args ...string) error {
	if output, err := d.command(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}

// Start starts the server and waits until it takes connections.
func (d *Database) Start(ctx context.Context) error {
	d.server = d.command(context.WithoutCancel(ctx), "postgres", "-D", d.data(), "-c", "listen_addresses=", "-c", "unix_socket_directories="+d.folder,
		"-c", "max_connections=300", "-c", "shared_buffers=32MB", "-c", "log_min_messages=fatal")
	d.server.Stdout, d.server.Stderr = &d.log, &d.log
	if err := d.server.Start(); err != nil {
		return err
	}
	d.ended = make(chan struct{})
	go func(server *exec.Cmd, ended chan struct{}) {
		_ = server.Wait() // how it ended does not matter to anybody
		close(ended)
	}(d.server, d.ended)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := d.run(ctx, "pg_isready", "--quiet", "--host", d.folder, "--username", "tandem", "--dbname", "postgres")
		if err == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("the database server ended:\n%s", d.log.String())
		default:
		}
		if time.Now().After(deadline) {
			d.Stop()
			return fmt.Errorf("the database server does not answer: %w\n%s", err, d.log.String())
		}
	}
}

// Stop ends the server at once, as a crash would: no transaction is ended, and
// the next start recovers from the log. (PostgreSQL's immediate shutdown.)
func (d *Database) Stop() {
	if d.server == nil {
		return
	}
	select {
	case <-d.ended:
		return
	default:
	}
	d.server.Process.Signal(syscall.SIGQUIT) //nolint:errcheck // it may have ended already
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.server.Process.Kill() //nolint:errcheck // it may have ended already
		<-d.ended
	}
}

// Create makes an empty database and returns its address.
func (d *Database) Create(ctx context.Context, name string) (string, error) {
	if err := d.run(ctx, "createdb", "--host", d.folder, "--username", "tandem", "--template", "template0", name); err != nil {
		return "", err
	}
	return d.URL(name), nil
}

// URL is the address of one of its databases.
func (d *Database) URL(name string) string {
	address := url.URL{Scheme: "postgres", User: url.User("tandem"), Path: "/" + name, RawQuery: url.Values{"host": {d.folder}}.Encode()}
	return address.String()
}

// Socket is the file by which it is reached.
func (d *Database) Socket() string { return filepath.Join(d.folder, ".s.PGSQL.5432") }

// Remove ends the server and removes its folder.
func (d *Database) Remove() error {
	d.Stop()
	return os.RemoveAll(d.folder)
}
