package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/store/postgres"
	"github.com/tandem-tune/tandem/web/api"
)

// databaseOptions say which database several servers share.
type databaseOptions struct {
	url          string
	passwordFile string
	// advertise is the URL by which the other servers reach this one.
	advertise string
}

func databaseFlags(command *cobra.Command, options *databaseOptions, use string) {
	flags := command.Flags()
	flags.StringVar(&options.url, "database", "", use)
	flags.StringVar(&options.passwordFile, "database-password-file", "", "file that holds the password for --database (or PGPASSWORD, or ~/.pgpass)")
}

// resolve takes the address from the environment if no flag has it, where not
// every user of the machine can read it.
func (o *databaseOptions) resolve() {
	if o.url == "" {
		o.url = os.Getenv("TANDEM_DATABASE")
	}
}

// chosen reports whether a database was named.
func (o databaseOptions) chosen() bool { return o.url != "" }

// check refuses an address that the other servers could not use.
func (o databaseOptions) check() error {
	if !o.chosen() {
		if o.passwordFile != "" || o.advertise != "" {
			return term.Misuse("--database-password-file and --advertise belong to --database: name the database")
		}
		return nil
	}
	if o.advertise == "" {
		return nil
	}
	address, err := url.Parse(o.advertise)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" || strings.Trim(address.Path, "/") != "" || address.RawQuery != "" || address.User != nil {
		return term.Misuse("--advertise (%s) must be http://HOST:PORT or https://HOST:PORT, by which the other servers reach this one", o.advertise)
	}
	return nil
}

// open connects to the database.
func (o databaseOptions) open(ctx context.Context) (*postgres.Database, error) {
	options := postgres.Options{URL: o.url}
	if o.passwordFile != "" {
		content, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return nil, term.Misuse("--database-password-file: %w", err)
		}
		options.Password = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	}
	database, err := postgres.Open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("--database: %w", err)
	}
	return database, nil
}

// switchboard is a handler that can be exchanged while requests come.
type switchboard struct{ present atomic.Pointer[http.Handler] }

func (s *switchboard) connect(handler http.Handler) { s.present.Store(&handler) }

// ServeHTTP lets the present handler answer.
func (s *switchboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.present.Load()).ServeHTTP(w, r)
}

// openDatabase listens, and owns the database if nobody does.
func (s *server) openDatabase(ctx context.Context) (err error) {
	if s.database, err = s.options.database.open(ctx); err != nil {
		return err
	}
	if s.database.Unchecked() {
		s.options.logger.Warn("the database's pages have no checksums, so that damage by its disk would go unnoticed: stop PostgreSQL and run pg_checksums --enable", "database", s.database.Place())
	}
	if err := s.listen(); err != nil {
		return err
	}
	if address, err := netip.ParseAddrPort(s.listener.Addr().String()); err == nil && address.Addr().IsUnspecified() && s.options.database.advertise == "" {
		return term.Misuse("--listen %s is no address by which the other servers on the database can reach this one: add --advertise http://HOST:%d", s.options.listen, address.Port())
	}
	authorities, err := term.ReadAuthorities(s.options.tls.ca)
	if err != nil {
		return err
	}
	proxies, _ := s.options.proxies() // which were checked
	s.standby = api.NewStandby(api.StandbyConfig{Hosts: s.hosts(), Proxies: proxies, Authorities: authorities, Logger: s.options.logger})
	s.switchboard.connect(s.standby)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	err = s.stand(looking, func(owner postgres.Owner) {
		if owner.Alive {
			stop() // there is one: this server waits for its turn while it serves
		}
	})
	if err != nil && (ctx.Err() != nil || looking.Err() == nil) {
		return err
	}
	return nil
}

// address is where the other servers reach this one.
func (s *server) address() string {
	if s.options.database.advertise != "" {
		return strings.TrimSuffix(s.options.database.advertise, "/")
	}
	return s.url()
}

// stand passes requests on until this server owns the database, and then lets
// them in. heard, if set, is told of each look at the owner.
func (s *server) stand(ctx context.Context, heard func(postgres.Owner)) error {
	s.switchboard.connect(s.standby)
	var last postgres.Owner
	store, err := s.database.Stand(ctx, postgres.Candidate{
		Name: fmt.Sprintf("%s, process %d", term.HostName(), os.Getpid()), Address: s.address(),
		Heard: func(owner postgres.Owner) {
			if owner != last {
				s.options.logger.Info("standing by", "owner", owner.Address, "term", owner.Term, "alive", owner.Alive)
			}
			last = owner
			next := api.Owner{}
			if owner.Alive {
				next = api.Owner{URL: owner.Address, Secret: owner.Secret}
			}
			s.standby.Follow(next)
			if heard != nil {
				heard(owner)
			}
		},
	})
	if err != nil {
		return err
	}
	s.standby.Follow(api.Owner{}) // it is this one: whoever still asks there is to come back
	kept := store.Artifacts()
	o := &office{server: s, store: store, artifacts: kept, tidy: kept.Tidy, peerSecret: store.Owner().Secret}
	if err := o.open(ctx); err != nil {
		return errors.Join(err, store.Close())
	}
	s.options.logger.Info("this server owns the database now", "term", store.Owner().Term)
	o.answerLocally()
	s.office.Store(o)
	s.switchboard.connect(s.during(o, o.handler()))
	return nil
}

// during lets requests in for as long as the office lasts: with its end, those
// under way end as well, and later ones are passed on to the next owner.
func (s *server) during(o *office, handler http.Handler) http.Handler {
	over, end := context.WithCancel(context.Background())
	go func() {
		<-o.store.Broken()
		end()
	}()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.store.Err() != nil {
			s.standby.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(over, cancel)()
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

// retryEvery is how long a server waits that could not take its turn.
const retryEvery = time.Second

// share owns the database, stands by, and owns it again, until the context ends.
func (s *server) share(ctx context.Context) {
	for ctx.Err() == nil {
		o := s.office.Load()
		if o == nil {
			if err := s.stand(ctx, nil); err != nil && ctx.Err() == nil {
				s.options.logger.Error("this server cannot take the database over; trying again", "error", err)
				pauseFor(ctx, retryEvery)
			}
			continue
		}
		o.housekeep(ctx)
		if ctx.Err() != nil {
			return
		}
		s.options.logger.Warn("this server does not own the database any more", "error", o.store.Err())
		s.office.Store(nil)
		s.switchboard.connect(s.standby)
		if err := o.close(ctx); err != nil {
			s.options.logger.Warn("give the database up", "error", err)
		}
	}
}

func pauseFor(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}
