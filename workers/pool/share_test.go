package pool_test

import (
	"testing"

	"github.com/tandem-tune/tandem/workers/pool"
)

// A trial that moves is counted where it waits, and once when it is being leased
// there: its user at quota would have one too many for that moment.
func TestATrialThatIsLeasedWhereItIsKeptCountsOnce(t *testing.T) {
	var registry pool.Registry
	var leases pool.Leases
	count := func() int {
		return pool.Hold(&registry, &leases, func(pool.Member) bool { return true }).ByOwner["ada"].Trials
	}
	leases.Keep(pool.Keeping{Lease: pool.Lease{Study: "s", Owner: "ada", Trial: "s-0", Epoch: 1, Worker: "there", Cores: 2}})
	waits := count()
	ticket := leases.Pend(pool.Lease{Study: "s", Owner: "ada", Worker: "there", Cores: 2})
	decided := count()
	other := leases.Pend(pool.Lease{Study: "s", Owner: "ada", Worker: "elsewhere", Cores: 2})
	both := count()
	leases.Settle(ticket)
	leases.Settle(other)
	if after := count(); waits != 1 || decided != 1 || both != 2 || after != 1 {
		t.Errorf("%d trials while it waits, %d while it is leased, %d with one that is leased elsewhere, %d after; want 1, 1, 2, 1", waits, decided, both, after)
	}
}
