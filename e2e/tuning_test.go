package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// newTunedStudy is a study of a script that sleeps longer with more threads, and whose
// threads are tuned. The script gets its name in the folder, and sleeps a second's
// fraction, times what is given.
func newTunedStudy(t *testing.T, folder, name, script, times string) study {
	t.Helper()
	return newStudy(t, name, nineEpochs, "0.12", 8).with(folder, script, times, "system: {cpu_threads: {values: [1, 2]}}")
}

// with is the study, in the folder, of another script and with another system section.
func (s study) with(folder, script, times, section string) study {
	t := s.t
	t.Helper()
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	from := "threads.py"
	if script == "loader.py" {
		from = script
	}
	source, err := os.ReadFile("testdata/" + from)
	if err != nil {
		t.Fatal(err)
	}
	source = []byte(strings.Replace(string(source), " * threads)", times+")", 1))
	tuned := strings.NewReplacer("train.py", script, "system: off", section).Replace(string(content))
	s.file = filepath.Join(folder, s.name+".yaml")
	for path, data := range map[string][]byte{s.file: []byte(tuned), filepath.Join(folder, script): source} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// epochsOf runs a study and counts its epochs by phase, and those that came first in
// their trial.
func epochsOf(t *testing.T, here *site, s study, name string) (all, first map[trial.Phase]int, beside float64) {
	t.Helper()
	here.must("study", "create", s.file)
	here.must("study", "watch", name)
	all, first = map[trial.Phase]int{}, map[trial.Phase]int{}
	for _, reports := range here.books(name).reports(t) {
		for i, report := range reports {
			all[report.SystemPhase]++
			if i == 0 {
				first[report.SystemPhase]++
			}
			beside = max(beside, float64(report.Neighbours))
			if _, told := report.System[system.CPUThreads]; !told {
				t.Errorf("epoch %d does not say with how many threads it ran", report.Epoch)
			}
		}
	}
	return all, first, beside
}

// part is the part of the epochs that ran in one of the phases.
func part(epochs map[trial.Phase]int, phases ...trial.Phase) float64 {
	some, total := 0, 0
	for phase, n := range epochs {
		total += n
		if slices.Contains(phases, phase) {
			some += n
		}
	}
	return float64(some) / float64(total)
}

// TestTheSystemIsTunedWhileTrialsTrain runs three studies on an elastic worker: in
// the first the script's threads are probed; the second, of the same script, uses what
// was found from its first epoch on, and trials run beside each other; the third is of
// another script that does the same, which its profile shows.
func TestTheSystemIsTunedWhileTrialsTrain(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one core: nothing can run beside anything")
	}
	t.Parallel()
	here, folder := newSite(t), t.TempDir()
	here.worker("--slots", "auto")
	first, _, beside := epochsOf(t, here, newTunedStudy(t, folder, "first", "threads.py", " * threads"), "first")
	if first[trial.Default] == 0 || first[trial.Probing] == 0 || first[trial.Script]+first[trial.Similar]+first[trial.Machine] > 0 {
		t.Errorf("the first study's epochs ran under %v: want the default, probing and what the study found", first)
	}
	if beside < 0.5 {
		t.Errorf("at most %.1f trials ran beside one", beside)
	}
	second, starts, beside := epochsOf(t, here, newTunedStudy(t, folder, "second", "threads.py", " * threads"), "second")
	if part(starts, trial.Script, trial.Study) < 0.9 || part(second, trial.Probing, trial.Default) > 0.2 || beside < 0.5 {
		t.Errorf("the second study started with %v and ran under %v with up to %.1f trials beside one: want what was found, at once", starts, second, beside)
	}
	third, starts, _ := epochsOf(t, here, newTunedStudy(t, folder, "third", "other.py", " * threads"), "third")
	if starts[trial.Machine] == 0 || third[trial.Similar] == 0 {
		t.Errorf("the third study started with %v and ran under %v: want the machine's, then what is similar", starts, third)
	}
	single, trials := 0, here.books("second").Trials
	for _, one := range trials {
		if threads, _ := one.Setting.Configuration[system.CPUThreads].Integer(); threads == 1 {
			single++
		} else { // cores that nobody else wanted any more may have been tried
			t.Logf("trial %d ended with %d threads: %s", one.Number, threads, one.Setting.Why)
		}
	}
	if 2*single <= len(trials) {
		t.Errorf("%d of %d trials ended with one thread, which is twice as fast", single, len(trials))
	}
	if answer := here.must("study", "recommend", "second"); !strings.Contains(answer, "cpu_threads") {
		t.Errorf("the recommendation does not say with how many threads to train:\n%s", answer)
	}
}

// TestThreadsAreTunedByDefault runs studies without a system section: of a script that takes
// 16 times as long with two threads, of one that ignores them, and the first one again
// with the section off. The first one ends with one thread, and its trials say why.
func TestThreadsAreTunedByDefault(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one core: there are no threads to choose from")
	}
	t.Parallel()
	here, folder := newSite(t), t.TempDir()
	here.worker("--slots", "1")
	short := func(name string) study {
		return newStudy(t, name, "epochs, epochs: {min: 6, max: 6}", "0.05", 4)
	}
	tuned := short("default").with(folder, "threads.py", " * threads ** 4", "")
	if plan := here.must("study", "plan", tuned.file); !strings.Contains(plan, "cpu_threads is tuned while trials train") {
		t.Errorf("the plan does not say that threads are tuned:\n%s", plan)
	}
	if all, _, _ := epochsOf(t, here, tuned, "default"); all[trial.Probing] == 0 || all[""] > 0 {
		t.Errorf("the epochs ran under %v: want some that probe, and a phase for each", all)
	}
	trials := here.books("default").Trials
	last := trials[len(trials)-1]
	if threads, _ := last.Setting.Configuration[system.CPUThreads].Integer(); threads != 1 {
		t.Errorf("the last trial ended with %d threads: %s", threads, last.Setting.Why)
	}
	if told := here.must("study", "trial", "default", "1"); !strings.Contains(told, "cpu_threads=1") {
		t.Errorf("trial 1 does not show what was decided:\n%s", told)
	}
	epochsOf(t, here, short("same").with(folder, "same.py", "", ""), "same")
	claimsNothing(t, here.progress(t, "same"))
	off := short("untuned")
	if plan := here.must("study", "plan", off.file); !strings.Contains(plan, "nothing is tuned, as system is off") {
		t.Errorf("the plan does not say that system is off:\n%s", plan)
	}
	here.must("study", "create", off.file)
	here.must("study", "watch", "untuned")
	for _, reports := range here.books("untuned").reports(t) {
		for _, report := range reports {
			if report.SystemPhase != "" || len(report.System) > 0 {
				t.Errorf("with system: off, epoch %d ran %s under %v", report.Epoch, report.SystemPhase, report.System)
			}
		}
	}
}

// TestASavingIsMeasuredOrNotClaimed runs studies of two scripts, one trial at a time:
// of one that sleeps longer with more threads a saving is told, with its interval, in one
// study of a few (on a busy machine some have none to tell); of one that does not look at
// its threads none.
func TestASavingIsMeasuredOrNotClaimed(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name, times string
		saves       bool
	}{{"longer", " * 2 * threads ** 2", true}, {"same", "", false}} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			here, folder := newSite(t), t.TempDir()
			here.worker("--slots", "1")
			sum := map[trial.Phase]int{} // comparisons count among the epochs of all runs of the script
			names := []string{"first"}   // its 72 epochs have room for a claim
			if one.saves {
				names = []string{"first", "second", "third", "fourth", "fifth", "sixth"}
			}
			for i, name := range names {
				all, _, _ := epochsOf(t, here, newTunedStudy(t, folder, name, "threads.py", one.times), name)
				t.Logf("%s: %v", name, all)
				progress := here.progress(t, name)
				if !one.saves {
					claimsNothing(t, progress)
				}
				for phase, epochs := range all {
					sum[phase] += epochs
				}
				if part(sum, trial.Control) > 0.06 {
					t.Errorf("%s ran %v, all %v: more than a twentieth with the default, for comparison", name, all, sum)
				}
				if !one.saves || i == 0 { // the first one probes
					continue
				}
				told := here.must("study", "show", name)
				if saved := progress.Saved; saved != nil && saved.SecondsLow != nil && *saved.SecondsLow > 0 && strings.Contains(told, "95% interval") {
					break
				}
				if i == len(names)-1 {
					t.Errorf("no study told what was saved, the last one %+v:\n%s", progress.Saved, told)
				}
			}
		})
	}
}

// claimsNothing holds the study of a script that ignores its threads to no saving.
func claimsNothing(t *testing.T, progress protocol.Progress) {
	t.Helper()
	if saved := progress.Saved; saved != nil && saved.Seconds > 0 {
		t.Errorf("a script that ignores its threads is said to have saved %+v", *saved)
	}
}

// progress is how far a study is, by the command line.
func (s *site) progress(t *testing.T, name string) protocol.Progress {
	t.Helper()
	var view protocol.StudyView
	if err := json.Unmarshal([]byte(s.must("study", "show", name, "--json")), &view); err != nil {
		t.Fatal(err)
	}
	return view.Progress
}

// TestLoaderWorkersAreTunedWhereTheScriptReadsThem runs studies without a system section:
// of a script whose epochs wait for data, which more processes prepare faster; and of one
// that never asks for their number, which then appears nowhere.
func TestLoaderWorkersAreTunedWhereTheScriptReadsThem(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one core: there is nothing to choose from")
	}
	t.Parallel()
	here, folder := newSite(t), t.TempDir()
	here.worker("--slots", "1")
	short := func(name string) study {
		return newStudy(t, name, "epochs, epochs: {min: 6, max: 6}", "0.1", 4)
	}
	reader := short("reader").with(folder, "loader.py", "", "")
	if plan := here.must("study", "plan", reader.file); !strings.Contains(plan, "trial.loader_workers()") {
		t.Errorf("the plan does not say what has the loader's processes tuned:\n%s", plan)
	}
	all, _, _ := epochsOf(t, here, reader, "reader")
	if all[trial.Probing] == 0 || all[""] > 0 {
		t.Errorf("the epochs ran under %v: want some that probe, and a phase for each", all)
	}
	trials := here.books("reader").Trials
	last := trials[len(trials)-1]
	if loaders, _ := last.Setting.Configuration[system.LoaderWorkers].Integer(); loaders == 0 {
		t.Errorf("the last trial ended with %v: %s", last.Setting.Configuration, last.Setting.Why)
	}
	for number, reports := range here.books("reader").reports(t) {
		for _, report := range reports {
			if _, told := report.System[system.LoaderWorkers]; !told {
				t.Errorf("epoch %d of trial %v does not say how many processes loaded its data", report.Epoch, number)
			}
		}
	}
	epochsOf(t, here, short("other").with(folder, "same.py", "", ""), "other")
	claimsNothing(t, here.progress(t, "other"))
	for _, one := range here.books("other").Trials {
		if _, has := one.Setting.Configuration[system.LoaderWorkers]; has {
			t.Errorf("trial %d of a script that reads no loader_workers has %v", one.Number, one.Setting.Configuration)
		}
	}
}
