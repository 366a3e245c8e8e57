package replay_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// ofUser are jobs of a user that arrive at once and take so long on a GPU each.
func ofUser(user string, count int, seconds float64) (jobs []replay.Job) {
	for i := range count {
		one := oneGPU(fmt.Sprint(user, i), 0, seconds)
		one.User = user
		jobs = append(jobs, one)
	}
	return jobs
}

// users are what each met with, by name.
func users(o replay.Outcome) map[string]replay.OfUser {
	by := map[string]replay.OfUser{}
	for _, one := range o.Users {
		by[one.User] = one
	}
	return by
}

// TestUsersTakeTurnsByTheirShares: ada has ten jobs before bob's two, on two GPUs.
func TestUsersTakeTurnsByTheirShares(t *testing.T) {
	jobs := append(ofUser("ada", 10, 100), ofUser("bob", 2, 100)...)
	inOrder := users(play(t, cluster(1, 2), jobs, policies.FirstFit(), replay.Settings{}))
	o := play(t, cluster(1, 2), jobs, policies.Fair(), replay.Settings{})
	fair := users(o)
	if inOrder["bob"].Completion.Mean != 600 || fair["bob"].Completion.Mean != 150 || fair["ada"].Completion.Mean != 390 {
		t.Errorf("bob's jobs take %g s in the order of arrival and %g s in turns, ada's then %g s", inOrder["bob"].Completion.Mean, fair["bob"].Completion.Mean, fair["ada"].Completion.Mean)
	}
	// bob wants something for 200 s and has one of two GPUs all the time.
	if bob := fair["bob"]; math.Abs(bob.Share-0.5) > 1e-9 || bob.GPUSeconds != 200 || bob.Slowdown.Mean != 1.5 || bob.Waiting.Mean != 50 || bob.Jobs != 2 {
		t.Errorf("bob: %+v", bob)
	}
	ada, bob := fair["ada"].Slowdown.Mean, 1.5
	if want := (ada + bob) * (ada + bob) / (2 * (ada*ada + bob*bob)); math.Abs(o.Fairness-want) > 1e-12 {
		t.Errorf("the index is %g, want %g", o.Fairness, want)
	}
	// A weight of 3 makes four GPUs three and one.
	weighted := users(play(t, cluster(1, 4), append(ofUser("ada", 12, 100), ofUser("bob", 12, 100)...), policies.Fair(), replay.Settings{Quotas: map[string]pool.Quota{"bob": {Weight: 3}}}))
	if weighted["bob"].Completion.Most != 400 || weighted["ada"].Completion.Most != 600 {
		t.Errorf("by weight bob is done at %g s and ada at %g s", weighted["bob"].Completion.Most, weighted["ada"].Completion.Most)
	}
}

// TestQuotasHoldWhateverThePolicy, and what is used in a day is had again the next.
func TestQuotasHoldWhateverThePolicy(t *testing.T) {
	jobs := append(ofUser("ada", 12, 600), ofUser("bob", 3, 600)...)
	for name, test := range map[string]struct {
		quota pool.Quota
		want  float64 // when ada's last job ends
	}{
		"none":              {pool.Quota{}, 2400},
		"a weight alone":    {pool.Quota{Weight: 2}, 2400},
		"trials":            {pool.Quota{Trials: 2}, 3600},
		"GPUs":              {pool.Quota{GPUs: 3}, 2400},
		"GPU-seconds a day": {pool.Quota{GPUs: 4, GPUSeconds: 4800}, 86400 + 600},
	} {
		for _, policy := range []replay.Policy{policies.FirstFit(), policies.Fair(), policies.Spread(1), policies.HeatsMoving(policies.Recorded(jobs), 1, 60, placement.Settings{})} {
			o := play(t, cluster(1, 4), jobs, policy, replay.Settings{Quotas: map[string]pool.Quota{"ada": test.quota}, Record: true})
			if got := users(o)["ada"].Completion.Most; name != "none" && name != "a weight alone" && (got < test.want || got > test.want+600) {
				t.Errorf("%s, %s: ada's jobs are done at %g s, want %g", name, policy.Name, got, test.want)
			}
			for _, step := range o.Steps {
				if most := max(test.quota.GPUs, test.quota.Trials); most > 0 && step.At > 1800 && step.Allocated > float64(most) {
					t.Errorf("%s, %s: at %g s ada has %g GPUs", name, policy.Name, step.At, step.Allocated)
				}
			}
		}
	}
}

func TestQuotasThatCannotBePlayedAreRefused(t *testing.T) {
	jobs := ofUser("ada", 1, 10)
	jobs[0].Needs.GPUs = 2
	for want, quota := range map[string]pool.Quota{
		"job ada0 needs 2 GPUs, and the quota of its user ada is 1": {GPUs: 1},
		"user ada bounds joules to 5 a day":                         {Joules: 5},
		"nothing of it may be negative":                             {Trials: -1},
	} {
		_, err := replay.Play(cluster(1, 4), jobs, policies.FirstFit(), replay.Settings{Quotas: map[string]pool.Quota{"ada": quota}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", quota, err, want)
		}
	}
}

// TestRunningJobsChangePlaces: two jobs run where the other one should, and there is no
// free machine.
func TestRunningJobsChangePlaces(t *testing.T) {
	kinds := []replay.Type{{Name: "a", Capacity: placement.Resources{GPUs: 1}}, {Name: "b", Capacity: placement.Resources{GPUs: 1}}}
	c := replay.Cluster{Types: kinds, Machines: []replay.Machine{{Name: "a", Type: "a"}, {Name: "b", Type: "b"}}}
	likes := func(name, kind string) replay.Job {
		on := map[string]placement.Prediction{"a": {Seconds: 2, Joules: 300}, "b": {Seconds: 2, Joules: 300}}
		on[kind] = placement.Prediction{Seconds: 1, Joules: 100}
		return replay.Job{Name: name, Profile: &replay.Profile{Name: name, On: on}, Work: 1000, Needs: placement.Resources{GPUs: 1}}
	}
	// The short one is on a when the first comes, and on none when the second does.
	short := oneGPU("short", 0, 5)
	short.Needs = placement.Resources{GPUs: 1}
	short.Profile = &replay.Profile{Name: "short", On: map[string]placement.Prediction{"a": {Seconds: 1, Joules: 1}}}
	first, second := likes("first", "a"), likes("second", "b")
	first.Arrives, second.Arrives = 1, 6
	jobs := []replay.Job{short, first, second}
	settings := replay.Settings{Move: placement.Prediction{Seconds: 10, Joules: 50}, Record: true}
	stay := play(t, c, jobs, policies.HeatsMoving(policies.Recorded(jobs), 1, 60, placement.Settings{}), settings)
	change := play(t, c, jobs, policies.HeatsExchanging(policies.Recorded(jobs), 1, 60, placement.Settings{}), settings)
	if stay.Migrations != 0 || change.Migrations != 2 {
		t.Fatalf("%d and %d moves", stay.Migrations, change.Migrations)
	}
	// Until 60 s each does half of the work of that time, then it goes on at full speed.
	if change.Energy.Total() > 0.45*stay.Energy.Total() || change.Energy.Moves != 100 || change.MoveSeconds != 20 {
		t.Errorf("%g J and %g J; moves took %g J and %g s", stay.Energy.Total(), change.Energy.Total(), change.Energy.Moves, change.MoveSeconds)
	}
	if change.Makespan > 1100 || stay.Makespan < 1900 {
		t.Errorf("they are done at %g s, without at %g s", change.Makespan, stay.Makespan)
	}
}
