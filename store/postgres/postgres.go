// Package postgres keeps what a server knows in a PostgreSQL database, so that
// several servers can stand by for each other: studies, trials, reports,
// events, logs, tokens and artifacts.
//
// One server at a time owns the database (owner.go): it has the newest term,
// and every transaction of its that writes checks so (session.go). All writes
// go through one goroutine that commits them in groups. When the connection is
// lost in a COMMIT, the outcome is looked up, not guessed (writer.go). Its one
// invariant: Apply returns nil only once the change survives a power loss of
// the database's machine, and a server whose term is over acknowledges nothing.
// It decides nothing about studies and knows neither the service nor HTTP.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Options say which database.
type Options struct {
	// URL is the database's address, postgres://USER@HOST:PORT/DATABASE, with
	// libpq's parameters. What is not in it comes from libpq's environment
	// variables (PGPASSWORD, PGPASSFILE, ...).
	URL string
	// Password goes before one from elsewhere, unless it is empty.
	Password string
}

// Database is an open database with our schema. It is safe for concurrent use.
type Database struct {
	options Options
	// reads takes the queries and the uploads, writes the transactions of the
	// owner: whoever reads much holds up no write.
	reads, writes *pgxpool.Pool
	// unchecked says that its pages have no checksums.
	unchecked bool
}

// Open connects, makes sure of what our promises stand on and brings the
// schema up to date. It fails at once, with a problem.Error that says what to
// do, if the database cannot be reached or used.
func Open(ctx context.Context, options Options) (*Database, error) {
	d := &Database{options: options}
	if err := d.open(ctx); err != nil {
		d.Close()
		if state(err) == diskFull {
			err = problem.New(problem.Unavailable, "%w: that of the database at %s. Make room there, then start again: the data is not damaged by this, and nothing that was acknowledged is lost (%w)",
				problem.ErrDiskFull, d.Place(), err)
		}
		return nil, err
	}
	return d, nil
}

func (d *Database) open(ctx context.Context) error {
	var err error
	if d.reads, err = d.connect(ctx, 0); err != nil {
		return err
	}
	if d.writes, err = d.connect(ctx, writeConnections); err != nil {
		return err
	}
	if err := d.check(ctx); err != nil {
		return err
	}
	return d.migrate(ctx)
}

// connect makes a pool of connections; most bounds them, 0 leaves that to the
// address. No connection is made yet.
func (d *Database) connect(ctx context.Context, most int32) (*pgxpool.Pool, error) {
	config, err := d.options.config()
	if err != nil {
		return nil, err
	}
	if most > 0 {
		config.MaxConns, config.MinConns = most, min(config.MinConns, most)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, problem.New(problem.Invalid, "the settings of the connections to %s are not valid: %w", config.ConnConfig.Host, err)
	}
	return pool, nil
}

// check makes sure of what our promises stand on.
func (d *Database) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var version int
	var commit, fsync, pages, encoding, checksums string
	err := d.writes.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit'),
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('server_encoding'), current_setting('data_checksums')`).
		Scan(&version, &commit, &fsync, &pages, &encoding, &checksums)
	if err != nil {
		return problem.New(problem.Unavailable, "the database at %s cannot be used: %w", d.Place(), err)
	}
	if version < oldestVersion {
		return problem.New(problem.Unavailable, "the database at %s is PostgreSQL %d: Tandem needs %d or newer", d.Place(), version/10000, oldestVersion/10000)
	}
	for _, setting := range []struct{ name, got, want, change string }{
		{"synchronous_commit", commit, "on", "take it out of the address"},
		{"fsync", fsync, "on", "turn it on in postgresql.conf"},
		{"full_page_writes", pages, "on", "turn it on in postgresql.conf"},
		{"server_encoding", encoding, "UTF8", "create the database with ENCODING 'UTF8' TEMPLATE template0"},
	} {
		if setting.got != setting.want && (setting.name != "synchronous_commit" || setting.got != "remote_apply") {
			return problem.New(problem.Unavailable, "the database at %s cannot be used safely: its %s is %s and should be %s: %s",
				d.Place(), setting.name, setting.got, setting.want, setting.change)
		}
	}
	d.unchecked = checksums != "on"
	return nil
}

// Unchecked reports whether the database's pages have no checksums, so that
// what its disk damages is served as if it were true.
func (d *Database) Unchecked() bool { return d.unchecked }

// Place names the database to people, without secrets.
func (d *Database) Place() string {
	config := d.writes.Config().ConnConfig
	return fmt.Sprintf("%s:%d/%s", config.Host, config.Port, config.Database)
}

// Close closes the connections. It waits for those in use.
func (d *Database) Close() {
	for _, pool := range []*pgxpool.Pool{d.reads, d.writes} {
		if pool != nil {
			pool.Close()
		}
	}
}
