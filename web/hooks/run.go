package hooks

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/study/journal"
)

const (
	// every is how often it looks for something to tell, and the least time between two
	// messages to a hook.
	every = time.Second
	// longestWait is between two tries in the end; each wait before is half as long.
	longestWait = 10 * time.Minute
	// patience is how long a message is tried.
	patience = 24 * time.Hour
	// page is how many events are read at once.
	page = 500
)

// watched is what is kept of a study to see that there may be something to tell of it.
type watched struct {
	owner    string
	hooks    []definition.Hook
	finished *time.Time
	newest   int64 // the number of its newest event; 0: not known
	// running is the study as it was last read, while it runs and has a limit of time.
	running *journal.Study
}

// Run tells hooks until the context ends.
func (s *Service) Run(ctx context.Context) {
	var telling sync.WaitGroup
	defer telling.Wait()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Error("look for what hooks are to be told", "error", err)
		} else {
			for _, turn := range s.turns() {
				telling.Go(func() { s.take(ctx, turn) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look notes which studies have something new.
func (s *Service) look(ctx context.Context) error {
	s.mutex.Lock()
	rescan, none := s.rescan, len(s.followers) == 0
	s.rescan = false
	s.mutex.Unlock()
	if none {
		return nil
	}
	if rescan {
		if err := s.scan(ctx); err != nil {
			s.mutex.Lock()
			s.rescan = true
			s.mutex.Unlock()
			return err
		}
	}
	for id, newest := range s.options.Newest() {
		one, known := s.studies[id]
		if known && one.newest == newest {
			continue
		}
		stored, err := s.options.Store.Study(ctx, id)
		if problem.Is(err, problem.NotFound) { // it is not stored yet, or not any more
			continue
		}
		if err != nil {
			return err
		}
		one = watch(stored)
		one.newest = newest
		s.studies[id] = one
	}
	return nil
}

// scan looks at all studies that are stored, those that are over among them, and forgets
// what was told of others.
func (s *Service) scan(ctx context.Context) error {
	stored, err := s.options.Store.Studies(ctx)
	if err != nil {
		return err
	}
	clear(s.studies)
	for _, one := range stored {
		s.studies[one.ID] = watch(one)
	}
	var change journal.Change
	s.mutex.Lock()
	for _, f := range s.followers {
		for study, c := range f.cursors {
			if _, is := s.studies[study]; is {
				c.seen = -1
			} else {
				delete(f.cursors, study)
				change.Pool = append(change.Pool, journal.PoolEntry{Kind: cursorEntry, Name: f.ID + "/" + study})
			}
		}
	}
	s.mutex.Unlock()
	if len(change.Pool) == 0 {
		return nil
	}
	return s.options.Store.Apply(ctx, change)
}

func watch(stored journal.Study) watched {
	one := watched{owner: stored.Owner, hooks: stored.Definition.Hooks, finished: stored.Finished}
	if stored = stored.InForce(); stored.Status == protocol.StudyRunning && stored.Definition.Stop.Seconds > 0 {
		one.running = &stored
	}
	return one
}

// turn is a hook's turn to be told of a study.
type turn struct {
	f      *follower
	study  string
	when   definition.Hook
	newest int64
	cursor cursor
}

// turns gives each hook that is free and due a study that may have something for it, the
// one behind that which had its turn last. The hooks are busy then.
func (s *Service) turns() (turns []turn) {
	now := s.options.Now()
	ids := slices.Sorted(maps.Keys(s.studies))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, f := range s.followers {
		if f.busy || now.Before(f.due) {
			continue
		}
		behind, _ := slices.BinarySearch(ids, f.last+"\x00")
		for _, id := range slices.Concat(ids[behind:], ids[:behind]) {
			study := s.studies[id]
			when, told := f.when(study.owner, study.hooks, study.finished)
			if !told {
				continue
			}
			c := cursor{Hook: f.ID, Study: id, seen: -1}
			if known := f.cursors[id]; known != nil {
				c = *known
			}
			if len(c.Pending) > 0 || c.seen != study.newest || study.overTime(now, when, c) {
				f.busy, f.last = true, id
				turns = append(turns, turn{f, id, when, study.newest, c})
				break
			}
		}
	}
	return turns
}

// overTime reports whether the share of its time is used that the hook is to be told of.
func (w watched) overTime(now time.Time, when definition.Hook, c cursor) bool {
	if w.running == nil || w.running.ElapsedAt(now).Seconds() < w.running.Definition.Stop.Seconds*when.Spent {
		return false
	}
	before := c.Spent
	reader{cursor: &c, when: when, study: *w.running}.readSpent(now, w.running.ElapsedAt(now))
	return c.Spent != before
}

// take reads on in the study's log until there is something to tell, tries it, and keeps
// how far that came.
func (s *Service) take(ctx context.Context, t turn) {
	c, tried, err := s.step(ctx, t)
	if err != nil && ctx.Err() == nil {
		s.options.Logger.Error("tell a hook", "hook", t.f.reference(), "study", t.study, "error", err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	t.f.busy = false
	if err != nil {
		t.f.due = s.options.Now().Add(every)
		return
	}
	t.f.cursors[t.study] = &c
	if !tried {
		return
	}
	if t.f.failed++; c.Failing == nil {
		t.f.failed = 0
	}
	t.f.due = s.options.Now().Add(max(pause(t.f.failed), least[t.f.Kind]))
}

// least is the time between two messages of kinds that people read.
var least = map[hook.Kind]time.Duration{hook.Email: time.Minute}

// pause is how long the hook waits after so many tries in a row that failed: twice as long
// each time, of which a random part up to a half is left out.
func pause(failed int) time.Duration {
	wait := every
	for range failed {
		wait = min(2*wait, longestWait)
	}
	if failed == 0 {
		return wait
	}
	return wait - wait/2*time.Duration(secret(1)[0])/255
}

// step returns the cursor behind what it did, which is stored where that matters: what was
// only read is read again after a restart.
func (s *Service) step(ctx context.Context, t turn) (c cursor, tried bool, err error) {
	c = t.cursor
	stored, err := s.options.Store.Study(ctx, t.study)
	if problem.Is(err, problem.NotFound) {
		c.Pending, c.seen = nil, t.newest
		return c, false, nil // scan forgets it
	}
	if err != nil {
		return c, false, err
	}
	r := reader{cursor: &c, hook: t.f.entry, when: t.when, study: stored.InForce()}
	for len(c.Pending) == 0 && ctx.Err() == nil {
		events, err := s.options.Store.Events(ctx, t.study, c.Sequence, page)
		if err != nil {
			return c, false, err
		}
		for _, event := range events {
			if r.read(event); len(c.Pending) > 0 {
				break
			}
		}
		if len(events) == 0 {
			now := s.options.Now()
			r.readSpent(now, r.study.ElapsedAt(now))
			if c.Sequence >= t.newest { // else the newest is not durable yet
				c.seen = t.newest
			}
			break
		}
	}
	if len(c.Pending) == 0 {
		if r.study.Status.Over() && c.Sequence != t.cursor.Sequence {
			err = s.keep(ctx, c)
		}
		return c, false, err
	}
	message := c.Pending[0]
	outcome := s.tell(ctx, t.f.entry, message)
	if ctx.Err() != nil && !outcome.Told {
		return c, false, ctx.Err() // it was cut off, and is tried again by whoever serves then
	}
	now := s.options.Now().UTC().Round(0)
	c.Tried, c.Answer = &now, outcome.Answer
	switch {
	case outcome.Told:
		c.Told, c.Failing, c.Pending = c.Told+1, nil, c.Pending[1:]
	case c.Failing == nil:
		c.Failing = &now
	case now.Sub(message.At) > patience && now.Sub(*c.Failing) > patience:
		c.Dropped, c.Pending = c.Dropped+1, c.Pending[1:]
		s.options.Logger.Warn("a hook was not told", "hook", t.f.reference(), "study", t.study, "message", message.ID, "answer", outcome.Answer)
	}
	return c, true, s.keep(ctx, c)
}

func (s *Service) keep(ctx context.Context, c cursor) error {
	return s.options.Store.Apply(context.WithoutCancel(ctx), journal.Change{Pool: []journal.PoolEntry{journal.Entry(cursorEntry, c.Hook+"/"+c.Study, c)}})
}

// Test tells the hook that the caller names an example, once. The error is not_found, or
// unavailable while it is told something else.
func (s *Service) Test(ctx context.Context, name string) (hook.HookAnswer, error) {
	s.mutex.Lock()
	f, err := s.find(ctx, name)
	if err == nil && f.busy {
		err = problem.New(problem.Unavailable, "hook %s is being told something: try again in some seconds", f.Name)
	}
	if err != nil {
		s.mutex.Unlock()
		return hook.HookAnswer{}, err
	}
	f.busy = true
	s.mutex.Unlock()
	number := 12
	outcome := s.tell(ctx, f.entry, hook.Message{
		ID: "msg_" + hex.EncodeToString(secret(16)), Type: "test", At: s.options.Now().UTC(),
		Data: hook.Data{Study: "example", ID: "0000000000", Owner: f.Owner, Text: "Study example: trial 12 leads, accuracy 0.93 (rung 2); this is a test of hook " + f.Name, Trial: &number},
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f.busy = false
	return outcome, nil
}
