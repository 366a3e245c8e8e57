package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// aDay is after how many seconds of the trace what quotas bound by the day begins
// anew.
const aDay = 86400

// OfUser is what a user's jobs met with.
type OfUser struct {
	User       string       `json:"user"`
	Jobs       int          `json:"jobs"`
	Completion Distribution `json:"completion_seconds"`
	Waiting    Distribution `json:"waiting_seconds"`
	// Slowdown is how many times as long as alone on the fastest type of machine the
	// jobs took, from arrival to end.
	Slowdown Distribution `json:"slowdown"`
	// Share is the mean dominant share of the pool that the jobs had while some ran or
	// waited (Ghodsi et al., NSDI 2011), from 0 to 1.
	Share float64 `json:"dominant_share"`
	// GPUSeconds are those that its jobs had GPUs for.
	GPUSeconds float64 `json:"gpu_seconds"`
}

// user is one whose jobs are played.
type user struct {
	quota   pool.Quota
	has     pool.Amount
	waiting int
	// spent are the GPU-seconds of this day.
	spent float64
	// wanted is for how long jobs ran or waited, shared the sum of dominant shares over
	// that time.
	wanted, shared, gpuSeconds float64
}

// users are all of a trace, and what the cluster has in all.
type users struct {
	by    map[string]*user
	names []string
	all   pool.Amount
}

func newUsers(cluster Cluster, jobs []Job, quotas map[string]pool.Quota) users {
	u := users{by: map[string]*user{}}
	capacity := map[string]placement.Resources{}
	for _, one := range cluster.Types {
		capacity[one.Name] = one.Capacity
	}
	for _, one := range cluster.Machines {
		has := capacity[one.Type]
		u.all = u.all.Plus(pool.Amount{GPUs: float64(has.GPUs), Cores: has.Cores, MemoryBytes: has.MemoryBytes})
	}
	for i := range jobs {
		name := jobs[i].User
		if u.by[name] == nil {
			u.by[name] = &user{quota: quotas[name]}
		}
	}
	u.names = slices.Sorted(maps.Keys(u.by))
	return u
}

// checkQuotas names the first quota that cannot be played, or that a job can never
// keep.
func checkQuotas(jobs []Job, quotas map[string]pool.Quota) error {
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		switch one := quotas[name]; {
		case one.Joules != 0:
			return fmt.Errorf("the quota of user %s bounds joules to %g a day: a replay plays bounds of trials, GPUs and GPU-seconds", name, one.Joules)
		case one.Trials < 0 || one.GPUs < 0 || !(one.GPUSeconds >= 0) || !(one.Weight >= 0) || math.IsInf(one.Weight, 0):
			return fmt.Errorf("the quota of user %s is %+v: nothing of it may be negative", name, one)
		}
	}
	for i := range jobs {
		if most := quotas[jobs[i].User].GPUs; most > 0 && jobs[i].Needs.GPUs > most {
			return fmt.Errorf("job %s needs %d GPUs, and the quota of its user %s is %d at once: it would never start; raise the quota, or leave the job out", jobs[i].Name, jobs[i].Needs.GPUs, jobs[i].User, most)
		}
	}
	return nil
}

// amount is what a job has.
func (j *Job) amount() pool.Amount {
	return pool.Amount{Trials: 1, GPUs: float64(j.Needs.GPUs), Cores: j.Needs.Cores, MemoryBytes: j.Needs.MemoryBytes}
}

// without is what is left of an amount when a part of it is gone.
func without(all, gone pool.Amount) pool.Amount {
	return pool.Amount{Trials: all.Trials - gone.Trials, GPUs: all.GPUs - gone.GPUs, Cores: all.Cores - gone.Cores, MemoryBytes: all.MemoryBytes - gone.MemoryBytes}
}

// pass is the time that goes by.
func (u *users) pass(seconds float64) {
	for _, name := range u.names {
		one := u.by[name]
		gpus := one.has.GPUs * seconds
		one.spent += gpus
		one.gpuSeconds += gpus
		if one.waiting > 0 || one.has.Trials > 0 {
			one.wanted += seconds
			one.shared += seconds * one.has.DominantShare(u.all)
		}
	}
}

// dawn begins a day.
func (u *users) dawn() {
	for _, one := range u.by {
		one.spent = 0
	}
}

// daily reports whether a quota bounds what is used in a day.
func (u *users) daily() bool {
	return slices.ContainsFunc(u.names, func(name string) bool { return u.by[name].quota.GPUSeconds > 0 })
}

// refuses reports whether the quota of its user lets the job not start now.
func (u *users) refuses(job *Waiting) bool {
	one := u.by[job.User]
	if one.quota == (pool.Quota{}) {
		return false
	}
	return one.quota.Refusal(job.User, one.has, pool.Spent{GPUSeconds: one.spent}, pool.Need{GPUs: job.Needs.GPUs}) != ""
}

// share is the user's weighted dominant share, as the server's order has it.
func (u *users) share(name string) float64 {
	one := u.by[name]
	return pool.Weighted(one.has.DominantShare(u.all), one.quota.Weight)
}

// outcome sums up, where there are several users.
func (u *users) outcome(ended []Ended) (list []OfUser, fairness float64) {
	if len(u.names) < 2 {
		return nil, 0
	}
	by := map[string][]Ended{}
	for _, one := range ended {
		by[one.Job.User] = append(by[one.Job.User], one)
	}
	var slowdowns []float64
	for _, name := range u.names {
		one := u.by[name]
		of := OfUser{User: name, Jobs: len(by[name]), GPUSeconds: one.gpuSeconds}
		if one.wanted > 0 {
			of.Share = one.shared / one.wanted
		}
		completion, waiting := timesOf(by[name])
		var slower []float64
		for _, job := range by[name] {
			slower = append(slower, (job.At-job.Job.Arrives)/job.Job.fastest())
		}
		of.Completion, of.Waiting, of.Slowdown = distributionOf(completion), distributionOf(waiting), distributionOf(slower)
		slowdowns = append(slowdowns, of.Slowdown.Mean)
		list = append(list, of)
	}
	slices.SortStableFunc(list, func(a, b OfUser) int { return cmp.Compare(b.GPUSeconds, a.GPUSeconds) })
	return list, jain(slowdowns)
}

// fastest is how long the job takes alone on the type of machine that is fastest.
func (j *Job) fastest() float64 {
	least := math.Inf(1)
	for _, unit := range j.Profile.On {
		least = min(least, unit.Seconds*j.Work)
	}
	return least
}

// jain is Jain's index of fairness (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 where
// all have the same, and one divided by their number where one has all.
func jain(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, one := range values {
		sum += one
		squares += one * one
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(values)) * squares)
}
