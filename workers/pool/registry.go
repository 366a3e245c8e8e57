package pool

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/selector"
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
	// Excluded has the studies of which it is given no trials now.
	Excluded map[string]Exclusion
	// Ends is when its machine is taken away, to the minute; zero: nobody knows of it.
	Ends time.Time
	// Type is its machine's. Kind is the same for workers of one holder that no study
	// tells apart while they run nothing.
	Type, Kind string
}

// kind is the member's Kind.
func (m Member) kind() string {
	machine := m.Registration.Machine
	holder, _, _ := strings.Cut(m.Holder, "/") // launches are not told apart
	return fmt.Sprint(m.Type, "\x00", holder, "\x00", m.Registration.Elastic, m.Registration.Slots, m.Registration.Sandbox.Complete(),
		machine.Cores, machine.MemoryBytes, machine.MemoryLimitBytes, len(machine.GPUs), machine.GPUMemoryBytes, m.Registration.Labels, m.Registration.Taints, m.Ends.Unix(), m.Registration.Recipients, m.Registration.Confidential, m.Registration.Features)
}

// Suits reports whether its machine is one that is wanted.
func (m Member) Suits(wanted selector.Selector) bool { return wanted.Suits(m.machine()) }

func (m Member) machine() selector.Machine {
	machine := m.Registration.Machine
	found := selector.Machine{GPUs: machine.GPUs, GPUMemoryBytes: machine.GPUMemoryBytes, Labels: m.Registration.Labels, Taints: m.Registration.Taints}
	if !m.Ends.IsZero() {
		found.Left = max(m.Ends.Sub(m.LastSeen), 1) // who asks for a trial was seen just now
	}
	return found
}

// Registry holds the workers by id. The zero value is empty and ready.
type Registry struct {
	byID map[string]*Member
	// exclusions are by study and worker, and outlive that a worker registers again.
	exclusions map[[2]string]Exclusion
	// sorted has them by name, then id.
	sorted []*Member
	// probed counts the changes of what is known by probes.
	probed uint64
	// histories outlive that a worker registers again.
	histories map[string]*History
}

// Register adds a worker, or replaces what it said before.
func (r *Registry) Register(registration protocol.WorkerRegistration, holder string, now time.Time) {
	if r.byID == nil {
		r.byID = make(map[string]*Member)
	}
	made := &Member{Registration: registration, Holder: holder, LastSeen: now, Type: registration.Machine.Type()}
	if stays := registration.StaysSeconds; stays > 0 {
		made.Ends = now.Add(time.Duration(stays * float64(time.Second))).Truncate(time.Minute)
	}
	made.Kind = made.kind()
	before, known := r.byID[registration.ID]
	if !known {
		before = &Member{}
	}
	if before.Type != made.Type && len(before.Registration.Probes)+len(registration.Probes) > 0 || !slices.Equal(before.Registration.Probes, registration.Probes) {
		r.probed++
	}
	r.byID[registration.ID] = made
	r.noteExclusions(registration.ID, now)
	if known && before.Registration.Name == registration.Name {
		at, _ := slices.BinarySearchFunc(r.sorted, before, byName)
		r.sorted[at] = made
		return
	}
	if known {
		r.unlist(before)
	}
	at, _ := slices.BinarySearchFunc(r.sorted, made, byName)
	r.sorted = slices.Insert(r.sorted, at, made)
}

func byName(a, b *Member) int {
	return cmp.Or(strings.Compare(a.Registration.Name, b.Registration.Name), strings.Compare(a.Registration.ID, b.Registration.ID))
}

func (r *Registry) unlist(member *Member) {
	if at, listed := slices.BinarySearchFunc(r.sorted, member, byName); listed {
		r.sorted = slices.Delete(r.sorted, at, at+1)
	}
}

// Seen notes that the worker was heard of; false if it is not registered.
func (r *Registry) Seen(id string, now time.Time) bool {
	member, ok := r.byID[id]
	if !ok {
		return false
	}
	member.LastSeen = now
	return true
}

// NoteLoad notes how busy the worker's machine is now.
func (r *Registry) NoteLoad(id string, load *protocol.Load, now time.Time) {
	member, ok := r.byID[id]
	if !ok {
		return
	}
	member.Load = load
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
	if member, ok := r.byID[id]; ok {
		return *member, true
	}
	return Member{}, false
}

// Find returns the registry's own record of the worker, which is not to be changed.
func (r *Registry) Find(id string) (*Member, bool) {
	member, ok := r.byID[id]
	return member, ok
}

// NoteSprint notes what is left for sprints on the worker.
func (r *Registry) NoteSprint(id string, account *protocol.SprintAccount) {
	if member, ok := r.byID[id]; ok {
		member.Sprint = account
	}
}

// NoteShort notes whether a trial was ready that the worker had no room for.
func (r *Registry) NoteShort(id string, short bool) {
	if member, ok := r.byID[id]; ok && member.Short != short {
		member.Short = short
	}
}

// NoteOnly notes the one study that the worker asks for; empty: all.
func (r *Registry) NoteOnly(id, study string) {
	if member, ok := r.byID[id]; ok && member.Only != study {
		member.Only = study
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
}

// Reserve keeps cores of the worker for a trial that is being chosen; 0 lets
// them go.
func (r *Registry) Reserve(id string, cores int) {
	if member, ok := r.byID[id]; ok {
		member.Reserved = cores
	}
}

// Remove forgets the worker; false if it was not registered.
func (r *Registry) Remove(id string) bool {
	member, ok := r.byID[id]
	if ok {
		r.unlist(member)
		if len(member.Registration.Probes) > 0 {
			r.probed++
		}
	}
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
	members := make([]Member, len(r.sorted))
	for i, member := range r.sorted {
		members[i] = *member
	}
	return members
}

// All goes through the registry's own records by name, then id. They are not to be
// changed.
func (r *Registry) All() iter.Seq[*Member] { return slices.Values(r.sorted) }

// Probed grows whenever what the workers' probes say has changed.
func (r *Registry) Probed() uint64 { return r.probed }
