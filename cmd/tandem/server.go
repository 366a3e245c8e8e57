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
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/ui"
)

// serverOptions are the flags that make a server.
type serverOptions struct {
	listen           string
	data             string
	leaseSeconds     float64
	heartbeatSeconds float64
	allowedHosts     []string
	allowNetworkDisk bool
	logger           *slog.Logger
}

// check refuses a timing under which workers that are well lose their trials.
func (o serverOptions) check() error {
	if o.heartbeatSeconds > 0 && o.heartbeatSeconds <= o.leaseSeconds/2 && o.leaseSeconds <= maxLeaseSeconds {
		return nil
	}
	return usageError{fmt.Errorf("--heartbeat-seconds (%g) must be above 0 and at most half of --lease-seconds (%g), so that one heartbeat may be lost; a lease lasts at most a day",
		o.heartbeatSeconds, o.leaseSeconds)}
}

// server is everything one server process runs.
type server struct {
	options   serverOptions
	opened    time.Time
	store     *sqlite.Store
	artifacts *artifact.Store
	studies   *study.Service
	listener  net.Listener
	http      *http.Server
}

// Housekeeping intervals.
const (
	tickEvery  = time.Second
	sweepEvery = time.Minute
	// artifactGrace is how long an upload may wait for its commit.
	artifactGrace = 15 * time.Minute
	receiptLife   = 24 * time.Hour
	drainTime     = 10 * time.Second
	// maxLeaseSeconds bounds how long a vanished worker's trials may wait.
	maxLeaseSeconds = 24 * 60 * 60
)

// openServer opens the data folder, recovers what was running and listens. The
// folder belongs to one server at a time.
func openServer(ctx context.Context, options serverOptions) (*server, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(options.data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(options.data, "tandem.db"), sqlite.Options{AllowNetworkFilesystem: options.allowNetworkDisk})
	if err != nil {
		return nil, err
	}
	tuneCollector()
	opened := &server{options: options, opened: time.Now(), store: store}
	if err := opened.assemble(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return opened, nil
}

func (s *server) assemble(ctx context.Context) error {
	var err error
	if s.artifacts, err = artifact.Open(filepath.Join(s.options.data, "artifacts")); err != nil {
		return fmt.Errorf("open the artifact folder: %w", err)
	}
	s.studies = study.New(s.store, s.store, study.Options{
		Now: time.Now, Random: random, Logger: s.options.logger,
		LeaseSeconds: s.options.leaseSeconds, HeartbeatSeconds: s.options.heartbeatSeconds,
	})
	if err := s.studies.Start(ctx); err != nil {
		return err
	}
	if err := s.revokeRuns(ctx); err != nil {
		return fmt.Errorf("delete the tokens of a run that was killed: %w", err)
	}
	if s.listener, err = net.Listen("tcp", s.options.listen); err != nil {
		return fmt.Errorf("listen on %s: %w", s.options.listen, err)
	}
	handler := api.New(api.Config{
		Studies: s.studies, Artifacts: s.artifacts, Tokens: s.store, UI: ui.Handler(),
		Hosts: s.hosts(), Logger: s.options.logger, Healthy: s.store.Err,
	})
	s.http = api.NewHTTPServer(s.options.listen, handler)
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
	return append([]string{host}, s.options.allowedHosts...)
}

// url is where the server answers.
func (s *server) url() string { return "http://" + s.listener.Addr().String() }

func random() uint64 {
	var bits [8]byte
	rand.Read(bits[:]) //nolint:errcheck // crypto/rand.Read never fails (Go 1.24)
	return binary.LittleEndian.Uint64(bits[:])
}

// serve answers until the context ends or the store can no longer be trusted,
// then drains: open requests end, searches are stored.
func (s *server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	failed := make(chan error, 1)
	var background sync.WaitGroup
	background.Go(func() { s.housekeep(ctx) })
	background.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	})
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	case <-s.store.Broken():
		err = fmt.Errorf("the store failed, so nothing more is acknowledged: %w", s.store.Err())
	}
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

// close stores the searches and gives the data folder back.
func (s *server) close(ctx context.Context) error {
	return errors.Join(s.studies.Close(ctx), s.store.Close())
}

// housekeep runs what time makes due.
func (s *server) housekeep(ctx context.Context) {
	tick, sweep := time.NewTicker(tickEvery), time.NewTicker(sweepEvery)
	defer tick.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.studies.Tick(ctx); err != nil && ctx.Err() == nil {
				s.options.logger.Error("tick", "error", err)
			}
		case <-sweep.C:
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.options.logger.Error("sweep", "error", err)
			}
		}
	}
}

// sweep deletes old receipts and artifacts no checkpoint refers to. A worker
// that uploaded one before the server was down may still commit it, so the
// first grace of a server deletes none.
func (s *server) sweep(ctx context.Context) error {
	if _, err := s.store.PurgeReceipts(ctx, time.Now().Add(-receiptLife)); err != nil {
		return err
	}
	if time.Since(s.opened) < artifactGrace {
		return nil
	}
	cutoff := time.Now().Add(-artifactGrace)
	used, err := s.studies.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for entry, err := range s.artifacts.All() {
		if err != nil {
			return err
		}
		if used[entry.SHA256] {
			continue
		}
		if _, err := s.artifacts.DeleteBefore(entry.SHA256, cutoff); err != nil {
			return err
		}
	}
	return nil
}

// revokeRuns deletes the tokens of earlier runs. The data folder is ours alone,
// so a run that left some has been killed.
func (s *server) revokeRuns(ctx context.Context) error {
	tokens, err := s.store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token.Name != runTokenName || token.Expires == nil {
			continue
		}
		if err := s.store.DeleteToken(ctx, token.ID); err != nil && !problem.Is(err, problem.NotFound) {
			return err
		}
	}
	return nil
}

// firstToken makes the admin token of a data folder that has none for good;
// empty when there is one already.
func (s *server) firstToken(ctx context.Context) (string, error) {
	tokens, err := s.store.Tokens(ctx)
	if err != nil || slices.ContainsFunc(tokens, auth.Token.Lasting) {
		return "", err
	}
	secret, _, err := auth.Issue(ctx, s.store, "first start", auth.Admin, 0)
	return secret, err
}
