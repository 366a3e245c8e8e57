package servecmd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/beside"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/backup"
	"github.com/tandem-tune/tandem/store/filesystem"
	"github.com/tandem-tune/tandem/store/postgres"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study/tariff"
	"github.com/tandem-tune/tandem/study/upload"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/certificate"
	"github.com/tandem-tune/tandem/web/limit"
	"github.com/tandem-tune/tandem/web/monitoring"
	"github.com/tandem-tune/tandem/web/standby"
)

// Options are the flags that make a server.
type Options struct {
	// Listen is the address to answer on. With Elsewhere any port of this machine will do
	// where it is taken.
	Listen    string
	Elsewhere bool
	// Data is the folder that holds everything the server knows.
	Data             string
	leaseSeconds     float64
	heartbeatSeconds float64
	allowedHosts     []string
	allowNetworkDisk bool
	database         databaseOptions
	bucket           bucketOptions
	tls              tlsOptions
	maxConnections   int
	trustedProxies   []string
	limits           limit.PerSecond
	openMetrics      bool
	similarity       string
	prices, carbon   string
	pool             poolOptions
	hooks            hookOptions
	oidc             oidcOptions
	signIn           api.SignIn // of oidc
	// Logger takes what the server logs.
	Logger *slog.Logger
}

// tariff reads the files of prices and of carbon intensities; nil: there are none.
func (o Options) tariff() (*tariff.Tariff, error) {
	var content [2][]byte
	for i, name := range []string{o.prices, o.carbon} {
		if name == "" {
			continue
		}
		var err error
		if content[i], err = os.ReadFile(name); err != nil {
			return nil, term.Misuse("%s: %w", []string{"--prices", "--carbon"}[i], err)
		}
	}
	if content[0] == nil && content[1] == nil {
		return nil, nil
	}
	return tariff.Read(content[0], content[1])
}

// check refuses flags that cannot be meant: a timing under which workers that are
// well lose their trials, a database that there cannot be, and tokens in plain
// text on a network.
func (o Options) check() error {
	if err := checkListen(o.Listen); err != nil {
		return err
	}
	if err := o.database.check(); err != nil {
		return err
	}
	if err := o.tls.check(o.Listen, o.database.chosen()); err != nil {
		return err
	}
	if err := o.pool.check(); err != nil {
		return err
	}
	if _, err := similarity.ParseGrouping(o.similarity); err != nil {
		return term.Misuse("--similarity: %w", err)
	}
	if _, err := o.tariff(); err != nil {
		return err
	}
	if _, err := o.proxies(); err != nil {
		return err
	}
	if _, err := o.hooks.allowed(); err != nil {
		return err
	}
	if _, err := o.hooks.mail.read(); err != nil {
		return err
	}
	if o.maxConnections < 1 || o.limits.Requests < 0 {
		return term.Misuse("--max-connections (%d) must be at least 1, and --requests-per-second (%g) at least 0, which bounds nothing", o.maxConnections, o.limits.Requests)
	}
	if o.heartbeatSeconds > 0 && o.heartbeatSeconds <= o.leaseSeconds/2 && o.leaseSeconds <= maxLeaseSeconds {
		return nil
	}
	return term.Misuse("--heartbeat-seconds (%g) must be above 0 and at most half of --lease-seconds (%g), so that one heartbeat may be lost; a lease lasts at most a day",
		o.heartbeatSeconds, o.leaseSeconds)
}

// Process is everything one server process runs.
type Process struct {
	options     Options
	listener    net.Listener
	http        *http.Server
	switchboard switchboard
	// server is what this server does as the owner of its data; nil while another
	// one owns the database that they share.
	server atomic.Pointer[server]
	// database is what several servers share, and standby passes requests on to
	// the one that owns it; nil: this server has a data folder of its own.
	database *postgres.Database
	standby  *standby.Server
	bounded  *limit.Listener // below the listener's TLS
	// ending is set when the server drains.
	ending atomic.Bool
	// certificates are what the server shows; nil: it speaks plain HTTP. own is
	// the same where the server makes them itself.
	certificates certificate.Source
	own          *certificate.Own
	monitor      *monitoring.Monitor
	users        beside.Users
}

// Housekeeping intervals.
const (
	tickEvery  = time.Second
	learnEvery = 10 * time.Second
	sweepEvery = time.Minute
	// artifactGrace is how long an upload may wait for its commit.
	artifactGrace = upload.Life + 5*time.Minute
	receiptLife   = 24 * time.Hour
	// DrainTime is how long a server has to answer open requests when it ends.
	DrainTime = 10 * time.Second
	// maxLeaseSeconds bounds how long a vanished worker's trials may wait.
	maxLeaseSeconds = 24 * 60 * 60
)

// Open opens the data, recovers what was running and listens. A data
// folder belongs to one server at a time; a server on a database that has an
// owner stands by.
func Open(ctx context.Context, options Options) (*Process, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	tuneCollector()
	signIn, err := options.oidc.provider()
	if err != nil {
		return nil, err
	}
	options.signIn = signIn
	p := &Process{options: options}
	p.monitor = monitoring.New(monitoring.Options{Version: term.Version(), State: p.state, Logger: options.Logger})
	open := p.openFolder
	if options.database.chosen() {
		open = p.openDatabase
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	p.http = api.NewHTTPServer(options.Listen, inTurns(&p.switchboard), options.Logger)
	return p, nil
}

// openFolder opens the data folder and listens.
func (p *Process) openFolder(ctx context.Context) error {
	s, err := p.openData(ctx)
	if err != nil {
		return filesystem.Explain(p.options.Data, err)
	}
	if err := p.listen(); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.answerLocally()
	p.server.Store(s)
	p.switchboard.connect(s.handler())
	return nil
}

// openData opens what is in the data folder.
func (p *Process) openData(ctx context.Context) (*server, error) {
	data := p.options.Data
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(data, "tandem.db"), sqlite.Options{AllowNetworkFilesystem: p.options.allowNetworkDisk})
	if err != nil {
		return nil, err
	}
	folder, err := artifact.Open(filepath.Join(data, backup.Artifacts))
	var kept artifacts
	if err == nil {
		kept, err = p.options.place(ctx, folder)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	s := &server{process: p, store: store, artifacts: kept}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

func (p *Process) listen() (err error) {
	p.listener, err = net.Listen("tcp", p.options.Listen)
	if p.options.Elsewhere && errors.Is(err, syscall.EADDRINUSE) {
		p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("--listen %s: write HOST:PORT with a free port, such as 127.0.0.1:7171: %w", p.options.Listen, err)
	}
	p.bound()
	if err := p.encrypt(p.hosts()); err != nil {
		return errors.Join(err, p.listener.Close())
	}
	return nil
}

// hosts are the names under which the server may be addressed.
func (p *Process) hosts() []string {
	host, _, err := net.SplitHostPort(p.listener.Addr().String())
	if err != nil {
		return p.options.allowedHosts
	}
	if advertised, err := url.Parse(p.options.database.advertise); err == nil && advertised.Hostname() != "" {
		return append([]string{host, advertised.Hostname()}, p.options.allowedHosts...)
	}
	return append([]string{host}, p.options.allowedHosts...)
}

// URL is where the server answers. One that answers on all addresses is named as --allow-host
// says, else as this machine's programs reach it.
func (p *Process) URL() string {
	scheme := "http"
	if p.certificates != nil {
		scheme = "https"
	}
	address := p.listener.Addr().String()
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		names := append(slices.Clone(p.options.allowedHosts), "localhost")
		address = net.JoinHostPort(names[0], strconv.Itoa(int(at.Port())))
	}
	return scheme + "://" + address
}

func random() uint64 {
	var bits [8]byte
	rand.Read(bits[:]) //nolint:errcheck // crypto/rand.Read never fails (Go 1.24)
	return binary.LittleEndian.Uint64(bits[:])
}

// Serve answers until the context ends or the store can no longer be trusted,
// then drains: open requests end, searches are stored. A server on a database
// that others share goes on as one that stands by instead.
func (p *Process) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	p.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var background sync.WaitGroup
	background.Go(func() {
		if err := p.http.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
			cancel()
		}
	})
	err := p.work(ctx)
	select {
	case late := <-failed:
		err = errors.Join(err, late)
	default:
	}
	p.ending.Store(true)
	cancel() // ends long polls and event streams, so that the drain is quick
	drain, stop := context.WithTimeout(context.Background(), DrainTime)
	defer stop()
	if late := p.http.Shutdown(drain); late != nil {
		p.options.Logger.Warn("some requests did not end and were cut off", "error", late)
		err = errors.Join(err, p.http.Close())
	}
	background.Wait()
	closing, stop := context.WithTimeout(context.Background(), DrainTime)
	defer stop()
	return errors.Join(err, p.Close(closing))
}

// work does what time makes due, until the context ends or the data folder
// fails.
func (p *Process) work(ctx context.Context) error {
	if p.database != nil {
		p.share(ctx)
		return nil
	}
	s := p.server.Load()
	s.housekeep(ctx)
	if ctx.Err() == nil {
		return fmt.Errorf("the store failed, so nothing more is acknowledged: %w", s.store.Err())
	}
	return nil
}

// Close stores the searches and gives the data back.
func (p *Process) Close(ctx context.Context) error {
	var err error
	if s := p.server.Load(); s != nil {
		err = s.close(ctx)
	}
	if p.database != nil {
		p.database.Close()
	}
	if p.listener != nil {
		if closed := p.listener.Close(); !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}
	return err
}

// firstToken makes the admin token of data that has none for good; empty when
// there is one already, or another server owns the data.
func (p *Process) firstToken(ctx context.Context) (string, error) {
	if s := p.server.Load(); s != nil {
		return s.firstToken(ctx)
	}
	return "", nil
}

// place says where the data is.
func (p *Process) place() string {
	switch {
	case p.database == nil:
		return p.options.Data
	case p.server.Load() == nil:
		return "the database " + p.database.Place() + "; another server owns it, and this one stands by"
	}
	return "the database " + p.database.Place()
}
