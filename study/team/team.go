// Package team keeps the groups of users, and with which of them studies are shared. What
// a role allows is decided in package access.
package team

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
)

// The kinds of the pool's entries: groups by name, groups of a study by its id, and who a
// user is at an identity provider, by the user's name.
const (
	groupEntry    = "group"
	ShareEntry    = "share"
	identityEntry = "identity"
)

// Kinds are the kinds of entries that [Directory.Load] takes.
func Kinds() []string { return []string{groupEntry, ShareEntry, identityEntry} }

// mostGroups bounds how many groups there are.
const mostGroups = 1000

// Options are what a Directory takes from its surroundings.
type Options struct {
	// Find returns the study with the reference, if the caller may do with it what it asks for.
	Find func(ctx context.Context, ref string) (journal.Study, error)
	// Apply makes the entries durable, with the answer under the call's key.
	Apply func(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error)
	// Users are the names of the users who have tokens; nil: none.
	Users func(context.Context) (map[string]bool, error)
}

// Directory has the use cases. It is safe for concurrent use.
type Directory struct {
	options Options
	gate    gate.Gate // one change is made at a time
	now     atomic.Pointer[state]
}

// state is what holds at a time. It never changes.
type state struct {
	groups map[string]protocol.UserGroup
	shares map[string][]string // groups by the id of the study
	known  map[string]Identity // by the user
}

// New returns a directory without groups.
func New(options Options) *Directory {
	d := &Directory{options: options, gate: gate.New()}
	d.now.Store(&state{map[string]protocol.UserGroup{}, map[string][]string{}, map[string]Identity{}})
	return d
}

// Load takes what is stored.
func (d *Directory) Load(entries []journal.PoolEntry) error {
	next := d.now.Load().copy()
	for _, one := range entries {
		if err := next.take(one); err != nil {
			return err
		}
	}
	d.now.Store(next)
	return nil
}

func (s *state) copy() *state {
	return &state{maps.Clone(s.groups), maps.Clone(s.shares), maps.Clone(s.known)}
}

// take makes the entry part of the state.
func (s *state) take(one journal.PoolEntry) error {
	switch {
	case one.Kind == groupEntry && one.Document == nil:
		delete(s.groups, one.Name)
	case one.Kind == groupEntry:
		return journal.Decode(one, func(group protocol.UserGroup) { s.groups[one.Name] = group })
	case one.Kind == identityEntry && one.Document == nil:
		delete(s.known, one.Name)
	case one.Kind == identityEntry:
		return journal.Decode(one, func(identity Identity) { s.known[one.Name] = identity })
	case one.Document == nil:
		delete(s.shares, one.Name)
	default:
		return journal.Decode(one, func(share protocol.Sharing) { s.shares[one.Name] = share.Groups })
	}
	return nil
}

// role is the user's in the group; NoRole for one who is not in it.
func (s *state) role(user string, group protocol.UserGroup) access.Role {
	role := access.ParseRole(group.Members[user])
	if slices.Contains(s.known[user].Groups, group.Name) {
		role = min(role, access.ParseRole(group.Provided))
	}
	return role
}

// Role is the largest role that groups give the user on the study.
func (d *Directory) Role(user, study string) access.Role {
	now, most := d.now.Load(), access.NoRole
	for _, name := range now.shares[study] {
		most = min(most, now.role(user, now.groups[name]))
	}
	return most
}

// SharedWith are the groups that the study is shared with.
func (d *Directory) SharedWith(study string) []string { return d.now.Load().shares[study] }

// Groups are those that the caller is in, by name; all for who sees all studies.
func (d *Directory) Groups(ctx context.Context) ([]protocol.UserGroup, error) {
	caller, now, list := access.CallerOf(ctx), d.now.Load(), []protocol.UserGroup{}
	for _, one := range now.groups {
		if now.knows(caller, one) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b protocol.UserGroup) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// knows reports whether the group exists for the caller.
func (s *state) knows(caller access.Caller, group protocol.UserGroup) bool {
	return caller.Sight == access.All || caller.Sight == access.Own && s.role(caller.Owner, group) < access.NoRole
}

// change makes the entries durable, with the answer, and then shows them.
func (d *Directory) change(ctx context.Context, answer any, entries ...journal.PoolEntry) error {
	if ours, err := d.options.Apply(ctx, entries, answer); !ours {
		return err
	}
	return d.Load(entries)
}

// SetGroup makes the group, or replaces the one of that name. The error is invalid and
// names every fault.
func (d *Directory) SetGroup(ctx context.Context, name string, ask protocol.UserGroupRequest) (protocol.UserGroup, error) {
	made := protocol.UserGroup{Name: name, UserGroupRequest: ask}
	var faults []problem.Field
	if !access.IsUser(name) {
		faults = append(faults, problem.Field{Path: "group", Value: name, Message: "must be 1 to 64 lower-case letters, digits and . _ -, the first a letter or a digit, and not admin"})
	}
	for _, user := range slices.Sorted(maps.Keys(ask.Members)) {
		if !access.IsUser(user) {
			faults = append(faults, problem.Field{Path: "members", Value: user, Message: "must be the name of a user, as in 'tandem token create --scope user --name alice'"})
		}
		if access.ParseRole(ask.Members[user]) == access.NoRole {
			faults = append(faults, problem.Field{Path: "members." + user, Value: ask.Members[user], Message: "must be viewer or editor"})
		}
	}
	if len(faults) > 0 {
		return made, problem.WithFields("the group is not valid", faults)
	}
	if err := d.gate.Enter(ctx); err != nil {
		return made, err
	}
	defer d.gate.Leave()
	now := d.now.Load()
	if _, replaced := now.groups[name]; !replaced && len(now.groups) >= mostGroups {
		return made, problem.New(problem.Exhausted, "there are %d groups, the most there may be: remove one first", mostGroups)
	}
	return made, d.change(ctx, &made, journal.Entry(groupEntry, name, made))
}

// RemoveGroup removes the group, and it from the studies that are shared with it: a later
// group of that name begins with none.
func (d *Directory) RemoveGroup(ctx context.Context, name string) error {
	if err := d.gate.Enter(ctx); err != nil {
		return err
	}
	defer d.gate.Leave()
	now := d.now.Load()
	if _, has := now.groups[name]; !has {
		return noGroup(name)
	}
	entries := []journal.PoolEntry{{Kind: groupEntry, Name: name}}
	for study, groups := range now.shares {
		if slices.Contains(groups, name) {
			entries = append(entries, shareOf(study, slices.DeleteFunc(slices.Clone(groups), func(one string) bool { return one == name })))
		}
	}
	return d.change(ctx, new(struct{}), entries...)
}

func noGroup(name string) error {
	return problem.New(problem.NotFound, "there is no group %q: 'tandem group list' says which there are", name)
}

// shareOf is the entry of a study that is shared with the groups.
func shareOf(study string, groups []string) journal.PoolEntry {
	if len(groups) == 0 {
		return journal.PoolEntry{Kind: ShareEntry, Name: study}
	}
	return journal.Entry(ShareEntry, study, protocol.Sharing{Groups: groups})
}

// Share shares the study with these groups, and no others. A user shares with groups that
// it is in: others do not exist for it.
func (d *Directory) Share(ctx context.Context, ref string, with protocol.Sharing) (protocol.Sharing, error) {
	made := protocol.Sharing{Groups: slices.Compact(slices.Sorted(slices.Values(with.Groups)))}
	found, err := d.options.Find(ctx, ref)
	if err != nil {
		return made, err
	}
	if err := d.gate.Enter(ctx); err != nil {
		return made, err
	}
	defer d.gate.Leave()
	now := d.now.Load()
	for _, name := range made.Groups {
		if group, has := now.groups[name]; has && (now.knows(access.CallerOf(ctx), group) || slices.Contains(now.shares[found.ID], name)) {
			continue
		}
		return made, fmt.Errorf("share study %s: %w", found.Definition.Name, noGroup(name))
	}
	return made, d.change(ctx, &made, shareOf(found.ID, made.Groups))
}
