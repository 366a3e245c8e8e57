package demand

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/workers/pool"
)

// Ask is what a study takes and could start now.
type Ask struct {
	Owner, Study string
	Priority     int
	// Running is what its trials have, in GPUs or slots.
	Running float64
	// Ready is how many trials wait, whatever there is. More is how many take what is
	// left then. Each takes so many GPUs or slots, and needs Need.
	Ready, More int
	Each        float64
	Need        pool.Need
}

// Account is what an owner with a quota may have, has, and has spent today.
type Account struct {
	Quota pool.Quota
	Held  pool.Amount
	Spent pool.Spent
}

// Sum is what all studies take and wait for, and the hosts that could run it. Studies of
// a higher priority wait first. An owner without an account has no quota; the accounts
// are used up.
func Sum(asks []Ask, hosts []Host, accounts map[string]Account) Look {
	slices.SortFunc(asks, func(a, b Ask) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Study, b.Study))
	})
	look := Look{Owners: make(map[string]Want), Hosts: hosts}
	for _, one := range asks {
		if one.Running > 0 {
			look.Owners[one.Owner] = look.Owners[one.Owner].Plus(Want{Running: one.Running})
		}
	}
	free := look.Capacity() - look.Want().Total()
	for _, one := range asks {
		free -= look.await(accounts, one, one.Ready)
	}
	for _, one := range asks {
		if one.More > 0 && free >= one.Each {
			free -= look.await(accounts, one, min(one.More, int(free/one.Each)))
		}
	}
	return look
}

// await adds so many trials of the study to what its owner waits for, as far as the
// owner's quota lets them start. It returns what that is in GPUs or slots.
func (l Look) await(accounts map[string]Account, one Ask, trials int) float64 {
	account, has := accounts[one.Owner]
	if has {
		trials = min(trials, account.Quota.More(account.Held, account.Spent, one.Need))
	}
	if trials <= 0 {
		return 0
	}
	if has {
		account.Held = account.Held.Plus(pool.Amount{Trials: trials, GPUs: float64(trials) * one.Need.HeldGPUs()})
		accounts[one.Owner] = account
	}
	waiting := float64(trials) * one.Each
	l.Owners[one.Owner] = l.Owners[one.Owner].Plus(Want{Waiting: waiting})
	return waiting
}
