package study

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/pool"
)

// mostRules bounds how many quotas, reservations and drains there are of each.
const mostRules = 10_000

func quotaOf(q protocol.Quota) pool.Quota {
	return pool.Quota{Trials: q.Trials, GPUs: q.GPUs, GPUSeconds: q.GPUSecondsADay, Joules: q.JoulesADay, Weight: q.Weight, Preempt: q.Preempt}
}

func shownQuota(q pool.Quota) *protocol.Quota {
	return &protocol.Quota{Trials: q.Trials, GPUs: q.GPUs, GPUSecondsADay: q.GPUSeconds, JoulesADay: q.Joules, Weight: q.Weight, Preempt: q.Preempt}
}

// checkUser returns a fault unless the name could be a user's, or "admin".
func checkUser(at, user string) []problem.Field {
	if user == "" || len(user) > 128 || strings.Contains(user, journal.Separator) || strings.ContainsFunc(user, func(r rune) bool { return r < ' ' }) {
		return []problem.Field{{Path: at, Value: user, Message: "must be a user's name, 1 to 128 bytes without : and control characters, or admin for the administrators"}}
	}
	return nil
}

// SetQuota bounds what the user has of the pool, in place of any quota before.
func (s *Service) SetQuota(ctx context.Context, user string, quota protocol.Quota) (protocol.QuotaView, error) {
	if faults := checkUser("user", user); len(faults) > 0 {
		return protocol.QuotaView{}, problem.WithFields("the quota is not valid", faults)
	}
	users, err := s.users(ctx)
	if err != nil {
		return protocol.QuotaView{}, err
	}
	if err := s.governing.Enter(ctx); err != nil {
		return protocol.QuotaView{}, err
	}
	defer s.governing.Leave()
	owner := ownerNamed(user)
	s.poolMutex.Lock()
	_, has := s.rules.quotas[owner]
	full := !has && len(s.rules.quotas) >= mostRules
	view := s.quotaView(owner, s.holdings())
	s.poolMutex.Unlock()
	view.UserAbsent = absentUser(owner, users)
	if full {
		return protocol.QuotaView{}, problem.New(problem.Exhausted, "there are %d quotas, the most there may be: remove one first", mostRules)
	}
	view.Quota = &quota
	err = govern(ctx, s, &view, []PoolEntry{poolEntry(quotaEntry, user, quota)}, func(r *rules) {
		r.quotas = maps.Clone(r.quotas)
		r.quotas[owner] = quotaOf(quota)
	})
	return view, err
}

// RemoveQuota lets the user have what there is again.
func (s *Service) RemoveQuota(ctx context.Context, user string) error {
	if err := s.governing.Enter(ctx); err != nil {
		return err
	}
	defer s.governing.Leave()
	owner := ownerNamed(user)
	s.poolMutex.Lock()
	_, has := s.rules.quotas[owner]
	s.poolMutex.Unlock()
	if !has {
		return noQuota(user)
	}
	var nothing struct{}
	return govern(ctx, s, &nothing, []PoolEntry{{Kind: quotaEntry, Name: user}}, func(r *rules) {
		r.quotas = maps.Clone(r.quotas)
		delete(r.quotas, owner)
	})
}

func noQuota(user string) error { return problem.New(problem.NotFound, "user %q has no quota", user) }

// Quota is the user's quota and what its trials have. A user sees its own only.
func (s *Service) Quota(ctx context.Context, user string) (protocol.QuotaView, error) {
	views, err := s.Quotas(ctx)
	for _, one := range views {
		if one.User == user && one.Quota != nil {
			return one, nil
		}
	}
	if err != nil {
		return protocol.QuotaView{}, err
	}
	return protocol.QuotaView{}, noQuota(user)
}

// absentUser reports whether the owner of studies is none of the users there are;
// nil: any may be. The administrators always are.
func absentUser(owner string, users map[string]bool) bool {
	return owner != "" && users != nil && !users[owner]
}

// Quotas are those of all users that have one, or whose trials have something of
// the pool, by name. A user sees its own only.
func (s *Service) Quotas(ctx context.Context) ([]protocol.QuotaView, error) {
	caller := callerOf(ctx)
	users, err := s.users(ctx)
	if err != nil {
		return nil, err
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	held := s.holdings()
	owners := map[string]bool{}
	for owner := range s.rules.quotas {
		owners[owner] = true
	}
	for owner := range held.ByOwner {
		owners[owner] = true
	}
	if caller.Sight == Own {
		owners[caller.Owner] = true
	}
	views := []protocol.QuotaView{}
	for owner := range owners {
		if caller.Sight == All || caller.Sight == Own && caller.Owner == owner {
			view := s.quotaView(owner, held)
			view.UserAbsent = absentUser(owner, users)
			views = append(views, view)
		}
	}
	slices.SortFunc(views, func(a, b protocol.QuotaView) int { return cmp.Compare(a.User, b.User) })
	return views, nil
}

// quotaView is an owner's line. The pool's lock is held.
func (s *Service) quotaView(owner string, held pool.Holdings) protocol.QuotaView {
	amount, spent := held.ByOwner[owner], s.spentBy(owner)
	view := protocol.QuotaView{User: namedOwner(owner), Uses: protocol.PoolUse{
		Trials: amount.Trials, GPUs: amount.GPUs, Cores: amount.Cores, DominantShare: amount.DominantShare(held.Pool),
		GPUSecondsToday: spent.GPUSeconds, JoulesToday: spent.Joules,
	}}
	if quota, has := s.rules.quotas[owner]; has {
		view.Quota = shownQuota(quota)
	}
	return view
}
