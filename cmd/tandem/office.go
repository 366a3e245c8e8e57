package main

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

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/autoscale"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/web/ui"
)

// storage is where a server keeps what it knows: an SQLite file, or a term of
// a PostgreSQL database.
type storage interface {
	journal.Store
	journal.LogStore
	auth.Store
	PurgeReceipts(ctx context.Context, before time.Time) (int, error)
	// Broken is closed when nothing can be written any more, and Err says why.
	Broken() <-chan struct{}
	Err() error
	io.Closer
}

// artifacts is where it keeps the bytes of checkpoints.
type artifacts interface {
	api.Artifacts
	All() iter.Seq2[artifact.Entry, error]
	DeleteBefore(sha256 string, cutoff time.Time) (bool, error)
}

// office is what a server does for as long as it owns its data.
type office struct {
	server    *server
	opened    time.Time
	store     storage
	artifacts artifacts
	// tidy removes what a sweep leaves behind; nil: nothing.
	tidy    func(context.Context) error
	studies *study.Service
	// peerSecret is what other servers show with requests that they pass on.
	peerSecret string
	// audit is who did what on this server.
	audit         *audit.Log
	authenticator *auth.Authenticator
	// forecasts is how many GPUs trials want, and will; autoscale acts on it.
	forecasts *forecasting.Service
	autoscale *autoscale.Service
	// local makes tokens for who owns the data; nil: it cannot here.
	local *localServer
}

// open recovers what was running and lets requests in.
func (o *office) open(ctx context.Context) (err error) {
	options := o.server.options
	o.opened = time.Now()
	o.authenticator = auth.NewAuthenticator(o.store, time.Now)
	if o.audit, err = audit.Open(filepath.Join(options.data, auditFolder), audit.Options{}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.closeAudit())
		}
	}()
	lines, hash := o.audit.Head()
	options.logger.Info("audit log", "lines", lines, "hash", hash) // what 'tandem audit verify --expect' takes later
	grouping, err := similarity.ParseGrouping(options.similarity)
	if err != nil {
		return err
	}
	o.studies = study.New(o.store, o.store, study.Options{
		Now: time.Now, Random: random, Logger: options.logger,
		LeaseSeconds: options.leaseSeconds, HeartbeatSeconds: options.heartbeatSeconds, Autoscale: options.pool.scaling(), Users: o.authenticator.Users,
		Similarity: grouping,
	})
	if err := o.studies.Start(ctx); err != nil {
		return err
	}
	if err := o.revokeRuns(ctx); err != nil {
		return fmt.Errorf("delete the tokens of a run that was killed: %w", err)
	}
	return o.foresee(ctx)
}

// handler answers requests.
func (o *office) handler() http.Handler {
	proxies, _ := o.server.options.proxies() // which were checked
	return api.New(api.Config{
		Studies: api.All(o.studies), Artifacts: o.artifacts, Tokens: o.store, Authenticator: o.authenticator, Audit: o.audit, Forecasts: o.forecasts, UI: ui.Handler(),
		Hosts: o.server.hosts(), Logger: o.server.options.logger, Healthy: o.store.Err, PeerSecret: o.peerSecret, Proxies: proxies,
		Ready: o.server.ready, Monitor: o.server.monitor, OpenMetrics: o.server.options.openMetrics, Limits: o.server.options.perSecond(),
	})
}

// close stores the searches and gives the data up. A store that is broken is
// told nothing: whoever owns the data now has its own truth.
func (o *office) close(ctx context.Context) error {
	var err error
	if o.local != nil {
		err = o.local.close(ctx)
	}
	if o.store.Err() == nil {
		err = errors.Join(err, o.studies.Close(ctx), o.authenticator.Flush(ctx))
	}
	return errors.Join(err, o.closeAudit(), o.store.Close())
}

// housekeep runs what time makes due, until the context ends or the store
// breaks.
func (o *office) housekeep(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	wait, learned := o.watch(ctx), o.learn(ctx)
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
		case <-o.store.Broken():
			return
		case <-tick.C:
			if err := o.studies.Tick(ctx); err != nil && ctx.Err() == nil {
				o.server.options.logger.Error("tick", "error", err)
			}
		case <-sweep.C:
			if err := o.sweep(ctx); err != nil && ctx.Err() == nil {
				o.server.options.logger.Error("sweep", "error", err)
			}
		}
	}
}

// learn learns from trainings beside everything else, until the context ends; the
// channel is closed behind the last lesson.
func (o *office) learn(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		often := time.NewTicker(learnEvery)
		defer often.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-often.C:
				if err := o.studies.Learn(ctx); err != nil && ctx.Err() == nil {
					o.server.options.logger.Error("learn from trainings on GPUs", "error", err)
				}
			}
		}
	}()
	return ended
}

// sweep notes which tokens were used, and deletes old receipts and artifacts that
// no checkpoint refers to. A worker that uploaded one before the server was down
// may still commit it, so the first grace of a server deletes none.
func (o *office) sweep(ctx context.Context) error {
	if err := o.authenticator.Flush(ctx); err != nil {
		return err
	}
	if _, err := o.store.PurgeReceipts(ctx, time.Now().Add(-receiptLife)); err != nil {
		return err
	}
	if time.Since(o.opened) < artifactGrace {
		return nil
	}
	cutoff := time.Now().Add(-artifactGrace)
	used, err := o.studies.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for entry, err := range o.artifacts.All() {
		if err != nil {
			return err
		}
		if used[entry.SHA256] {
			continue
		}
		if _, err := o.artifacts.DeleteBefore(entry.SHA256, cutoff); err != nil {
			return err
		}
	}
	if o.tidy == nil {
		return nil
	}
	return o.tidy(ctx)
}

// revokeRuns deletes the tokens of earlier runs. The data is ours alone, so a
// run that left some has been killed.
func (o *office) revokeRuns(ctx context.Context) error {
	tokens, err := o.store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token.Name != runTokenName || token.Expires == nil {
			continue
		}
		if err := o.store.DeleteToken(ctx, token.ID); err != nil && !problem.Is(err, problem.NotFound) {
			return err
		}
	}
	return nil
}

// firstToken makes the admin token of data that has none for good; empty when
// there is one already.
func (o *office) firstToken(ctx context.Context) (string, error) {
	tokens, err := o.store.Tokens(ctx)
	if err != nil || slices.ContainsFunc(tokens, auth.Token.Lasting) {
		return "", err
	}
	secret, _, err := o.issue(ctx, auth.Request{Name: "first start", Scope: auth.Admin})
	return secret, err
}
