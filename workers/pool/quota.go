package pool

import (
	"fmt"
	"math"
)

// Quota bounds what one user has of the pool. A bound of 0 is none.
type Quota struct {
	// Trials and GPUs are how many the user's trials have at once at most.
	Trials int
	GPUs   int
	// GPUSeconds and Joules are how much they use in a day at most: GPUs times
	// seconds that leases hold them, and energy as workers report it; Cost is money, by
	// the server's prices. What began goes on beyond them; nothing new begins.
	GPUSeconds, Joules, Cost float64
	// Weight is how much of the pool is the user's fair share, against users with
	// weight 1; 0 counts as 1.
	Weight float64
	// DatasetBytes bounds the user's data sets together.
	DatasetBytes int64
	// Preempt lets the user's studies take the place of others of lower priority.
	Preempt bool
}

// Spent is what a user's trials have used of a day.
type Spent struct {
	// Day is the date in UTC, as 2006-01-02.
	Day        string  `json:"day"`
	GPUSeconds float64 `json:"gpu_seconds"`
	Joules     float64 `json:"joules"`
	Cost       float64 `json:"cost,omitempty"`
}

// rounding is by how much a sum of fractions of GPUs may be above what it should be.
const rounding = 1e-9

// Refusal says why the user may not have one more trial with the need now; empty:
// it may. held is what its trials have, and spent what they used today.
func (q Quota) Refusal(user string, held Amount, spent Spent, need Need) string {
	switch {
	case q.Trials > 0 && held.Trials >= q.Trials:
		return fmt.Sprintf("user %s runs %d of their %d trials at once", user, held.Trials, q.Trials)
	case q.GPUs > 0 && need.GPUs > q.GPUs:
		return fmt.Sprintf("each trial needs %d GPUs (resources.gpus), and user %s may have %d at once: ask for fewer, or have the quota raised", need.GPUs, user, q.GPUs)
	case q.GPUs > 0 && need.HeldGPUs() > 0 && held.GPUs+need.HeldGPUs() > float64(q.GPUs)+rounding:
		return fmt.Sprintf("user %s holds %.3g of their %d GPUs", user, held.GPUs, q.GPUs)
	case q.GPUSeconds > 0 && need.HeldGPUs() > 0 && spent.GPUSeconds >= q.GPUSeconds:
		return fmt.Sprintf("user %s has used %.4g of their %.4g GPU-hours of today (UTC)", user, spent.GPUSeconds/3600, q.GPUSeconds/3600)
	case q.Joules > 0 && spent.Joules >= q.Joules:
		return fmt.Sprintf("user %s has used %.0f of their %.0f J of today (UTC)", user, spent.Joules, q.Joules)
	case q.Cost > 0 && spent.Cost >= q.Cost:
		return fmt.Sprintf("user %s has spent %.4g of their %.4g of money of today (UTC)", user, spent.Cost, q.Cost)
	}
	return ""
}

// More is how many more trials with the need the user may have now, beside what its
// trials have.
func (q Quota) More(held Amount, spent Spent, need Need) int {
	if q.Refusal("", held, spent, need) != "" {
		return 0
	}
	more := math.MaxInt
	if q.Trials > 0 {
		more = q.Trials - held.Trials
	}
	if each := need.HeldGPUs(); q.GPUs > 0 && each > 0 {
		more = min(more, int((float64(q.GPUs)-held.GPUs)/each+rounding))
	}
	return more
}
