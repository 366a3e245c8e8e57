package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/internal/problem"
)

const (
	// heartbeatInterval is the time between heartbeats of the owner, and between
	// the looks of a standby server.
	heartbeatInterval = time.Second
	// leaseTimeout is the longest time without a heartbeat. After it another
	// server may take over, by the database's clock; the owner counts itself as
	// replaced, by its own clock.
	leaseTimeout = 5 * time.Second
)

// Owner is the server that has the database, as its row says.
type Owner struct {
	Term int64
	// Address is where it answers, a URL; empty if there was never one.
	Address string
	// Secret is what servers show each other with a request they pass on.
	Secret string
	// Alive says that it was heard of lately.
	Alive bool
}

// Candidate is a server that would own the database.
type Candidate struct {
	// Name says to people which server it is.
	Name string
	// Address is the URL under which the other servers reach it.
	Address string
	// Heard, if set, is told who owns the database after every look at it: the
	// zero Owner when the database does not answer.
	Heard func(Owner)
}

// Stand waits until the database has no owner that is alive, takes it over and
// returns the store in which this server may write. It ends early only with
// its context. A database that does not answer is waited for.
func (d *Database) Stand(ctx context.Context, me Candidate) (*Store, error) {
	for {
		owner, err := d.look(ctx)
		if err == nil && !owner.Alive {
			sent := time.Now()
			var mine Owner
			if mine, err = d.takeOver(ctx, owner.Term, me); err == nil && mine.Term > 0 {
				return d.beginTerm(mine, sent), nil
			}
		}
		if err != nil {
			owner = Owner{}
		}
		if me.Heard != nil {
			me.Heard(owner)
		}
		select {
		case <-ctx.Done():
			return nil, problem.New(problem.Unavailable, "this server was stopped while it stood by: %w", ctx.Err())
		case <-time.After(heartbeatInterval):
		}
	}
}

func (d *Database) look(ctx context.Context) (Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var owner Owner
	err := d.writes.QueryRow(ctx, "SELECT term, address, secret, at > clock_timestamp() - $1::interval FROM owner CROSS JOIN pulse", leaseTimeout).
		Scan(&owner.Term, &owner.Address, &owner.Secret, &owner.Alive)
	return owner, err
}

// takeOver makes the server the owner of the next term, if the term is still
// the one it saw; else it returns the zero Owner. It waits for a transaction of
// the owner before, which the database ends if its server stands still. A
// takeover whose outcome is not known is made again, with a term of its own.
func (d *Database) takeOver(ctx context.Context, seen int64, me Candidate) (Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout+lookTime)
	defer cancel()
	next := Owner{Address: me.Address, Secret: rand.Text(), Alive: true}
	err := pgx.BeginFunc(ctx, d.writes, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "UPDATE owner SET term = term + 1, holder = $2, address = $3, secret = $4, written = 0 WHERE term = $1 RETURNING term",
			seen, me.Name, me.Address, next.Secret).Scan(&next.Term)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE pulse SET at = clock_timestamp()")
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) { // another server was faster
		return Owner{}, nil
	}
	return next, err
}
