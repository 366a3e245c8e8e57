package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// tuned is a study of 12 trials over all data whose threads are tuned.
func tuned(w *world, name string) {
	w.create("name: example", "name: "+name+"\nsystem: {cpu_threads: {values: [1, 2]}}", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12")
}

// untuned is the same with what a process gets by itself.
func untuned(w *world, name string) {
	w.create("name: example", "name: "+name, "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12")
}

func baseline(t *testing.T, work workload) time.Duration {
	var took time.Duration
	in(func(t *testing.T, w *world) {
		untuned(w, "v1")
		took = w.box(false).train("v1", work)
	})(t)
	return took
}

func TestTrialsThatNeedOneThreadRunBesideEachOther(t *testing.T) {
	alone := baseline(t, slowWithTwo)
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		tuned(w, "first")
		cold := b.train("first", slowWithTwo)
		tuned(w, "second")
		warm := b.train("second", slowWithTwo)
		t.Logf("default %v, cold %v, warm %v", alone, cold, warm)
		if b.most != 2 || b.full != 2 {
			t.Errorf("%d trials ran at once on up to %d cores, want 2 on 2", b.most, b.full)
		}
		if cold > alone {
			t.Errorf("the first study took %v, the default %v", cold, alone)
		}
		if warm > alone*45/100 {
			t.Errorf("the second study took %v, more than 45%% of the default %v", warm, alone)
		}
	})(t)
}

// TestTheFirstTrialLeavesCoresToTheNext: of a known script that is faster with two threads,
// but not twice as fast, a study's first trial takes one where another trial can begin, and
// both where none can.
func TestTheFirstTrialLeavesCoresToTheNext(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		work := workload{name: "lenet", seconds: func(threads, _ int) float64 { return 4 - float64(threads) }}
		tuned(w, "known")
		b.train("known", work)
		for name, c := range map[string]struct{ stop, want string }{
			"many": {"trials: 12", "cpu_threads=1"}, "only": {"trials: 1", "cpu_threads=2"},
		} {
			w.create("name: example", "name: "+name+"\nsystem: {cpu_threads: {values: [1, 2]}}", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", c.stop)
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: name})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%s: %+v, %v", name, reply, err)
			}
			if key := system.Configuration(reply.Lease.System).Key(); key != c.want {
				t.Errorf("%s: the first trial begins with %s, want %s", name, key, c.want)
			}
			if _, err := w.service.Finish(w.ctx, reply.Lease.Trial, protocol.FinishRequest{LeaseEpoch: reply.Lease.LeaseEpoch, Outcome: protocol.Interrupted}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.service.Stop(w.ctx, name); err != nil {
				t.Fatal(err)
			}
		}
	})(t)
}

// TestWhatIsDoneEarlyTeachesNoTime: who is done after two epochs of nine reports the last one
// at once, and no epoch is that short. A third epoch is one.
func TestWhatIsDoneEarlyTeachesNoTime(t *testing.T) {
	for last, want := range map[int]int{3: 2, 9: 1} { // the first epoch of a start is not among them
		in(func(t *testing.T, w *world) {
			w.create("name: example", "name: early\nsystem: {cpu_threads: {values: [1, 2]}}", "policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}", "trials: 27", "trials: 1")
			lease := w.leaseFrom(w.box(false).id, "early")
			for _, epoch := range []int{1, 2, last} {
				if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 4, SetupSeconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}); err != nil {
					t.Fatal(err)
				}
			}
			page, err := w.service.GroundTruthRuns(w.ctx, "", 10, 0)
			if err != nil || len(page.Runs) != 1 || page.Runs[0].Epochs != want {
				t.Errorf("after epoch %d: %+v, %v; want %d epochs", last, page.Runs, err, want)
			}
		})(t)
	}
}

// Trials beside each other end in another order, so that others are promoted:
// the time is compared with what the same epochs take with the default.
func TestAWorkloadThatUsesAllCoresKeepsThem(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		for _, name := range []string{"first", "second"} {
			tuned(w, name)
			took := b.train(name, fastWithTwo)
			alone := defaultTime(t, w, name, fastWithTwo)
			t.Logf("%s: %v, the same epochs with the default %v", name, took, alone)
			if took > alone*103/100 {
				t.Errorf("the %s study took %v: more than 3%% above the %v of the default", name, took, alone)
			}
			answer, err := w.service.Recommendation(w.ctx, name)
			if key := system.Configuration(answer.System).Key(); err != nil || key != "cpu_threads=2" {
				t.Errorf("to train alone it recommends %s, %v", key, err)
			}
		}
	})(t)
}

// defaultTime is how long the epochs of the study take one after the other with
// both threads.
func defaultTime(t *testing.T, w *world, study string, work workload) time.Duration {
	seconds := 0.0
	for _, one := range trialsOf(t, w, study) {
		reports, err := w.store.Reports(w.ctx, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		lease := trial.LeaseEpoch(0)
		for _, report := range reports {
			factor := 1.0
			if report.LeaseEpoch != lease {
				lease, factor = report.LeaseEpoch, 1.3
			}
			seconds += factor * work.seconds(2, 0)
		}
	}
	return time.Duration(seconds * float64(time.Second))
}

func TestTheUserSeesWhatRanAndWhy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		phases := map[trial.Phase]int{}
		var saved *trial.Saving
		for _, name := range []string{"first", "second", "third"} {
			tuned(w, name)
			b.train(name, slowWithTwo)
			for _, one := range trialsOf(t, w, name) {
				reports, err := w.store.Reports(w.ctx, one.ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, report := range reports {
					phases[report.SystemPhase]++
					if len(report.System) == 0 {
						t.Errorf("the report of epoch %d of trial %d does not say what it ran with", report.Epoch, one.Number)
					}
				}
				saved = saved.Plus(one.Saved)
				if one.Setting == nil || one.Setting.Why == "" {
					t.Errorf("trial %d does not say why it ran with what it did: %+v", one.Number, one.Setting)
				}
			}
		}
		for _, phase := range []trial.Phase{trial.Default, trial.Probing, trial.Study, trial.Script, trial.Control} {
			if phases[phase] == 0 {
				t.Errorf("the epochs ran under %v, want some under %s", phases, phase)
			}
		}
		if phases[""] > 0 {
			t.Errorf("%d epochs did not run as they were meant to", phases[""])
		}
		if saved == nil || saved.SecondsLow == nil || *saved.SecondsLow <= 0 || saved.Seconds < *saved.SecondsLow || saved.Joules <= 0 {
			t.Errorf("saved %+v, want something with its interval", saved)
		}
	})(t)
}

// A start takes the same with every configuration, so that none saves of its energy.
func TestNoEnergyOfTheStartIsSaved(t *testing.T) {
	for _, start := range []float64{0, 60} {
		in(func(t *testing.T, w *world) {
			b := w.box(false)
			b.start = start
			saved, most := 0.0, 0.0
			for _, name := range []string{"first", "second", "third"} {
				tuned(w, name)
				b.train(name, slowWithTwo)
				for _, one := range trialsOf(t, w, name) {
					reports, err := w.store.Reports(w.ctx, one.ID)
					if err != nil {
						t.Fatal(err)
					}
					for _, report := range reports {
						if report.Saved != nil && report.System[system.CPUThreads] == space.Int(1) {
							saved += float64(report.Saved.Joules)
							most += 10 * (2*slowWithTwo.seconds(2, 0) - slowWithTwo.seconds(1, 0))
						}
					}
				}
			}
			if saved == 0 || saved > 1.25*most {
				t.Errorf("with a start of %g s %.0f J are said to be saved of %.0f J", start, saved, most)
			}
		})(t)
	}
}

func TestMemoryIsRoomToo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		large := slowWithTwo
		large.resident = 9 << 30 // of 16 GiB
		tuned(w, "example")
		b.train("example", large)
		if b.most != 1 {
			t.Errorf("%d trials of 9 GiB ran at once on 16 GiB", b.most)
		}
	})(t)
}

func TestAScriptThatIgnoresItsThreadsIsMeasuredAsItIs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		b.honours = false
		tuned(w, "example")
		b.train("example", slowWithTwo)
		for _, one := range trialsOf(t, w, "example") {
			reports, err := w.store.Reports(w.ctx, one.ID)
			if err != nil {
				t.Fatal(err)
			}
			asked, ignored := reports[0].System[system.CPUThreads], map[trial.LeaseEpoch]int{}
			for _, report := range reports {
				if report.Rung == reports[0].Rung && report.System[system.CPUThreads] != asked {
					t.Errorf("epoch %d of trial %d is said to have run with %v threads, and did with %v", report.Epoch, one.Number, report.System[system.CPUThreads], asked)
				}
				if report.SystemPhase == "" {
					ignored[report.LeaseEpoch]++
				}
			}
			for lease, times := range ignored {
				if times > 1 {
					t.Errorf("under lease %d trial %d was told %d times to change its threads, which it does not", lease, one.Number, times)
				}
			}
		}
	})(t)
}

func TestWhatWasLearnedSurvivesARestart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		tuned(w, "first")
		b.train("first", slowWithTwo)
		w.start()
		b.register()
		tuned(w, "second")
		lease := w.mustLease(b.id)
		if threadsOf(lease.System, 0) != 1 {
			t.Errorf("the first trial after the restart starts with %v, want 1 thread", lease.System)
		}
		if setting := w.trial(lease.Trial).Setting; setting == nil || setting.Phase != trial.Script {
			t.Errorf("its setting is %+v, want that of the script", setting)
		}
	})(t)
}

func TestAnotherTypeOfMachineKnowsNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(true)
		tuned(w, "first")
		b.train("first", slowWithTwo)
		other := w.box(true)
		other.cores, other.id = 4, "other-box"
		other.register()
		tuned(w, "second")
		lease := w.mustLease(other.id)
		if threadsOf(lease.System, 0) != 2 { // the most of the two that were given
			t.Errorf("a machine with 4 cores starts with %v, want the default", lease.System)
		}
	})(t)
}

func TestReportsOfSystemParametersAreChecked(t *testing.T) {
	in(func(t *testing.T, w *world) {
		tuned(w, "example")
		b := w.box(true)
		lease := w.mustLease(b.id)
		_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
			LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, SetupSeconds: 2, Neighbours: -1,
			Metrics: map[string]trial.Float{"accuracy": 0.5}, System: map[string]space.Value{"threads": space.Int(1)},
		})
		if err == nil {
			t.Fatal("a report with three faults was taken")
		}
		for _, part := range []string{"setup_seconds", "neighbours", "system"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal does not name %s: %v", part, err)
			}
		}
	})(t)
}

func trialsOf(t *testing.T, w *world, name string) []trial.Trial {
	t.Helper()
	trials, err := w.store.Trials(w.ctx, w.view(name).ID)
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

// The first study of a new user: 9 trials, most of which train one epoch.
func TestShortRunsTeachToo(t *testing.T) {
	for name, fraction := range map[string]string{"all data": "min: 1, max: 1", "growing data": "min: 0.25, max: 1"} {
		t.Run(name, func(t *testing.T) {
			var alone time.Duration
			in(func(t *testing.T, w *world) {
				w.create("name: example", "name: v1", "min: 0.25, max: 1", fraction, "trials: 27", "trials: 9")
				alone = w.box(false).train("v1", slowWithTwo)
			})(t)
			in(func(t *testing.T, w *world) {
				w.create("name: example", "name: short\nsystem: {cpu_threads: {values: [1, 2]}}", "min: 0.25, max: 1", fraction, "trials: 27", "trials: 9")
				took := w.box(true).train("short", slowWithTwo)
				epochs := map[string]int{}
				for _, use := range w.view("short").Progress.SystemUse {
					epochs[system.Configuration(use.Configuration).Key()] += use.Epochs
				}
				t.Logf("default %v, tuned %v, epochs %v", alone, took, epochs)
				if epochs["cpu_threads=1"] < epochs["cpu_threads=2"] {
					t.Errorf("epochs ran with %v, want most with one thread", epochs)
				}
				if took > alone*3/4 {
					t.Errorf("it took %v, more than three quarters of the %v with the default", took, alone)
				}
				answer, err := w.service.Recommendation(w.ctx, "short")
				if err != nil {
					t.Fatal(err)
				}
				if key := system.Configuration(answer.System).Key(); key != "cpu_threads=1" {
					t.Errorf("it recommends %s", key)
				}
				for _, note := range answer.Notes {
					if strings.Contains(note, "measuring") {
						t.Errorf("the study is over, and it says %q", note)
					}
				}
			})(t)
		})
	}
}
