package e2e_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// newTunedStudy is a study of a script that sleeps twice as long with two
// threads, and whose threads are tuned.
func newTunedStudy(t *testing.T, name string) study {
	t.Helper()
	s := newStudy(t, name, nineEpochs, "0.12", 8)
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/threads.py")
	if err != nil {
		t.Fatal(err)
	}
	tuned := strings.Replace(string(content), "train.py", "threads.py", 1) + "system: {cpu_threads: {values: [1, 2]}}\n"
	for path, data := range map[string][]byte{s.file: []byte(tuned), filepath.Join(filepath.Dir(s.file), "threads.py"): script} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestTheSystemIsTunedWhileTrialsTrain runs two studies on an elastic worker: in
// the first the script's threads are probed, the second one uses what was found
// from its first epoch on, and trials run beside each other.
func TestTheSystemIsTunedWhileTrialsTrain(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one core: nothing can run beside anything")
	}
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "auto")
	phases := func(name string) (map[trial.Phase]int, float64) {
		s := newTunedStudy(t, name)
		here.must("study", "create", s.file)
		here.must("study", "watch", name)
		counts, beside := map[trial.Phase]int{}, 0.0
		for _, reports := range here.books(name).reports(t) {
			for _, report := range reports {
				counts[report.SystemPhase]++
				beside = max(beside, float64(report.Neighbours))
				if _, told := report.System[system.CPUThreads]; !told {
					t.Errorf("epoch %d does not say with how many threads it ran", report.Epoch)
				}
			}
		}
		return counts, beside
	}
	first, beside := phases("first")
	if first[trial.Default] == 0 || first[trial.Probing] == 0 {
		t.Errorf("the first study's epochs ran under %v: want the default, then probing", first)
	}
	if beside < 0.5 {
		t.Errorf("at most %.1f trials ran beside one", beside)
	}
	second, beside := phases("second")
	if second[trial.Default] > 0 || second[trial.Reused]+second[trial.Decided] == 0 || beside < 0.5 {
		t.Errorf("the second study's epochs ran under %v with up to %.1f trials beside one: want what was found, at once", second, beside)
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
