package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/filesystem"
	"github.com/tandem-tune/tandem/store/postgres"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/certificate"
	"github.com/tandem-tune/tandem/web/limit"
	"github.com/tandem-tune/tandem/web/monitoring"
)

// serverOptions are the flags that make a server.
type serverOptions struct {
	listen           string
	data             string
	leaseSeconds     float64
	heartbeatSeconds float64
	allowedHosts     []string
	allowNetworkDisk bool
	database         databaseOptions
	tls              tlsOptions
	maxConnections   int
	trustedProxies   []string
	limits           api.Limits
	openMetrics      bool
	similarity       string
	pool             poolOptions
	logger           *slog.Logger
}

// check refuses flags that cannot be meant: a timing under which workers that are
// well lose their trials, a database that there cannot be, and tokens in plain
// text on a network.
func (o serverOptions) check() error {
	if err := o.database.check(); err != nil {
		return err
	}
	if err := o.tls.check(o.listen, o.database.chosen()); err != nil {
		return err
	}
	if err := o.pool.check(); err != nil {
		return err
	}
	if _, err := similarity.ParseGrouping(o.similarity); err != nil {
		return term.Misuse("--similarity: %w", err)
	}
	if _, err := o.proxies(); err != nil {
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

// server is everything one server process runs.
type server struct {
	options     serverOptions
	listener    net.Listener
	http        *http.Server
	switchboard switchboard
	// office is what this server does as the owner of its data; nil while another
	// one owns the database that they share.
	office atomic.Pointer[office]
	// database is what several servers share, and standby passes requests on to
	// the one that owns it; nil: this server has a data folder of its own.
	database *postgres.Database
	standby  *api.Standby
	bounded  *limit.Listener // below the listener's TLS
	// ending is set when the server drains.
	ending atomic.Bool
	// certificates are what the server shows; nil: it speaks plain HTTP. own is
	// the same where the server makes them itself.
	certificates certificate.Source
	own          *certificate.Own
	monitor      *monitoring.Monitor
}

// Housekeeping intervals.
const (
	tickEvery  = time.Second
	learnEvery = 10 * time.Second
	sweepEvery = time.Minute
	// artifactGrace is how long an upload may wait for its commit.
	artifactGrace = study.UploadLife + 5*time.Minute
	receiptLife   = 24 * time.Hour
	drainTime     = 10 * time.Second
	// maxLeaseSeconds bounds how long a vanished worker's trials may wait.
	maxLeaseSeconds = 24 * 60 * 60
)

// openServer opens the data, recovers what was running and listens. A data
// folder belongs to one server at a time; a server on a database that has an
// owner stands by.
func openServer(ctx context.Context, options serverOptions) (*server, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	tuneCollector()
	s := &server{options: options}
	s.monitor = monitoring.New(monitoring.Options{Version: term.Version(), State: s.state, Logger: options.logger})
	open := s.openFolder
	if options.database.chosen() {
		open = s.openDatabase
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	s.http = api.NewHTTPServer(options.listen, &s.switchboard, options.logger)
	return s, nil
}

// openFolder opens the data folder and listens.
func (s *server) openFolder(ctx context.Context) error {
	o, err := s.openData(ctx)
	if err != nil {
		return filesystem.Explain(s.options.data, err)
	}
	if err := s.listen(); err != nil {
		return errors.Join(err, o.store.Close())
	}
	o.answerLocally()
	s.office.Store(o)
	s.switchboard.connect(o.handler())
	return nil
}

// openData opens what is in the data folder.
func (s *server) openData(ctx context.Context) (*office, error) {
	data := s.options.data
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(data, "tandem.db"), sqlite.Options{AllowNetworkFilesystem: s.options.allowNetworkDisk})
	if err != nil {
		return nil, err
	}
	kept, err := artifact.Open(filepath.Join(data, "artifacts"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the artifact folder: %w", err), store.Close())
	}
	o := &office{server: s, store: store, artifacts: kept}
	if err := o.open(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return o, nil
}

func (s *server) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.options.listen); err != nil {
		return fmt.Errorf("listen on %s: %w", s.options.listen, err)
	}
	s.bound()
	if err := s.encrypt(s.hosts()); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	return nil
}

// tuneCollector trades memory for time: a server's heap is small, mostly, and
// collecting it at Go's default pace takes a sixth of what a request costs. Near
// 2 GiB the pace is as careful as ever. GOGC and GOMEMLIMIT go first.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(2 << 30)
	}
}

// hosts are the names under which the server may be addressed.
func (s *server) hosts() []string {
	host, _, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return s.options.allowedHosts
	}
	if advertised, err := url.Parse(s.options.database.advertise); err == nil && advertised.Hostname() != "" {
		return append([]string{host, advertised.Hostname()}, s.options.allowedHosts...)
	}
	return append([]string{host}, s.options.allowedHosts...)
}

// url is where the server answers.
func (s *server) url() string {
	scheme := "http"
	if s.certificates != nil {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

func random() uint64 {
	var bits [8]byte
	rand.Read(bits[:]) //nolint:errcheck // crypto/rand.Read never fails (Go 1.24)
	return binary.LittleEndian.Uint64(bits[:])
}

// serve answers until the context ends or the store can no longer be trusted,
// then drains: open requests end, searches are stored. A server on a database
// that others share goes on as one that stands by instead.
func (s *server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var background sync.WaitGroup
	background.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
			cancel()
		}
	})
	err := s.work(ctx)
	select {
	case late := <-failed:
		err = errors.Join(err, late)
	default:
	}
	s.ending.Store(true)
	cancel() // ends long polls and event streams, so that the drain is quick
	drain, stop := context.WithTimeout(context.Background(), drainTime)
	defer stop()
	if late := s.http.Shutdown(drain); late != nil {
		s.options.logger.Warn("some requests did not end and were cut off", "error", late)
		err = errors.Join(err, s.http.Close())
	}
	background.Wait()
	closing, stop := context.WithTimeout(context.Background(), drainTime)
	defer stop()
	return errors.Join(err, s.close(closing))
}

// work does what time makes due, until the context ends or the data folder
// fails.
func (s *server) work(ctx context.Context) error {
	if s.database != nil {
		s.share(ctx)
		return nil
	}
	o := s.office.Load()
	o.housekeep(ctx)
	if ctx.Err() == nil {
		return fmt.Errorf("the store failed, so nothing more is acknowledged: %w", o.store.Err())
	}
	return nil
}

// close stores the searches and gives the data back.
func (s *server) close(ctx context.Context) error {
	var err error
	if o := s.office.Load(); o != nil {
		err = o.close(ctx)
	}
	if s.database != nil {
		s.database.Close()
	}
	if s.listener != nil {
		if closed := s.listener.Close(); !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}
	return err
}

// firstToken makes the admin token of data that has none for good; empty when
// there is one already, or another server owns the data.
func (s *server) firstToken(ctx context.Context) (string, error) {
	if o := s.office.Load(); o != nil {
		return o.firstToken(ctx)
	}
	return "", nil
}

// place says where the data is.
func (s *server) place() string {
	switch {
	case s.database == nil:
		return s.options.data
	case s.office.Load() == nil:
		return "the database " + s.database.Place() + "; another server owns it, and this one stands by"
	}
	return "the database " + s.database.Place()
}
