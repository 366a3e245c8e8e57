package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// Shared is a PostgreSQL database that two servers share: the one that the
// storm knows, and another one. It makes that storm's Serve and Disturb.
type Shared struct {
	options  Options
	database *launch.Database
	address  string
	other    *launch.Server
	started  int // other servers so far
	random   *rand.Rand
}

// longestFreeze is how long the other server stands still at most: longer than
// it takes until it is replaced.
const longestFreeze = 8 * time.Second

// NewShared starts the database. The error is launch.ErrNoPostgreSQL where that
// cannot be done.
func NewShared(ctx context.Context, options Options) (*Shared, error) {
	s := &Shared{options: options, random: rand.New(rand.NewPCG(options.Seed, 7))}
	var err error
	if s.database, err = launch.NewDatabase(ctx); err != nil {
		return nil, err
	}
	if s.address, err = s.database.Create(ctx, "tandem"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Serve starts the server that the storm knows, and with the first one the
// other one.
func (s *Shared) Serve(listen string) (*launch.Server, error) {
	server, err := s.serve("data", listen)
	if err != nil || s.other != nil {
		return server, err
	}
	if err := s.startOther(); err != nil {
		server.Kill()
		return nil, err
	}
	return server, nil
}

func (s *Shared) serve(data, listen string) (*launch.Server, error) {
	args := append(Flags(listen, s.options.LeaseSeconds), "--database", s.address)
	return launch.ServeIn(s.options.Environment, s.options.Binary, filepath.Join(s.options.Folder, data), args...)
}

func (s *Shared) startOther() (err error) {
	s.started++
	s.other, err = s.serve(fmt.Sprintf("other-%d", s.started), "127.0.0.1:0")
	return err
}

// Disturb crashes the database, or kills or stops the other server.
func (s *Shared) Disturb(ctx context.Context) (string, error) {
	switch s.random.IntN(3) {
	case 0:
		s.database.Stop()
		time.Sleep(time.Duration(s.random.Int64N(int64(longestFreeze))))
		return "crash of the database", s.database.Start(ctx)
	case 1:
		s.other.Kill()
		return "kill -9 of the other server", s.startOther()
	default:
		return "other server stopped for a while", freeze(s.other.Process, time.Duration(s.random.Int64N(int64(longestFreeze))))
	}
}

// Close ends the database and the other server. What that one cannot end
// cleanly is an error.
func (s *Shared) Close() error {
	var err error
	if s.other != nil {
		if err = s.other.Stop(); err != nil {
			err = fmt.Errorf("the other server did not end cleanly: %w\n%s", err, s.other.Output())
		}
	}
	return errors.Join(err, s.database.Remove())
}
