package governor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/rules"
)

// mostRules bounds how many quotas, reservations and drains there are of each.
const mostRules = 10_000

// checkUser returns a fault unless the name could be a user's, or "admin".
func checkUser(at, user string) []problem.Field {
	if user == "" || len(user) > 128 || strings.Contains(user, journal.Separator) || strings.ContainsFunc(user, func(r rune) bool { return r < ' ' }) {
		return []problem.Field{{Path: at, Value: user, Message: "must be a user's name, 1 to 128 bytes without : and control characters, or admin for the administrators"}}
	}
	return nil
}

// SetQuota bounds what the user has of the pool, in place of any quota before.
func (g *Governor) SetQuota(ctx context.Context, user string, quota protocol.Quota) (protocol.QuotaView, error) {
	faults := checkUser("user", user)
	if quota.CostADay > 0 && !g.options.Priced {
		faults = append(faults, problem.Field{Path: "cost_a_day", Value: quota.CostADay, Message: "needs prices, and this server has none: start it with --prices FILE, or leave it out"})
	}
	if len(faults) > 0 {
		return protocol.QuotaView{}, problem.WithFields("the quota is not valid", faults)
	}
	users, err := g.users(ctx)
	if err != nil {
		return protocol.QuotaView{}, err
	}
	if err := g.gate.Enter(ctx); err != nil {
		return protocol.QuotaView{}, err
	}
	defer g.gate.Leave()
	owner := rules.OwnerNamed(user)
	view := g.allocator.QuotaViews(owner)[owner]
	view.UserAbsent = absentUser(owner, users)
	if view.Quota == nil && len(g.allocator.Snapshot().Rules.Quotas) >= mostRules {
		return protocol.QuotaView{}, problem.New(problem.Exhausted, "there are %d quotas, the most there may be: remove one first", mostRules)
	}
	view.Quota = &quota
	counted := rules.QuotaOf(quota)
	err = g.govern(ctx, &view, []journal.PoolEntry{journal.Entry(rules.QuotaEntry, user, quota)}, func(r *rules.Rules) { r.SetQuota(owner, &counted) })
	return view, err
}

// RemoveQuota lets the user have what there is again.
func (g *Governor) RemoveQuota(ctx context.Context, user string) error {
	if err := g.gate.Enter(ctx); err != nil {
		return err
	}
	defer g.gate.Leave()
	owner := rules.OwnerNamed(user)
	if _, has := g.allocator.Snapshot().Rules.Quotas[owner]; !has {
		return problem.New(problem.NotFound, "user %q has no quota", user)
	}
	return g.govern(ctx, new(struct{}), []journal.PoolEntry{{Kind: rules.QuotaEntry, Name: user}}, func(r *rules.Rules) { r.SetQuota(owner, nil) })
}

// absentUser reports whether the owner of studies is none of the users there are;
// nil: any may be. The administrators always are.
func absentUser(owner string, users map[string]bool) bool {
	return owner != "" && users != nil && !users[owner]
}

// Quotas are those of all users that have one, or whose trials have something of
// the pool, by name. A user sees its own only.
func (g *Governor) Quotas(ctx context.Context) ([]protocol.QuotaView, error) {
	caller := access.CallerOf(ctx)
	users, err := g.users(ctx)
	if err != nil {
		return nil, err
	}
	views := []protocol.QuotaView{}
	var own []string
	if caller.Sight == access.Own {
		own = []string{caller.Owner}
	}
	for owner, view := range g.allocator.QuotaViews(own...) {
		if caller.Sight == access.All || caller.Sight == access.Own && caller.Owner == owner {
			view.UserAbsent = absentUser(owner, users)
			views = append(views, view)
		}
	}
	slices.SortFunc(views, func(a, b protocol.QuotaView) int { return cmp.Compare(a.User, b.User) })
	return views, nil
}
