package pool

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/protocol"
)

// Member is a registered worker.
type Member struct {
	Registration protocol.WorkerRegistration
	// Holder is to whom it belongs.
	Holder   string
	LastSeen time.Time
	// Load is how busy its machine last was; nil where it does not say.
	Load *protocol.Load
	// Sprint is what is left for sprints on it; nil where its owner allows none.
	Sprint *protocol.SprintAccount
	// Short says that a trial was ready and had no room on it, when it last
	// asked for one.
	Short bool
	// Reserved is how many cores are kept for a trial that is being chosen.
	Reserved int
	// Only is the one study that it asks for, by name, reference or id; empty: all.
	Only string
	// Refuses has the studies that it does not run, with the reasons.
	Refuses map[string]string
}

// Registry holds the workers by id. The zero value is empty and ready.
type Registry struct {
	byID map[string]Member
	// histories outlive that a worker registers again.
	histories map[string]*History
}

// Register adds a worker, or replaces what it said before.
func (r *Registry) Register(registration protocol.WorkerRegistration, holder string, now time.Time) {
	if r.byID == nil {
		r.byID = make(map[string]Member)
	}
	r.byID[registration.ID] = Member{Registration: registration, Holder: holder, LastSeen: now}
}

// Seen notes that the worker was heard of; false if it is not registered.
func (r *Registry) Seen(id string, now time.Time) bool {
	member, ok := r.byID[id]
	if !ok {
		return false
	}
	member.LastSeen = now
	r.byID[id] = member
	return true
}

// NoteLoad notes how busy the worker's machine is now.
func (r *Registry) NoteLoad(id string, load *protocol.Load, now time.Time) {
	member, ok := r.byID[id]
	if !ok {
		return
	}
	member.Load = load
	r.byID[id] = member
	if r.histories == nil {
		r.histories = make(map[string]*History)
	}
	if r.histories[id] == nil {
		r.histories[id] = &History{}
	}
	r.histories[id].Note(*load, now)
}

// History is how busy the worker's machine was in the last hour.
func (r *Registry) History(id string, now time.Time) []protocol.LoadStep {
	return r.histories[id].Steps(now)
}

// Member returns the worker with the id.
func (r *Registry) Member(id string) (Member, bool) {
	member, ok := r.byID[id]
	return member, ok
}

// NoteSprint notes what is left for sprints on the worker.
func (r *Registry) NoteSprint(id string, account *protocol.SprintAccount) {
	if member, ok := r.byID[id]; ok {
		member.Sprint = account
		r.byID[id] = member
	}
}

// NoteShort notes whether a trial was ready that the worker had no room for.
func (r *Registry) NoteShort(id string, short bool) {
	if member, ok := r.byID[id]; ok && member.Short != short {
		member.Short = short
		r.byID[id] = member
	}
}

// NoteOnly notes the one study that the worker asks for; empty: all.
func (r *Registry) NoteOnly(id, study string) {
	if member, ok := r.byID[id]; ok && member.Only != study {
		member.Only = study
		r.byID[id] = member
	}
}

// mostRefused bounds the studies that a worker is known to refuse. Of more it is
// asked again.
const mostRefused = 1000

// Refuse notes that the worker does not run the study, until it registers anew.
func (r *Registry) Refuse(id, study, reason string) {
	member, ok := r.byID[id]
	if !ok {
		return
	}
	refused := maps.Clone(member.Refuses)
	if refused == nil || len(refused) >= mostRefused {
		refused = map[string]string{}
	}
	refused[study] = reason
	member.Refuses = refused
	r.byID[id] = member
}

// Reserve keeps cores of the worker for a trial that is being chosen; 0 lets
// them go.
func (r *Registry) Reserve(id string, cores int) {
	if member, ok := r.byID[id]; ok {
		member.Reserved = cores
		r.byID[id] = member
	}
}

// Remove forgets the worker; false if it was not registered.
func (r *Registry) Remove(id string) bool {
	_, ok := r.byID[id]
	delete(r.byID, id)
	delete(r.histories, id)
	return ok
}

// Forget drops the workers not heard of since the time.
func (r *Registry) Forget(before time.Time) {
	for id, member := range r.byID {
		if member.LastSeen.Before(before) {
			r.Remove(id)
		}
	}
}

// Members returns the workers by name, then id.
func (r *Registry) Members() []Member {
	members := make([]Member, 0, len(r.byID))
	for _, member := range r.byID {
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b Member) int {
		if c := strings.Compare(a.Registration.Name, b.Registration.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Registration.ID, b.Registration.ID)
	})
	return members
}
