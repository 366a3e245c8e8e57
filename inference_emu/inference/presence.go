package inference

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
)

const (
	// boardEntry is the kind of the pool's entries that hold boards.
	boardEntry = "board"
	// mostBoards bounds the boards that are remembered; lately is for how long one that asks no
	// more is still thought to be there.
	mostBoards = 256
	lately     = 24 * time.Hour
	// keepEvery is how often it is kept that a board still asks.
	keepEvery = time.Hour
	// speakerTerm is for how long after its last question a process still speaks for a board.
	speakerTerm = 5 * time.Second
)

// speaker is the process that asks as a board, and until when no other may.
type speaker struct {
	agent string
	until time.Time
}

// roster are the boards that ask. It is safe for concurrent use.
type roster struct {
	options Options

	mutex    sync.Mutex // guards what follows; never held over a call out
	boards   map[string]*emu.Board
	speakers map[string]speaker // by name of the board
}

func newRoster(options Options) *roster {
	return &roster{options: options, boards: make(map[string]*emu.Board), speakers: make(map[string]speaker)}
}

// Kinds are those of the pool's entries that a [Service] remembers.
func Kinds() []string { return []string{boardEntry} }

// Remember takes the boards that are kept, before the first call: a restarted server knows
// them, also those that do not come back.
func (r *roster) Remember(entries []journal.PoolEntry) error {
	for _, entry := range entries {
		if err := journal.Decode(entry, func(one emu.Board) { r.boards[one.Name] = &one }); err != nil {
			return fmt.Errorf("the board %s: %w", entry.Name, err)
		}
	}
	return nil
}

// waiting is how long the board's question may be held open.
func waiting(ask emu.BoardAsk) time.Duration {
	return time.Duration(ask.WaitSeconds * float64(time.Second))
}

// admit lets the process ask as the board; leave has to be called when it is answered. Another
// one is refused, until the first has asked no more for [speakerTerm], or has hung up.
func (r *roster) admit(ctx context.Context, ask emu.BoardAsk) (leave func(), err error) {
	now := r.options.Now()
	own := speaker{ask.Agent, now.Add(waiting(ask) + speakerTerm)}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	maps.DeleteFunc(r.speakers, func(_ string, one speaker) bool { return now.After(one.until) })
	if other, speaks := r.speakers[ask.Board]; speaks && other.agent != ask.Agent {
		return nil, problem.New(problem.Conflict, "another agent asks as board %s already: end it, or start this one with another --name", ask.Board)
	}
	r.speakers[ask.Board] = own
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		switch {
		case r.speakers[ask.Board] != own: // it has asked again
		case ctx.Err() != nil && !ask.Busy: // it has ended, or asks again at once
			delete(r.speakers, ask.Board)
		default:
			r.speakers[ask.Board] = speaker{ask.Agent, r.options.Now().Add(speakerTerm)}
		}
	}, nil
}

// note makes durable that the board is there, and notes it; old is what was known of it.
func (r *roster) note(ctx context.Context, ask emu.BoardAsk) (old emu.Board, err error) {
	now := r.options.Now()
	keep, forget := r.news(ask, now)
	if keep {
		entries := []journal.PoolEntry{journal.Entry(boardEntry, ask.Board, emu.Board{Name: ask.Board, Device: ask.Device, Site: ask.Site, Seen: now})}
		if forget != "" {
			entries = append(entries, journal.PoolEntry{Kind: boardEntry, Name: forget})
		}
		if _, err := r.options.Apply(ctx, entries, nil); err != nil {
			return old, err
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.boards, forget)
	one, known := r.boards[ask.Board]
	if !known {
		one = &emu.Board{}
		r.boards[ask.Board] = one
	}
	old = *one
	one.Name, one.Device, one.Site, one.Seen, one.Build = ask.Board, ask.Device, ask.Site, now, access.CallerOf(ctx).Program
	return old, nil
}

// change changes what is told of the board, if it is known.
func (r *roster) change(name string, to func(*emu.Board)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if one, known := r.boards[name]; known {
		to(one)
	}
}

// news says whether the board is to be kept: something of it is new, or an hour went; and
// which other one is forgotten for it.
func (r *roster) news(ask emu.BoardAsk, now time.Time) (keep bool, forget string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	old, known := r.boards[ask.Board]
	if !known && len(r.boards) >= mostBoards {
		forget = slices.MinFunc(slices.Collect(maps.Values(r.boards)), func(a, b *emu.Board) int { return a.Seen.Compare(b.Seen) }).Name
	}
	return !known || old.Device != ask.Device || !reflect.DeepEqual(old.Site, ask.Site) || !old.Seen.Truncate(keepEvery).Equal(now.Truncate(keepEvery)), forget
}

// Boards are those that asked in the last day, by name.
func (r *roster) Boards(context.Context) (emu.Boards, error) {
	now := r.options.Now()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	answer := emu.Boards{Boards: []emu.Board{}}
	for _, one := range r.boards {
		if now.Sub(one.Seen) <= lately {
			answer.Boards = append(answer.Boards, *one)
		}
	}
	slices.SortFunc(answer.Boards, func(a, b emu.Board) int { return cmp.Compare(a.Name, b.Name) })
	return answer, nil
}

// boardsOf are the boards of the device, the last that asked first, without those that it had
// not heard of for a day then.
func (r *roster) boardsOf(name string) (list []emu.Board) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, one := range r.boards {
		if one.Device == name {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b emu.Board) int { return b.Seen.Compare(a.Seen) })
	for i := range list {
		if list[0].Seen.Sub(list[i].Seen) > lately {
			return list[:i]
		}
	}
	return list
}

// siteOf is what a board said of the device, with the providers that any board of it has.
func (r *roster) siteOf(name string) (site emu.Site, ok bool) {
	boards := r.boardsOf(name)
	if len(boards) == 0 {
		return site, false
	}
	var providers []string
	for _, one := range boards {
		providers = append(providers, one.Site.Providers...)
	}
	slices.Sort(providers)
	site = boards[0].Site
	site.Machine, site.Providers = name, slices.Compact(providers)
	return site, true
}

// seen is when a board of the device asked last; nil: none did in the last day.
func (r *roster) seen(name string) *time.Time {
	if boards := r.boardsOf(name); len(boards) > 0 && r.options.Now().Sub(boards[0].Seen) <= lately {
		return &boards[0].Seen
	}
	return nil
}

// CheckBoards says which boards a study names that nobody has heard of.
func (r *roster) CheckBoards(def definition.Definition) error {
	if def.Inference == nil {
		return nil
	}
	var faults []problem.Field
	for i, name := range def.Inference.Names() {
		if own, ok := strings.CutPrefix(name, device.BoardPrefix); ok && r.seen(name) == nil {
			faults = append(faults, problem.Field{Path: fmt.Sprintf("inference.devices[%d]", i), Value: name,
				Message: "is no board that has asked this server for work in the last day: run \"tandem edge agent --device " + own + "\" on it first"})
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the study names boards that are not there", faults)
	}
	return nil
}
