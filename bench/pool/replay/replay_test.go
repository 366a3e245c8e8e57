package replay_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
)

// unit takes one second and so many joules for each unit of work.
func unit(joules float64, types ...string) *replay.Profile {
	on := map[string]placement.Prediction{}
	for _, one := range types {
		on[one] = placement.Prediction{Seconds: 1, Joules: joules}
	}
	return &replay.Profile{Name: "unit", On: on}
}

// cluster is so many machines of one type with GPUs and 100 W idle, 10 W asleep.
func cluster(machines, gpus int) replay.Cluster {
	c := replay.Cluster{Types: []replay.Type{{Name: "a", Capacity: placement.Resources{Cores: 8 * gpus, GPUs: gpus, MemoryBytes: 1 << 36}, IdleWatts: 100, AsleepWatts: 10, WakeSeconds: 30}}}
	for i := range machines {
		c.Machines = append(c.Machines, replay.Machine{Name: fmt.Sprintf("m%d", i), Type: "a"})
	}
	return c
}

func oneGPU(name string, arrives, work float64) replay.Job {
	return replay.Job{Name: name, Profile: unit(50, "a"), Work: work, Arrives: arrives, Needs: placement.Resources{Cores: 1, GPUs: 1, MemoryBytes: 1 << 20}}
}

func play(t *testing.T, c replay.Cluster, jobs []replay.Job, policy replay.Policy, settings replay.Settings) replay.Outcome {
	t.Helper()
	outcome, err := replay.Play(c, jobs, policy, settings)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Max(1e-9, math.Abs(want)) {
		t.Errorf("%s is %g, want %g (within %g%%)", what, got, want, 100*tolerance)
	}
}

const exact = 1e-9

// Two jobs run at once on two GPUs, the third waits for the shorter one.
func TestJobsWaitForAGPU(t *testing.T) {
	jobs := []replay.Job{oneGPU("long", 0, 100), oneGPU("short", 10, 40), oneGPU("late", 20, 60)}
	o := play(t, cluster(1, 2), jobs, policies.FirstFit(), replay.Settings{Record: true})
	near(t, "the makespan", o.Makespan, 110, exact)
	near(t, "the mean completion", o.Completion.Mean, (100+40+90)/3.0, exact)
	near(t, "the longest wait", o.Waiting.Most, 30, exact)
	near(t, "the work's joules", o.Energy.Work, 200*50, exact)
	near(t, "the idle joules", o.Energy.Idle, 110*100, exact)
	near(t, "the allocated share", o.Allocated, 200.0/220, exact)
	near(t, "the utilization", o.Utilization, 200.0/220, exact)
	if len(o.Spans) != 3 || o.Spans[2].From != 50 || o.Spans[2].To != 110 {
		t.Errorf("spans %+v: late should run from 50 to 110", o.Spans)
	}
}

// A job that wants both GPUs waits for both; smaller ones pass it.
func TestWhatFitsNowhereHoldsUpNobody(t *testing.T) {
	both := oneGPU("both", 5, 10)
	both.Needs.GPUs = 2
	jobs := []replay.Job{oneGPU("first", 0, 100), both, oneGPU("small", 6, 50)}
	o := play(t, cluster(1, 2), jobs, policies.FirstFit(), replay.Settings{})
	ends := map[string]float64{}
	for _, one := range o.Ended {
		ends[one.Name] = one.At
	}
	if want := map[string]float64{"first": 100, "small": 56, "both": 110}; !reflect.DeepEqual(ends, want) {
		t.Errorf("ended at %v, want %v", ends, want)
	}
}

// Waiting times of Poisson arrivals and exponential work on c machines against
// Erlang's formula.
func TestQueuesOfManyServersFollowErlang(t *testing.T) {
	for _, servers := range []int{1, 3, 8} {
		random := rand.New(rand.NewPCG(uint64(servers), 1))
		const load = 0.6
		var jobs []replay.Job
		at := 0.0
		for i := range 60_000 + 8_000*servers {
			at += random.ExpFloat64() / (load * float64(servers))
			jobs = append(jobs, oneGPU(fmt.Sprint(i), at, random.ExpFloat64()))
		}
		o := play(t, cluster(servers, 1), jobs, policies.FirstFit(), replay.Settings{})
		offered, sum, term := load*float64(servers), 0.0, 1.0
		for k := range servers {
			sum += term
			term *= offered / float64(k+1)
		}
		waits := term / (1 - load) / (sum + term/(1-load)) // Erlang C
		near(t, fmt.Sprintf("the mean wait with %d servers", servers), o.Waiting.Mean, waits/(float64(servers)*(1-load)), 0.08)
		near(t, fmt.Sprintf("the utilization with %d servers", servers), o.Utilization, load, 0.03)
	}
}

// Two priorities on one machine against Cobham's formula, and with preemption against that of preemptive-resume queues.
func TestPrioritiesFollowQueueingTheory(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	rates := []float64{0.4, 0.3}
	var jobs []replay.Job
	for class, rate := range rates {
		at := 0.0
		for i := range int(100_000 * rate) {
			at += random.ExpFloat64() / rate
			job := oneGPU(fmt.Sprint(class, "/", i), at, random.ExpFloat64())
			job.Priority = class
			jobs = append(jobs, job)
		}
	}
	served := rates[0] + rates[1] // what is left in the mean of who is served, as one comes
	high := 1 + served/(1-rates[1])
	low := 1 + served/((1-rates[1])*(1-served))
	policy := policies.FirstFit()
	policy.Order = replay.ByPriority
	o := play(t, cluster(1, 1), jobs, policy, replay.Settings{})
	near(t, "high, not preemptive", o.Priorities[0].Completion.Mean, high, 0.06)
	near(t, "low, not preemptive", o.Priorities[1].Completion.Mean, low, 0.06)
	policy.Preemption = replay.Resumes
	o = play(t, cluster(1, 1), jobs, policy, replay.Settings{})
	near(t, "high, preemptive", o.Priorities[0].Completion.Mean, 1/(1-rates[1]), 0.06)
	low = 1/(1-rates[1]) + (rates[0]+rates[1])/((1-rates[1])*(1-rates[0]-rates[1]))
	near(t, "low, preemptive", o.Priorities[1].Completion.Mean, low, 0.06)
	if o.Evictions == 0 || o.Energy.Wasted != 0 {
		t.Errorf("%d evictions wasted %g J: some were expected, and nothing lost", o.Evictions, o.Energy.Wasted)
	}
	policy.Preemption = replay.Repeats
	if o = play(t, cluster(1, 1), jobs, policy, replay.Settings{}); o.Energy.Wasted == 0 {
		t.Error("what is evicted without a checkpoint should be lost")
	}
}

func TestDroppedWorkIsNotDone(t *testing.T) {
	job := oneGPU("low", 0, 100)
	policy := policies.FirstFit()
	policy.Drop = []float64{0.25}
	o := play(t, cluster(1, 1), []replay.Job{job}, policy, replay.Settings{})
	near(t, "the makespan", o.Makespan, 75, exact)
	near(t, "the joules", o.Energy.Work, 75*50, exact)
}

func TestJobsOnOneGPU(t *testing.T) {
	half := func(name string, memory int64) replay.Job {
		job := oneGPU(name, 0, 100)
		job.Utilization, job.GPUMemoryBytes = 0.5, memory
		return job
	}
	c := cluster(1, 1)
	c.Types[0].GPUMemoryBytes = 10
	t.Run("two halves do not disturb each other", func(t *testing.T) {
		o := play(t, c, []replay.Job{half("a", 5), half("b", 5)}, policies.Packed(packed.Settings{}), replay.Settings{})
		near(t, "the makespan", o.Makespan, 100, exact)
		near(t, "the utilization", o.Utilization, 1, exact)
	})
	t.Run("without sharing one waits", func(t *testing.T) {
		o := play(t, c, []replay.Job{half("a", 5), half("b", 5)}, policies.FirstFit(), replay.Settings{})
		near(t, "the makespan", o.Makespan, 200, exact)
		near(t, "the utilization", o.Utilization, 0.5, exact)
	})
	t.Run("recorded slowdown", func(t *testing.T) {
		slowdown := func(_ string, jobs []*replay.Job) []float64 { return []float64{0.5, 0.8} }
		o := play(t, c, []replay.Job{half("a", 5), half("b", 5)}, policies.Packed(packed.Settings{}), replay.Settings{Slowdown: slowdown})
		near(t, "the makespan", o.Makespan, 125+(100-62.5), exact)
		near(t, "the joules", o.Energy.Work, 200*50, exact)
	})
	t.Run("what runs out of memory runs alone later", func(t *testing.T) {
		big := half("big", 6)
		big.Told = &replay.Claim{Utilization: 0.5, GPUMemoryBytes: 4}
		o := play(t, c, []replay.Job{half("a", 6), big}, policies.Packed(packed.Settings{}), replay.Settings{OutOfMemorySeconds: 20})
		near(t, "the makespan", o.Makespan, 200, exact)
		if o.OutOfMemory != 1 {
			t.Errorf("%d jobs ran out of memory, want 1", o.OutOfMemory)
		}
	})
	t.Run("at most so many", func(t *testing.T) {
		var jobs []replay.Job
		for i := range 4 {
			job := half(fmt.Sprint(i), 1)
			job.Utilization = 0.1
			jobs = append(jobs, job)
		}
		o := play(t, c, jobs, policies.Packed(packed.Settings{}), replay.Settings{})
		near(t, "the makespan", o.Makespan, 200, exact)
	})
	t.Run("watched alone first, then moved together", func(t *testing.T) {
		two := cluster(1, 2)
		jobs := []replay.Job{half("a", 0), half("b", 0), half("c", 0)}
		o := play(t, two, jobs, policies.Watched(packed.Settings{}), replay.Settings{Move: placement.Prediction{Seconds: 5, Joules: 7}})
		// a joins b after a minute and loses 5 s; c has its GPU from then on.
		near(t, "the makespan", o.Makespan, 160, exact)
		if o.Migrations != 1 || o.Energy.Moves != 7 {
			t.Errorf("%d moves of %g J, want 1 of 7 J", o.Migrations, o.Energy.Moves)
		}
	})
}

// Two types: one fast and hungry, one slow and thrifty.
func twoTypes(each int) replay.Cluster {
	size := placement.Resources{Cores: 4, GPUs: 1, MemoryBytes: 1 << 34}
	c := replay.Cluster{Types: []replay.Type{{Name: "fast", Capacity: size, IdleWatts: 50}, {Name: "slow", Capacity: size, IdleWatts: 20}}}
	for i := range each {
		c.Machines = append(c.Machines, replay.Machine{Name: fmt.Sprint("fast", i), Type: "fast"}, replay.Machine{Name: fmt.Sprint("slow", i), Type: "slow"})
	}
	return c
}

func twoSpeeds() *replay.Profile {
	return &replay.Profile{Name: "two", On: map[string]placement.Prediction{"fast": {Seconds: 1, Joules: 300}, "slow": {Seconds: 2, Joules: 100}}}
}

func TestHeatsTakesWhatTheUserWants(t *testing.T) {
	job := replay.Job{Name: "a", Profile: twoSpeeds(), Work: 100, Needs: placement.Resources{Cores: 1, GPUs: 1}}
	jobs := []replay.Job{job}
	fast := play(t, twoTypes(1), jobs, policies.Heats(policies.Recorded(jobs), 0), replay.Settings{})
	slow := play(t, twoTypes(1), jobs, policies.Heats(policies.Recorded(jobs), 1), replay.Settings{})
	near(t, "seconds at H=0", fast.Makespan, 100, exact)
	near(t, "joules at H=0", fast.Energy.Work, 30_000, exact)
	near(t, "seconds at H=1", slow.Makespan, 200, exact)
	near(t, "joules at H=1", slow.Energy.Work, 10_000, exact)
}

// The thrifty machine is taken when the second job comes; when it is free, the
// second moves there with what is left, and pays for it.
func TestHeatsMovesWhenTheBetterMachineIsFree(t *testing.T) {
	first := replay.Job{Name: "first", Profile: twoSpeeds(), Work: 50, Needs: placement.Resources{Cores: 1, GPUs: 1}}
	second := first
	second.Name, second.Work = "second", 1000
	jobs := []replay.Job{first, second}
	policy := policies.HeatsMoving(policies.Recorded(jobs), 1, 30, placement.Settings{})
	o := play(t, twoTypes(1), jobs, policy, replay.Settings{Move: placement.Prediction{Seconds: 10, Joules: 500}})
	// first ends at 100; the look at 120 moves second, of which 880 units are left.
	near(t, "the makespan", o.Makespan, 120+10+2*880, exact)
	near(t, "the work's joules", o.Energy.Work, 50*100+120*300+880*100, exact)
	if o.Migrations != 1 || o.Energy.Moves != 500 || o.MoveSeconds != 10 {
		t.Errorf("%d moves, %g J, %g s: want 1, 500 J, 10 s", o.Migrations, o.Energy.Moves, o.MoveSeconds)
	}
}

// always wants so many GPUs awake.
type always int

func (a always) Awake(*replay.State) int { return int(a) }

func TestSleepingMachinesDrawLessAndWakeForWork(t *testing.T) {
	policy := policies.FirstFit()
	policy.Knob, policy.Every = always(1), 60
	jobs := []replay.Job{oneGPU("a", 0, 10), oneGPU("b", 1000, 520), oneGPU("c", 1010, 500)}
	o := play(t, cluster(2, 1), jobs, policy, replay.Settings{})
	// The second machine sleeps from 60 to 1010, and takes 30 s to wake up for c.
	near(t, "the makespan", o.Makespan, 1040+500, exact)
	near(t, "asleep", o.Energy.Asleep, 10*950, exact)
	near(t, "waking", o.Energy.Waking, 100*30, exact)
	// When b ends at 1520 the next look would be at 1560.
	near(t, "idle", o.Energy.Idle, 100*(1540*2-950-30), exact)
}

func TestWhatCannotBePlayedIsNamed(t *testing.T) {
	huge, lost, never := oneGPU("huge", 0, 1), oneGPU("lost", 0, 1), oneGPU("never", 0, 0)
	huge.Needs.GPUs = 3
	lost.Profile = unit(1, "elsewhere")
	twice := []replay.Job{oneGPU("a", 0, 1), oneGPU("a", 0, 1)}
	for _, one := range []struct {
		jobs   []replay.Job
		policy replay.Policy
		says   []string
	}{
		{[]replay.Job{huge}, policies.FirstFit(), []string{"huge", "3 GPUs", "no machine"}},
		{[]replay.Job{lost}, policies.FirstFit(), []string{"lost", "elsewhere"}},
		{[]replay.Job{never}, policies.FirstFit(), []string{"never", "work of 0"}},
		{twice, policies.FirstFit(), []string{"two jobs", "a"}},
		{nil, policies.FirstFit(), []string{"no jobs"}},
		{[]replay.Job{oneGPU("a", 0, 1)}, replay.Policy{Name: "empty"}, []string{"empty", "chooser"}},
		{[]replay.Job{oneGPU("a", 0, 1), oneGPU("b", 0, 1), oneGPU("c", 0, 1)}, replay.Policy{Name: "greedy", Chooser: stubborn(0)}, []string{"greedy", "job c", "too few"}},
		{[]replay.Job{oneGPU("a", 0, 1)}, replay.Policy{Name: "idle", Chooser: stubborn(-1)}, []string{"idle", "job a", "waiting"}},
	} {
		_, err := replay.Play(cluster(1, 2), one.jobs, one.policy, replay.Settings{})
		if err == nil {
			t.Errorf("%v: no error", one.says)
			continue
		}
		for _, word := range one.says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error %q does not say %q", err, word)
			}
		}
	}
}

// stubborn always takes one machine, -1 none.
type stubborn int

func (s stubborn) Choose(*replay.State, *replay.Waiting) (replay.Spot, bool) {
	return replay.Spot{Machine: int(s)}, s >= 0
}

// A user who came later has a turn as soon as something is free; first come,
// first served lets all of the other's jobs go first.
func TestUsersTakeTurns(t *testing.T) {
	var jobs []replay.Job
	for i := range 6 {
		job := oneGPU(fmt.Sprint("ann's ", i), 0, 100+float64(i))
		job.User = "ann"
		jobs = append(jobs, job)
	}
	late := oneGPU("bob's", 1, 10)
	late.User = "bob"
	began := func(policy replay.Policy) float64 {
		for _, one := range play(t, cluster(1, 2), append(jobs, late), policy, replay.Settings{}).Ended {
			if one.Name == late.Name {
				return one.Began
			}
		}
		t.Fatal("bob's job did not end")
		return 0
	}
	near(t, "bob begins, in turns", began(policies.Anywhere(1)), 100, exact)
	near(t, "bob begins, first come, first served", began(policies.FirstFit()), 306, exact)
}

// A machine that is kept awake to spare takes a job at once; without one it waits
// for 30 s.
func TestStandbyKeepsMachinesAwake(t *testing.T) {
	jobs := []replay.Job{oneGPU("early", 0, 10), oneGPU("late", 600, 10)}
	waited := func(knob replay.Knob) (most, asleep float64) {
		policy := policies.FirstFit()
		policy.Knob, policy.Every = knob, 60
		o := play(t, cluster(3, 1), jobs, policy, replay.Settings{})
		return o.Waiting.Most, o.Energy.Asleep
	}
	for _, one := range []struct {
		what         string
		knob         replay.Knob
		wait, asleep float64
	}{
		{"one to spare", policies.Standby(1), 0, 2*10*(600-60) + 1*10*10},
		{"none to spare", policies.Standby(0), 30, 3*10*(600-60) + 2*10*40},
	} {
		wait, asleep := waited(one.knob)
		near(t, one.what+": the wait", wait, one.wait, exact)
		near(t, one.what+": joules asleep", asleep, one.asleep, exact)
	}
}
