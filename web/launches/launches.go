// Package launches is what launchers said last of the workers that they start.
//
// It is kept in memory alone: each launcher sends all of it again at each look, and keeps
// what must outlive its process in its own file. A request to try again is repeated to
// the launcher until its hold has gone; after a restart of the server the hold is shown
// as it was.
package launches

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
)

const (
	// most bounds the launchers of all, mostOfOne those of one holder: the one that was
	// silent for the longest makes room.
	most, mostOfOne = 256, 16
	// forgotten is after how long a silent one is not shown any more.
	forgotten = 24 * time.Hour
	// slack is how much later than it should one may report.
	slack = time.Minute
)

// Board holds what launchers said. It is safe for concurrent use.
type Board struct {
	mutex sync.Mutex
	said  map[string]*launcher // by id
}

type launcher struct {
	name, holder string
	heard        time.Time
	state        crew.LauncherState
	program      build.Build
	asked        map[string]time.Time // shapes to try again, with the end of the hold that is meant
}

// idOf is an id that the launcher keeps when the server is started again.
func idOf(holder, name string) string {
	sum := sha256.Sum256([]byte(holder + "\n" + name))
	return hex.EncodeToString(sum[:6])
}

// Report takes what the caller's launcher of that name knows.
func (b *Board) Report(caller access.Caller, name string, state crew.LauncherState, now time.Time) crew.LauncherReply {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	id := idOf(caller.Holder, name)
	one := b.said[id]
	if one == nil {
		if b.said == nil {
			b.said = map[string]*launcher{}
		}
		b.makeRoom(caller.Holder)
		one = &launcher{name: name, holder: caller.Holder, asked: map[string]time.Time{}}
		b.said[id] = one
	}
	one.heard, one.state, one.program = now, state, caller.Program
	holds := map[string]time.Time{}
	for _, shape := range state.Shapes {
		if shape.Hold != nil {
			holds[shape.Name] = shape.Hold.Until
		}
	}
	maps.DeleteFunc(one.asked, func(shape string, until time.Time) bool { return !holds[shape].Equal(until) })
	return crew.LauncherReply{TryAgain: append([]string{}, slices.Sorted(maps.Keys(one.asked))...)}
}

// makeRoom forgets the most silent launcher where there are too many.
func (b *Board) makeRoom(holder string) {
	for _, bound := range []struct {
		most int
		is   func(*launcher) bool
	}{{mostOfOne, func(one *launcher) bool { return one.holder == holder }}, {most, func(*launcher) bool { return true }}} {
		oldest, count := "", 0
		for id, one := range b.said {
			if bound.is(one) {
				count++
				if oldest == "" || one.heard.Before(b.said[oldest].heard) {
					oldest = id
				}
			}
		}
		if count >= bound.most {
			delete(b.said, oldest)
		}
	}
}

// Launchers are those whose workers trials of the caller may get, by name.
func (b *Board) Launchers(caller access.Caller, now time.Time) []crew.Launcher {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	maps.DeleteFunc(b.said, func(_ string, one *launcher) bool { return now.Sub(one.heard) > forgotten })
	list := []crew.Launcher{}
	for id, one := range b.said {
		if one.shownTo(caller) {
			list = append(list, one.view(id, caller, now))
		}
	}
	slices.SortFunc(list, func(a, b crew.Launcher) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return list
}

// shownTo reports whether trials of the caller may get its workers.
func (l *launcher) shownTo(caller access.Caller) bool {
	_, ofUser := access.UserOf(l.holder)
	return !ofUser || caller.Sight == access.All || caller.Holds(l.holder)
}

// view is the launcher as the caller sees it.
func (l *launcher) view(id string, caller access.Caller, now time.Time) crew.Launcher {
	user, _ := access.UserOf(l.holder)
	every := time.Duration(l.state.EverySeconds * float64(time.Second))
	seen := crew.Launcher{
		ID: id, Name: l.name, User: user, Heard: l.heard, Silent: every > 0 && now.Sub(l.heard) > 3*every+slack,
		Yours: caller.Holds(l.holder), LauncherState: l.state, Build: l.program,
	}
	seen.Shapes = slices.Clone(seen.Shapes)
	for i, shape := range seen.Shapes {
		if _, asked := l.asked[shape.Name]; asked {
			hold := *shape.Hold
			hold.TryAgain = true
			seen.Shapes[i].Hold = &hold
		}
	}
	return seen
}

// TryAgain has the launcher told not to wait for the end of a shape's hold.
//
// The error is not_found for a launcher that the caller does not see, forbidden if it is
// another's, conflict if the shape is not on hold.
func (b *Board) TryAgain(caller access.Caller, id, shape string, now time.Time) (crew.Launcher, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	one := b.said[id]
	switch {
	case one == nil || !one.shownTo(caller):
		return crew.Launcher{}, problem.New(problem.NotFound, "there is no launcher %q: GET /pool/launches lists them", id)
	case !caller.Holds(one.holder):
		return crew.Launcher{}, problem.New(problem.Forbidden, "the launcher %s starts workers for everybody: ask an administrator to try again", one.name)
	}
	for _, known := range one.state.Shapes {
		if known.Name == shape && known.Hold != nil {
			one.asked[shape] = known.Hold.Until
			return one.view(id, caller, now), nil
		}
	}
	return crew.Launcher{}, problem.New(problem.Conflict, "the shape %q of the launcher %s is not on hold: nothing keeps it from being started", shape, one.name)
}
