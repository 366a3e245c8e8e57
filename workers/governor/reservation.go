package governor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

func shownReservation(r pool.Reservation, now time.Time) protocol.Reservation {
	return protocol.Reservation{ID: r.ID, User: r.User, Study: r.Name, StudyID: r.Study, Worker: r.Worker, GPUs: r.GPUs, From: r.From, To: r.To, Active: r.Active(now)}
}

// longestReservation bounds how long one lasts.
const longestReservation = 366 * 24 * time.Hour

// Reserve keeps a worker or some GPUs for a user or a study.
func (g *Governor) Reserve(ctx context.Context, ask protocol.ReservationRequest) (protocol.Reservation, error) {
	now := g.options.Now()
	made := protocol.Reservation{ID: g.options.NewID(), User: ask.User, Worker: ask.Worker, GPUs: ask.GPUs, From: now.Round(0).UTC(), To: ask.To.UTC()}
	if ask.From != nil {
		made.From = ask.From.UTC()
	}
	if faults := reservationFaults(ask, made, now); len(faults) > 0 {
		return protocol.Reservation{}, problem.WithFields("the reservation is not valid", faults)
	}
	if ask.Study != "" {
		found, err := g.options.Find(ctx, ask.Study)
		if err != nil {
			return protocol.Reservation{}, err
		}
		made.Study, made.StudyID = found.Reference(), found.ID
	}
	made.Active = rules.ReservationOf(made).Active(now)
	entry := journal.Entry(rules.ReservationEntry, made.ID, made)
	users, err := g.users(ctx)
	if err != nil {
		return protocol.Reservation{}, err
	}
	if err := g.gate.Enter(ctx); err != nil {
		return protocol.Reservation{}, err
	}
	defer g.gate.Leave()
	g.noteAbsent(&made, users)
	if len(g.allocator.Snapshot().Rules.Reservations) >= mostRules {
		return protocol.Reservation{}, problem.New(problem.Exhausted, "there are %d reservations, the most there may be: remove one first", mostRules)
	}
	if err := g.clash(rules.ReservationOf(made)); err != nil {
		return protocol.Reservation{}, err
	}
	err = g.govern(ctx, &made, []journal.PoolEntry{entry}, func(r *rules.Rules) { r.AddReservation(rules.ReservationOf(made)) })
	return made, err
}

// clash is a conflict if the worker is kept for somebody else at a time of the reservation.
func (g *Governor) clash(made pool.Reservation) error {
	for _, other := range g.allocator.Snapshot().Rules.Reservations {
		if made.Clashes(other) {
			whom := cmp.Or(other.User, "study "+other.Name)
			return problem.New(problem.Conflict, "worker %s is reserved for %s from %s to %s, by reservation %s: remove that one first (tandem reservation remove %s), or choose another time",
				made.Worker, whom, other.From.Format(time.RFC3339), other.To.Format(time.RFC3339), other.ID, other.ID)
		}
	}
	return nil
}

// users are the names of the users there are; nil where nobody can say.
func (g *Governor) users(ctx context.Context) (map[string]bool, error) {
	if g.options.Users == nil {
		return nil, nil
	}
	return g.options.Users(ctx)
}

// noteAbsent notes on the reservation what it names and is not there now. users are
// those there are; nil: any.
func (g *Governor) noteAbsent(r *protocol.Reservation, users map[string]bool) {
	gpus, named := 0, false
	for _, worker := range g.allocator.Snapshot().Workers {
		if worker.Alive {
			gpus, named = gpus+len(worker.Registration.Machine.GPUs), named || worker.Registration.Name == r.Worker
		}
	}
	r.WorkerAbsent = r.Worker != "" && !named
	r.GPUsAbsent = max(0, r.GPUs-gpus)
	r.UserAbsent = absentUser(r.User, users)
}

// reservationFaults names all that is wrong with what is asked for.
func reservationFaults(ask protocol.ReservationRequest, made protocol.Reservation, now time.Time) []problem.Field {
	var faults []problem.Field
	fault := func(at string, value any, message string) {
		if value == "" {
			value = nil // it is missing
		}
		faults = append(faults, problem.Field{Path: at, Value: value, Message: message})
	}
	if (ask.User == "") == (ask.Study == "") {
		fault("user", ask.User, "give the user it is for, or the study in study: one of the two")
	}
	if ask.User != "" {
		faults = append(faults, checkUser("user", ask.User)...)
	}
	if ask.User == access.Administrators {
		fault("user", ask.User, "must be a user: name the study where it is one of the administrators'")
	}
	if (ask.Worker == "") == (ask.GPUs == 0) {
		fault("worker", ask.Worker, "give the name of the worker that is kept, or how many GPUs are in gpus: one of the two")
	}
	if ask.GPUs < 0 {
		fault("gpus", ask.GPUs, "must be above 0")
	}
	switch {
	case !made.To.After(made.From):
		fault("to", ask.To, "must be after from")
	case !made.To.After(now):
		fault("to", ask.To, "must be in the future")
	case made.To.Sub(made.From) > longestReservation:
		fault("to", ask.To, "must be at most 366 days after from")
	}
	return faults
}

// Unreserve ends a reservation before its time.
func (g *Governor) Unreserve(ctx context.Context, id string) error {
	if err := g.gate.Enter(ctx); err != nil {
		return err
	}
	defer g.gate.Leave()
	known := slices.ContainsFunc(g.allocator.Snapshot().Rules.Reservations, func(r pool.Reservation) bool { return r.ID == id })
	if !known {
		return problem.New(problem.NotFound, "there is no reservation %q", id)
	}
	return g.govern(ctx, new(struct{}), []journal.PoolEntry{{Kind: rules.ReservationEntry, Name: id}}, func(r *rules.Rules) { r.RemoveReservation(id) })
}

// Reservations are those that hold or will, by when they begin. A user sees all
// of them, without the studies of others, since it may have to wait for them.
func (g *Governor) Reservations(ctx context.Context) ([]protocol.Reservation, error) {
	caller, now := access.CallerOf(ctx), g.options.Now()
	var users map[string]bool // whose names only those learn who see everything
	if caller.Sight == access.All {
		var err error
		if users, err = g.users(ctx); err != nil {
			return nil, err
		}
	}
	list := []protocol.Reservation{}
	for _, one := range g.allocator.Snapshot().Rules.Reservations {
		if !now.Before(one.To) {
			continue
		}
		shown := shownReservation(one, now)
		if shown.StudyID != "" { // another user may have it since
			found, err := g.options.Find(access.WithCaller(ctx, access.Caller{}), shown.StudyID)
			if err == nil {
				shown.Study = found.Reference()
			} else if !problem.Is(err, problem.NotFound) {
				return nil, err
			}
		}
		if caller.Sight != access.All && shown.StudyID != "" && (caller.Owner == "" || journal.OwnerOf(shown.Study) != caller.Owner) {
			shown.Study, shown.StudyID = "", ""
		}
		g.noteAbsent(&shown, users)
		list = append(list, shown)
	}
	slices.SortStableFunc(list, func(a, b protocol.Reservation) int { return a.From.Compare(b.From) })
	return list, nil
}
