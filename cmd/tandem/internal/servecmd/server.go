package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/beside"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/hooks"
	"github.com/tandem-tune/tandem/web/ui"
	"github.com/tandem-tune/tandem/web/usecases"
)

// storage is where a server keeps what it knows: an SQLite file, or a term of
// a PostgreSQL database.
type storage interface {
	journal.Store
	journal.SharedStore
	journal.LogStore
	auth.Store
	PurgeReceipts(ctx context.Context, before time.Time) (int, error)
	// Broken is closed when nothing can be written any more, and Err says why.
	Broken() <-chan struct{}
	Err() error
	// Full is why nothing fits any more, as the newest write found.
	Full() error
	io.Closer
}

// artifacts is where it keeps the bytes of checkpoints.
type artifacts interface {
	api.Artifacts
	All() iter.Seq2[artifact.Entry, error]
	DeleteBefore(sha256 string, cutoff time.Time) (bool, error)
}

// server is what a server does for as long as it owns its data.
type server struct {
	process   *Process
	opened    time.Time
	store     storage
	artifacts artifacts
	studies   *study.Service
	// peerSecret is what other servers show with requests that they pass on.
	peerSecret string
	// audit is who did what on this server.
	audit         *audit.Log
	authenticator *auth.Authenticator
	// forecasts is how many GPUs trials want, and will.
	forecasts *forecasting.Service
	hooks     *hooks.Service
	// local makes tokens for who owns the data; nil: it cannot here.
	local *beside.Server
}

// open recovers what was running and lets requests in.
func (s *server) open(ctx context.Context) (err error) {
	options := s.process.options
	s.opened = time.Now()
	s.authenticator = auth.NewAuthenticator(s.store, time.Now)
	if s.audit, err = audit.Open(filepath.Join(options.Data, auditFolder), audit.Options{}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAudit())
		}
	}()
	lines, hash := s.audit.Head()
	options.Logger.Info("audit log", "lines", lines, "hash", hash) // what 'tandem audit verify --expect' takes later
	grouping, err := similarity.ParseGrouping(options.similarity)
	if err != nil {
		return err
	}
	prices, err := options.tariff()
	if err != nil {
		return err
	}
	s.studies = study.New(s.store, s.store, study.Options{
		Now: time.Now, Random: random, Logger: options.Logger,
		LeaseSeconds: options.leaseSeconds, HeartbeatSeconds: options.heartbeatSeconds, Users: s.authenticator.Users,
		Similarity: grouping, Tariff: prices,
	})
	if err := s.studies.Start(ctx); err != nil {
		return err
	}
	if err := s.revokeRuns(ctx); err != nil {
		return fmt.Errorf("delete the tokens of a run that was killed: %w", err)
	}
	if err := s.openHooks(ctx); err != nil {
		return err
	}
	return s.openForecasts(ctx)
}

// handler answers requests.
func (s *server) handler() http.Handler {
	proxies, _ := s.process.options.proxies() // which were checked
	return api.New(api.Config{
		Studies: usecases.New(s.studies), Artifacts: s.artifacts, Forecasts: s.forecasts, Hooks: s.hooks, SignIn: s.process.options.signIn,
		AuditLog: func(most int) ([]audit.Entry, error) {
			return audit.Newest(filepath.Join(s.process.options.Data, auditFolder), most)
		},
		Healthy: s.store.Err, Ready: s.process.ready,
		Config: guard.Config{
			Tokens: s.store, Authenticator: s.authenticator, Audit: s.audit, UI: ui.Handler(), Hosts: s.process.hosts(), Proxies: proxies, PeerSecret: s.peerSecret,
			Logger: s.process.options.Logger, Monitor: s.process.monitor, OpenMetrics: s.process.options.openMetrics, Limits: s.process.options.perSecond(), Version: term.Version(),
		},
	})
}

// close stores the searches and gives the data up. A store that is broken is
// told nothing: whoever owns the data now has its own truth.
func (s *server) close(ctx context.Context) error {
	var err error
	if s.local != nil {
		err = s.local.Close(ctx)
	}
	if s.store.Err() == nil {
		err = errors.Join(err, s.studies.Close(ctx), s.authenticator.Flush(ctx))
	}
	return errors.Join(err, s.closeAudit(), s.store.Close())
}

// housekeep runs what time makes due, until the context ends or the store
// breaks.
func (s *server) housekeep(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	wait, learned := s.watch(ctx), s.learn(ctx)
	defer func() {
		stop()
		<-learned
		wait()
	}()
	tick, sweep := time.NewTicker(tickEvery), time.NewTicker(sweepEvery)
	defer tick.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.store.Broken():
			return
		case <-tick.C:
			if s.store.Full() != nil { // whom nobody sends work would never find room again
				_ = s.store.Apply(ctx, journal.Change{})
			}
			if err := s.studies.Tick(ctx); err != nil && ctx.Err() == nil {
				s.process.options.Logger.Error("tick", "error", err)
			}
		case <-sweep.C:
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.process.options.Logger.Error("sweep", "error", err)
			}
		}
	}
}

// learn learns from trainings on GPUs until the context ends. The channel that it
// returns is closed after that.
func (s *server) learn(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		often := time.NewTicker(learnEvery)
		defer often.Stop()
		for { // at once, as models are not stored
			if err := s.studies.Learn(ctx); err != nil && ctx.Err() == nil {
				s.process.options.Logger.Error("learn from trainings on GPUs", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-often.C:
			}
		}
	}()
	return ended
}

// sweep notes which tokens were used, and deletes old receipts and artifacts that
// no checkpoint or data set refers to. A worker that uploaded one before the server was down
// may still commit it, so the first grace of a server deletes none.
func (s *server) sweep(ctx context.Context) error {
	if err := s.authenticator.Flush(ctx); err != nil {
		return err
	}
	if _, err := s.store.PurgeReceipts(ctx, time.Now().Add(-receiptLife)); err != nil {
		return err
	}
	if time.Since(s.opened) < artifactGrace {
		return nil
	}
	cutoff := time.Now().Add(-artifactGrace)
	used, err := s.studies.Referenced(ctx)
	if err != nil {
		return err
	}
	for entry, err := range s.artifacts.All() {
		if err != nil {
			return err
		}
		if used[entry.SHA256] || !entry.Modified.Before(cutoff) {
			continue
		}
		if _, err := s.artifacts.DeleteBefore(entry.SHA256, cutoff); err != nil {
			return err
		}
	}
	if place, ok := s.artifacts.(interface{ Tidy(context.Context) error }); ok {
		return place.Tidy(ctx)
	}
	return nil
}

const (
	// runTokenName tells a run's tokens from others: one that was killed cannot
	// delete them, so the next server on the data folder does.
	runTokenName = "tandem run"
	// runTokenLife bounds them if there is none. No run lasts longer.
	runTokenLife = 366 * 24 * time.Hour
)

// IssueRunToken makes a token for a run in this process. The server has to own its data.
func (p *Process) IssueRunToken(ctx context.Context, scope auth.Scope) (string, auth.Token, error) {
	return p.server.Load().issue(ctx, auth.Request{Name: runTokenName, Scope: scope, Life: runTokenLife})
}

// RevokeRunToken deletes a token of a run, if it is there still.
func (p *Process) RevokeRunToken(ctx context.Context, token auth.Token) error {
	return p.server.Load().revoke(ctx, token)
}

// revoke deletes a token, if it is there still.
func (s *server) revoke(ctx context.Context, token auth.Token) error {
	err := s.store.DeleteToken(ctx, token.ID)
	if problem.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

// revokeRuns deletes the tokens of earlier runs. The data is ours alone, so a
// run that left some has been killed.
func (s *server) revokeRuns(ctx context.Context) error {
	tokens, err := s.store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token.Name != runTokenName || token.Expires == nil {
			continue
		}
		if err := s.revoke(ctx, token); err != nil {
			return err
		}
	}
	return nil
}

// firstToken makes the admin token of data that has none for good; empty when
// there is one already.
func (s *server) firstToken(ctx context.Context) (string, error) {
	tokens, err := s.store.Tokens(ctx)
	if err != nil || slices.ContainsFunc(tokens, auth.Token.Lasting) {
		return "", err
	}
	secret, _, err := s.issue(ctx, auth.Request{Name: "first start", Scope: auth.Admin})
	return secret, err
}
