package sqlite

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

const (
	// restartPatience is how long all writes wait for the readers, in milliseconds.
	restartPatience = 100
	// checkpointPages is how many pages the write-ahead log gains (4 MiB)
	// before they are copied into the database.
	checkpointPages = 1000
	// crowdedPages is the length of the log at which the writer waits for a
	// moment without readers, so that the log can start anew. Without it,
	// readers that overlap all the time would let it grow for ever.
	crowdedPages = 4 * checkpointPages
)

// checkpoints copies the write-ahead log into the database. SQLite would do it
// by itself, but it keeps the errors for itself as well.
type checkpoints struct {
	// next is the length of the log at which to wait for readers again, after
	// they did not leave in time.
	next int64
	done atomic.Int64
}

// logState is the write-ahead log in pages.
type logState struct {
	busy          bool
	pages, copied int64
}

// run copies the log if it has grown enough.
func (c *checkpoints) run(s *session) error {
	state, err := s.checkpoint("NOOP")
	switch {
	case err != nil:
		return err
	case state.pages >= max(crowdedPages, c.next):
		if state, err = s.restart(); err != nil {
			return err
		}
		c.next = 0
		if state.busy { // some reader takes longer
			c.next = state.pages + state.pages/4
		}
	case state.pages-state.copied >= checkpointPages:
		if _, err = s.checkpoint("PASSIVE"); err != nil {
			return err
		}
	default:
		return nil
	}
	c.done.Add(1)
	return nil
}

func (s *session) checkpoint(mode string) (logState, error) {
	var state logState
	err := s.row("PRAGMA wal_checkpoint("+mode+")", nil, &state.busy, &state.pages, &state.copied)
	return state, err
}

// restart waits for the readers, but not for long, as all writers wait with it.
func (s *session) restart() (state logState, err error) {
	if err := s.wait(restartPatience); err != nil {
		return state, err
	}
	state, err = s.checkpoint("RESTART")
	return state, errors.Join(err, s.wait(dbfile.Patience))
}

// wait sets how long statements wait for the locks of others.
func (s *session) wait(milliseconds int) error {
	return s.exec(fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds))
}

// empty copies the whole log and makes its file empty.
func (s *session) empty() error {
	_, err := s.checkpoint("TRUNCATE")
	return err
}
