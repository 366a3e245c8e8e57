package servecmd

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
	"github.com/tandem-tune/tandem/web/standby"
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
func (p *Process) openDatabase(ctx context.Context) (err error) {
	if p.database, err = p.options.database.open(ctx); err != nil {
		return err
	}
	if p.database.Unchecked() {
		p.options.Logger.Warn("the database's pages have no checksums, so that damage by its disk would go unnoticed: stop PostgreSQL and run pg_checksums --enable", "database", p.database.Place())
	}
	if databaseBytes(p.options.Data) >= 0 {
		p.options.Logger.Warn("the data folder has a database of its own, and nothing of that is in --database: to serve it, leave --database out", "data", p.options.Data)
	}
	if err := p.listen(); err != nil {
		return err
	}
	if address, err := netip.ParseAddrPort(p.listener.Addr().String()); err == nil && address.Addr().IsUnspecified() && p.options.database.advertise == "" {
		return term.Misuse("--listen %s is no address by which the other servers on the database can reach this one: add --advertise http://HOST:%d", p.options.Listen, address.Port())
	}
	authorities, err := term.ReadAuthorities(p.options.tls.ca)
	if err != nil {
		return err
	}
	proxies, _ := p.options.proxies() // which were checked
	p.standby = standby.New(standby.Config{Hosts: p.hosts(), Proxies: proxies, Authorities: authorities, Logger: p.options.Logger})
	p.switchboard.connect(p.standby)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	err = p.standBy(looking, func(owner postgres.Owner) {
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
func (p *Process) address() string {
	if p.options.database.advertise != "" {
		return strings.TrimSuffix(p.options.database.advertise, "/")
	}
	return p.URL()
}

// standBy passes requests on until this server owns the database, and then lets
// them in. heard, if set, is told of each look at the owner.
func (p *Process) standBy(ctx context.Context, heard func(postgres.Owner)) error {
	p.switchboard.connect(p.standby)
	var last postgres.Owner
	store, err := p.database.Stand(ctx, postgres.Candidate{
		Name: fmt.Sprintf("%s, process %d", term.HostName(), os.Getpid()), Address: p.address(),
		Heard: func(owner postgres.Owner) {
			if owner != last {
				p.options.Logger.Info("standing by", "owner", owner.Address, "term", owner.Term, "alive", owner.Alive)
			}
			last = owner
			next := standby.Owner{}
			if owner.Alive {
				next = standby.Owner{URL: owner.Address, Secret: owner.Secret}
			}
			p.standby.Follow(next)
			if heard != nil {
				heard(owner)
			}
		},
	})
	if err != nil {
		return err
	}
	p.standby.Follow(standby.Owner{}) // it is this one: whoever still asks there is to come back
	kept, err := p.options.place(ctx, store.Artifacts())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s := &server{process: p, store: store, artifacts: kept, peerSecret: store.Owner().Secret}
	if err := s.open(ctx); err != nil {
		return errors.Join(err, store.Close())
	}
	p.options.Logger.Info("this server owns the database now", "term", store.Owner().Term)
	s.answerLocally()
	p.server.Store(s)
	p.switchboard.connect(p.during(s, s.handler()))
	return nil
}

// during lets requests in for as long as this server owns the database: after
// that, those under way end as well, and later ones are passed on to the next owner.
func (p *Process) during(s *server, handler http.Handler) http.Handler {
	over, end := context.WithCancel(context.Background())
	go func() {
		<-s.store.Broken()
		end()
	}()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.store.Err() != nil {
			p.standby.ServeHTTP(w, r)
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
func (p *Process) share(ctx context.Context) {
	for ctx.Err() == nil {
		s := p.server.Load()
		if s == nil {
			if err := p.standBy(ctx, nil); err != nil && ctx.Err() == nil {
				p.options.Logger.Error("this server cannot take the database over; trying again", "error", err)
				pauseFor(ctx, retryEvery)
			}
			continue
		}
		s.housekeep(ctx)
		if ctx.Err() != nil {
			return
		}
		p.options.Logger.Warn("this server does not own the database any more", "error", s.store.Err())
		p.server.Store(nil)
		p.switchboard.connect(p.standby)
		if err := s.close(ctx); err != nil {
			p.options.Logger.Warn("give the database up", "error", err)
		}
	}
}

func pauseFor(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}
