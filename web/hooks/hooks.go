// Package hooks tells people and programs what happens in studies (docs/hooks.md).
//
// The outbox is the study's own log: a stored cursor says how far a hook was told of it.
// It moves on once the receiver took the message, so that each is told at least once,
// whoever serves the data then. The package's lock is never held over a call to the store
// or to a receiver.
package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/study/journal"
)

// mostHooks bounds how many hooks an owner has. Each tries one message at a time, so it
// bounds what the server does for an owner at once.
const mostHooks = 10

// The kinds of the pool's entries.
const (
	hookEntry   = "hook"
	cursorEntry = "hook_cursor"
)

// Store keeps hooks, and has the studies' logs.
type Store interface {
	Apply(ctx context.Context, change journal.Change) error
	Study(ctx context.Context, ref string) (journal.Study, error)
	Studies(ctx context.Context) ([]journal.Study, error)
	Events(ctx context.Context, study string, after int64, limit int) ([]journal.Event, error)
	PoolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error)
}

// Options make a Service.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	Store  Store
	// Newest returns the number of the newest event of each study that may go on.
	Newest func() map[string]int64
	// Allowed are networks that hooks may reach though they are not public.
	Allowed []netip.Prefix
	// Programs are the programs that hooks may run.
	Programs []string
	// Mail sends e-mail; without a host none is sent.
	Mail Mail
}

// entry is a hook as it is stored, with its secrets.
type entry struct {
	ID      string    `json:"id"`
	Owner   string    `json:"owner"`
	Created time.Time `json:"created"`
	Secret  string    `json:"secret,omitempty"`
	hook.HookRequest
}

func (e entry) reference() string { return journal.Reference(e.Owner, e.Name) }

// to is the receiver, without what may be secret.
func (e entry) to() string {
	switch e.Kind {
	case hook.Command:
		return e.Command[0]
	case hook.Email:
		return e.Address
	}
	address, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return address.Host
}

func (e entry) view() hook.HookView {
	return hook.HookView{Hook: e.Hook, Owner: cmp.Or(e.Owner, access.Administrators), Kind: e.Kind, To: e.to(), All: e.All, Created: e.Created}
}

// when is what the hook is told of the study; false: nothing.
func (e entry) when(owner string, named []definition.Hook, finished *time.Time) (definition.Hook, bool) {
	for _, one := range named {
		if journal.Reference(owner, one.Name) == e.reference() && e.Kind != hook.Command {
			return one, true
		}
	}
	return e.Hook, e.All && (e.Owner == "" || e.Owner == owner) && (finished == nil || finished.After(e.Created))
}

// follower is a hook with what it was told of studies.
type follower struct {
	entry
	cursors map[string]*cursor // by study
	busy    bool
	due     time.Time // when the next message may be tried
	failed  int       // tries in a row
	last    string    // the study that had its turn last
}

// Service tells hooks. Its methods may be called at once.
type Service struct {
	options Options
	making  gate.Gate // held while a hook is made

	mutex     sync.Mutex
	followers map[string]*follower // by reference
	rescan    bool                 // studies that are over may have something for a new hook
	studies   map[string]watched   // used by Run alone
}

// New returns a Service with the hooks that are stored.
func New(ctx context.Context, options Options) (*Service, error) {
	s := &Service{options: options, making: gate.New(), followers: map[string]*follower{}, studies: map[string]watched{}, rescan: true}
	byID := map[string]*follower{}
	entries, err := options.Store.PoolEntries(ctx, hookEntry)
	for _, one := range entries {
		err = cmp.Or(err, journal.Decode(one, func(stored entry) {
			f := &follower{entry: stored, cursors: map[string]*cursor{}}
			s.followers[stored.reference()], byID[stored.ID] = f, f
		}))
	}
	if err != nil {
		return nil, problem.New(problem.Internal, "load the hooks: %w", err)
	}
	entries, err = options.Store.PoolEntries(ctx, cursorEntry)
	for _, one := range entries {
		err = cmp.Or(err, journal.Decode(one, func(stored cursor) {
			stored.seen = -1
			if f := byID[stored.Hook]; f != nil {
				f.cursors[stored.Study] = &stored
			}
		}))
	}
	if err != nil {
		return nil, problem.New(problem.Internal, "load what hooks were told: %w", err)
	}
	return s, nil
}

func secret(bytes int) []byte {
	drawn := make([]byte, bytes)
	rand.Read(drawn) //nolint:errcheck // crypto/rand.Read never fails (Go 1.24)
	return drawn
}

// Create makes a hook of the caller's. The error is invalid and names every fault, or a
// conflict where there is one of the name.
func (s *Service) Create(ctx context.Context, ask hook.HookRequest) (hook.IssuedHook, error) {
	caller := access.CallerOf(ctx)
	if faults := s.faults(ask, caller.Owner == ""); len(faults) > 0 {
		return hook.IssuedHook{}, problem.WithFields("the hook is not valid", faults)
	}
	made := entry{ID: hex.EncodeToString(secret(8)), Owner: caller.Owner, Created: s.options.Now().UTC().Round(0), HookRequest: ask}
	made.Hook = ask.Hook.Filled()
	if made.Kind == hook.Webhook {
		made.Secret = "whsec_" + base64.StdEncoding.EncodeToString(secret(24))
	}
	if err := s.making.Enter(ctx); err != nil {
		return hook.IssuedHook{}, err
	}
	defer s.making.Leave()
	if err := s.room(made); err != nil {
		return hook.IssuedHook{}, err
	}
	change := journal.Change{Pool: []journal.PoolEntry{journal.Entry(hookEntry, made.reference(), made)}}
	if err := s.options.Store.Apply(context.WithoutCancel(ctx), change); err != nil {
		return hook.IssuedHook{}, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.followers[made.reference()], s.rescan = &follower{entry: made, cursors: map[string]*cursor{}}, true
	return hook.IssuedHook{HookView: made.view(), Secret: made.Secret}, nil
}

func (s *Service) room(made entry) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := 0
	for _, one := range s.followers {
		if one.Owner == made.Owner {
			count++
		}
	}
	if s.followers[made.reference()] != nil {
		return problem.New(problem.Conflict, "a hook named %q exists already: choose another name, or delete it first", made.Name)
	}
	if count >= mostHooks {
		return problem.New(problem.Conflict, "there are %d hooks of yours, and there may be no more: delete one first", count)
	}
	return nil
}

var hookName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// faults are what is wrong with the request.
func (s *Service) faults(ask hook.HookRequest, admin bool) []problem.Field {
	faults := ask.Check("")
	wrong := func(path string, value any, message string) {
		faults = append(faults, problem.Field{Path: path, Value: value, Message: message})
	}
	if !hookName.MatchString(ask.Name) {
		wrong("name", ask.Name, "must be 1 to 64 characters, a letter or a digit and then letters, digits and . _ -")
	}
	switch ask.Kind {
	case hook.Webhook, hook.Slack:
		address, err := url.Parse(ask.URL)
		if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" || address.User != nil || len(ask.URL) > 2048 {
			wrong("url", nil, "must be https://HOST/PATH without a user, at most 2,048 bytes; http only for addresses that the server's operator allowed")
		} else if err := s.never(address); err != nil {
			wrong("url", nil, "is never told: "+err.Error())
		}
	case hook.Email:
		if fault := s.options.Mail.fault(ask.Address); fault != "" {
			wrong("address", ask.Address, fault)
		}
	case hook.Command:
		switch {
		case !admin:
			wrong("kind", string(ask.Kind), "must be webhook, slack or email: only administrators have commands run")
		case len(ask.Command) == 0 || !s.runs(ask.Command[0]):
			wrong("command", strings.Join(ask.Command, " "), "must begin with a program that the server was started with: tandem serve --allow-hook-program PROGRAM")
		case !ask.All:
			wrong("all", ask.All, "must be true: no study file may name a command")
		}
	default:
		wrong("kind", string(ask.Kind), "must be webhook, slack, email or command")
	}
	if len(ask.Command) > 0 && ask.Kind != hook.Command {
		wrong("command", ask.Command[0], "must be left out: only the kind command runs one")
	}
	if ask.URL != "" && ask.Kind != hook.Webhook && ask.Kind != hook.Slack {
		wrong("url", nil, "must be left out: only the kinds webhook and slack have one")
	}
	if ask.Address != "" && ask.Kind != hook.Email {
		wrong("address", ask.Address, "must be left out: only the kind email has one")
	}
	return faults
}

func (s *Service) runs(program string) bool {
	return filepath.IsAbs(program) && slices.Contains(s.options.Programs, program)
}

// find returns the hook that the caller means; the error is not_found.
func (s *Service) find(ctx context.Context, name string) (*follower, error) {
	caller := access.CallerOf(ctx)
	for _, f := range []*follower{s.followers[name], s.followers[journal.Reference(caller.Owner, name)]} {
		if f != nil && caller.Sees("", f.Owner) {
			return f, nil
		}
	}
	return nil, problem.New(problem.NotFound, "there is no hook %q: tandem hook create makes one", name)
}

// Hooks lists the hooks that the caller sees, by owner and name.
func (s *Service) Hooks(ctx context.Context) ([]hook.HookView, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	views := []hook.HookView{}
	for _, ref := range slices.Sorted(maps.Keys(s.followers)) {
		if f := s.followers[ref]; access.CallerOf(ctx).Sees("", f.Owner) {
			views = append(views, f.view())
		}
	}
	return views, nil
}

// Delete removes a hook with what it was told. The error is not_found.
func (s *Service) Delete(ctx context.Context, name string) error {
	s.mutex.Lock()
	f, err := s.find(ctx, name)
	if err != nil {
		s.mutex.Unlock()
		return err
	}
	change := journal.Change{Pool: []journal.PoolEntry{{Kind: hookEntry, Name: f.reference()}}}
	for study := range f.cursors {
		change.Pool = append(change.Pool, journal.PoolEntry{Kind: cursorEntry, Name: f.ID + "/" + study})
	}
	s.mutex.Unlock()
	if err := s.options.Store.Apply(context.WithoutCancel(ctx), change); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.followers[f.reference()] == f {
		delete(s.followers, f.reference())
	}
	return nil
}

// Check refuses a study that the owner's hooks cannot be told of. The error is invalid.
func (s *Service) Check(ctx context.Context, def definition.Definition) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var faults []problem.Field
	for i, one := range def.Hooks {
		f, message := s.followers[journal.Reference(access.CallerOf(ctx).Owner, one.Name)], ""
		if f == nil {
			message = "must be the name of one of your hooks: tandem hook create makes one"
		} else if f.Kind == hook.Command {
			message = "must not be a hook that runs a command: those are told of all studies"
		}
		if message != "" {
			faults = append(faults, problem.Field{Path: fmt.Sprintf("hooks[%d].name", i), Value: one.Name, Message: message})
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the study file names hooks that cannot be told", faults)
	}
	return nil
}

// Of says what became of telling the caller's hooks of the study, by their names.
func (s *Service) Of(ctx context.Context, study protocol.StudyView) []hook.HookDelivery {
	owner, named := study.Owner, study.Definition.Hooks
	if owner == access.Administrators {
		owner = ""
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := []hook.HookDelivery{}
	for _, ref := range slices.Sorted(maps.Keys(s.followers)) {
		f := s.followers[ref]
		if _, told := f.when(owner, named, study.Finished); !told || !access.CallerOf(ctx).Sees("", f.Owner) {
			continue
		}
		one := hook.HookDelivery{Name: f.Name, Kind: f.Kind, To: f.to()}
		if c := f.cursors[study.ID]; c != nil {
			one.Delivered, one.Waiting = c.Delivered, len(c.Pending)
		}
		list = append(list, one)
	}
	for _, one := range named {
		if s.followers[journal.Reference(owner, one.Name)] == nil {
			list = append(list, hook.HookDelivery{Name: one.Name, Delivered: hook.Delivered{Answer: "there is no hook of this name any more"}})
		}
	}
	return list
}
