package replay_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/workers/placement"
)

// week is a random trace on a random cluster of one type, whose every unit of
// work takes 1 s and 50 J.
func week(seed uint64) (replay.Cluster, []replay.Job) {
	random := rand.New(rand.NewPCG(seed, 2))
	c := cluster(1+random.IntN(6), 1+random.IntN(4))
	c.Types[0].GPUMemoryBytes = 16
	profiles := []*replay.Profile{unit(50, "a"), unit(50, "a"), unit(50, "a", "other")}
	var jobs []replay.Job
	for i := range 150 {
		job := oneGPU(fmt.Sprint(i), random.Float64()*4000, 1+random.ExpFloat64()*200)
		job.Profile = profiles[random.IntN(3)]
		job.User = fmt.Sprint(random.IntN(4))
		job.Priority = random.IntN(3)
		job.Utilization = 0.1 + 0.9*random.Float64()
		job.GPUMemoryBytes = int64(1 + random.IntN(16))
		job.Needs.GPUs = 1 + random.IntN(c.Types[0].Capacity.GPUs)
		job.Needs.Cores = random.IntN(8)
		if random.IntN(2) == 0 {
			job.Told = &replay.Claim{Utilization: 0.1 + 0.9*random.Float64(), GPUMemoryBytes: int64(1 + random.IntN(16))}
		}
		jobs = append(jobs, job)
	}
	return c, jobs
}

// everyPolicy has all that there are, in combinations.
func everyPolicy(jobs []replay.Job, seed uint64) []replay.Policy {
	list := []replay.Policy{policies.FirstFit(), policies.Spread(seed), policies.Anywhere(seed), policies.Heats(policies.Recorded(jobs), 0.7),
		policies.HeatsMoving(policies.Recorded(jobs), 0.5, 60, placement.Settings{}), policies.HeatsExchanging(policies.Recorded(jobs), 0.5, 60, placement.Settings{}), policies.Fair(), policies.Packed(packed.Settings{}), policies.Packed(packed.Settings{MostUtilization: 1.5}), policies.Watched(packed.Settings{})}
	for _, rule := range []replay.Preemption{replay.Resumes, replay.Repeats} {
		policy := policies.FirstFit()
		policy.Name, policy.Order, policy.Preemption = fmt.Sprint("preemption ", rule), replay.ByPriority, rule
		list = append(list, policy)
		policy = policies.Packed(packed.Settings{})
		policy.Name, policy.Preemption = fmt.Sprint("shared, preemption ", rule), rule
		list = append(list, policy)
	}
	knob := policies.Packed(packed.Settings{})
	knob.Name, knob.Knob, knob.Every = "shared, knob", always(2), 60
	deflated := policies.FirstFit()
	deflated.Name, deflated.Order, deflated.Drop = "deflated", replay.ByPriority, []float64{0.3, 0.1}
	return append(list, knob, deflated)
}

func TestWhateverThePolicyTheBooksBalance(t *testing.T) {
	met := map[string]int{} // a property that is never tried holds
	for seed := range uint64(effort.ByDay(t, 5, 20)) {
		c, jobs := week(seed)
		for _, policy := range everyPolicy(jobs, seed) {
			t.Run(fmt.Sprint(policy.Name, "/", seed), func(t *testing.T) {
				settings := replay.Settings{Record: true, Move: placement.Prediction{Seconds: 15, Joules: 100}}
				o := play(t, c, jobs, policy, settings)
				balanced(t, c, jobs, policy, o)
				within(t, c, jobs, o)
				met["evicted"] += o.Evictions
				met["out of memory"] += o.OutOfMemory
				met["moved"] += o.Migrations
				met["wasted"] += int(o.Energy.Wasted)
				met["asleep"] += int(o.Energy.Asleep)
			})
		}
	}
	for _, what := range []string{"evicted", "out of memory", "moved", "wasted", "asleep"} {
		if met[what] == 0 {
			t.Errorf("nothing was %s: the traces do not try it", what)
		}
	}
}

// balanced holds that every job ended once, that all work was done and no more
// (50 J for each unit), and that machines drew what they draw.
func balanced(t *testing.T, c replay.Cluster, jobs []replay.Job, policy replay.Policy, o replay.Outcome) {
	t.Helper()
	ended := map[string]bool{}
	joules := 0.0
	for _, one := range o.Ended {
		if ended[one.Name] {
			t.Errorf("%s ended twice", one.Name)
		}
		ended[one.Name] = true
		joules += one.Joules
		if one.At < one.Job.Arrives || one.Began < one.Job.Arrives || one.Waited < 0 || one.Waited > one.At-one.Job.Arrives+1e-6 {
			t.Errorf("%s arrived at %g, began at %g, waited %g and ended at %g", one.Name, one.Job.Arrives, one.Began, one.Waited, one.At)
		}
	}
	if len(o.Ended) != len(jobs) || len(ended) != len(jobs) {
		t.Errorf("%d of %d jobs ended", len(ended), len(jobs))
	}
	due := 0.0
	for _, one := range jobs {
		work := one.Work
		if one.Priority < len(policy.Drop) {
			work *= 1 - policy.Drop[one.Priority]
		}
		due += 50 * work
	}
	near(t, "the work's joules", o.Energy.Work, due+o.Energy.Wasted, 1e-6)
	near(t, "the joules of the jobs", joules, o.Energy.Work, 1e-6)
	of := c.Types[0]
	time := o.Energy.Idle/of.IdleWatts + o.Energy.Waking/of.IdleWatts + o.Energy.Asleep/of.AsleepWatts
	near(t, "the time of the machines", time, o.Makespan*float64(len(c.Machines)), 1e-6)
	near(t, "the total", o.Total, o.Energy.Work+o.Energy.Idle+o.Energy.Waking+o.Energy.Asleep+o.Energy.Moves, exact)
	if o.Utilization > o.Allocated+1e-9 || o.Allocated > 1+1e-9 {
		t.Errorf("%g of the time is allocated, in %g there is work", o.Allocated, o.Utilization)
	}
}

// within holds that at no time more was on a machine than it has.
func within(t *testing.T, c replay.Cluster, jobs []replay.Job, o replay.Outcome) {
	t.Helper()
	type change struct {
		at    float64
		sign  int
		job   *replay.Job
		spent replay.Span
	}
	byName := map[string]*replay.Job{}
	for i := range jobs {
		byName[jobs[i].Name] = &jobs[i]
	}
	var changes []change
	for _, one := range o.Spans {
		changes = append(changes, change{one.From, 1, byName[one.Job], one}, change{one.To, -1, byName[one.Job], one})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.sign-b.sign) })
	used := map[string]placement.Resources{}
	on := map[string]int{}
	placed := map[string]int{}
	for _, one := range changes {
		now := used[one.spent.Machine]
		now.Cores += one.sign * one.job.Needs.Cores
		now.MemoryBytes += int64(one.sign) * one.job.Needs.MemoryBytes
		used[one.spent.Machine] = now
		placed[one.job.Name] += one.sign
		if len(one.spent.GPUs) != one.job.Needs.GPUs || placed[one.job.Name] > 1 {
			t.Fatalf("%s has GPUs %v and is on %d machines, and needs %d GPUs", one.job.Name, one.spent.GPUs, placed[one.job.Name], one.job.Needs.GPUs)
		}
		for _, gpu := range one.spent.GPUs {
			key := fmt.Sprint(one.spent.Machine, "/", gpu)
			if on[key] += one.sign; on[key] > 3 {
				t.Fatalf("%d jobs are on %s at %g", on[key], key, one.at)
			}
		}
		if !c.Types[0].Capacity.Holds(now) {
			t.Fatalf("%s holds %+v at %g, more than it has", one.spent.Machine, now, one.at)
		}
	}
}

func TestAReplayRepeatsToTheBit(t *testing.T) {
	c, jobs := week(5)
	for i, policy := range everyPolicy(jobs, 1) {
		first := play(t, c, jobs, policy, replay.Settings{Record: true})
		again := play(t, c, jobs, everyPolicy(jobs, 1)[i], replay.Settings{Record: true})
		for at := range first.Ended { // they point to copies of the jobs
			first.Ended[at].Job, again.Ended[at].Job = nil, nil
		}
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%s: two replays differ", policy.Name)
		}
	}
}

// compared asks Heats, and placement about all machines, and requires that both
// say the same.
type compared struct {
	t         *testing.T
	chooser   replay.Chooser
	predictor placement.Predictor
	energy    float64
	asked     *int
}

func (c compared) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	spot, found := c.chooser.Choose(state, job)
	var machines []placement.Machine
	for at := range state.Machines() {
		machines = append(machines, placement.Machine{Name: state.Name(at), Type: state.Type(at).Name, Free: state.Free(at)})
	}
	task := job.Task()
	task.Energy = c.energy
	want := placement.Place([]placement.Task{task}, machines, c.predictor)[0]
	got := ""
	if found {
		got = state.Name(spot.Machine)
	}
	if got != want {
		c.t.Fatalf("at %g s %s is put on %q, and placement puts it on %q", state.Now(), job.Name, got, want)
	}
	*c.asked++
	return spot, found
}

// The groups of machines are a shortcut: they must not change what placement
// decides.
func TestHeatsDecidesAsPlacementDoes(t *testing.T) {
	for seed := range uint64(effort.ByDay(t, 3, 10)) {
		random := rand.New(rand.NewPCG(seed, 3))
		c := twoTypes(3)
		for i := range c.Types {
			c.Types[i].Capacity.GPUs, c.Types[i].Capacity.Cores = 4, 16
		}
		var jobs []replay.Job
		for i := range 200 {
			jobs = append(jobs, replay.Job{
				Name: fmt.Sprint(i), Profile: twoSpeeds(), Work: 1 + random.ExpFloat64()*100, Arrives: random.Float64() * 2000,
				Needs: placement.Resources{Cores: random.IntN(9), GPUs: random.IntN(5), MemoryBytes: int64(random.IntN(1 << 30))},
			})
		}
		energy, asked := random.Float64(), 0
		policy := policies.Heats(policies.Recorded(jobs), energy)
		policy.Chooser = compared{t, policy.Chooser, policies.Recorded(jobs), energy, &asked}
		play(t, c, jobs, policy, replay.Settings{})
		if asked < len(jobs) {
			t.Errorf("placement was asked %d times for %d jobs", asked, len(jobs))
		}
	}
}
