package show

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func threadsOf(n int64) map[string]space.Value {
	return map[string]space.Value{"cpu_threads": space.Int(n)}
}

func TestTrialShowsItsSystemConfigurations(t *testing.T) {
	detail := protocol.TrialDetail{Reports: []trial.Report{
		{Epoch: 1, Seconds: 2, System: threadsOf(2), SystemPhase: trial.Default, SystemWhy: "nothing is known", Energy: trial.Energy{Joules: 30, Method: "rapl"}},
		{Epoch: 2, Seconds: 3, System: threadsOf(1), SystemPhase: trial.Probing, SystemWhy: "measuring \x1b[31mone thread", Saved: &trial.Saving{Seconds: -1, Joules: -0.2}},
		{Epoch: 3, Seconds: 1, System: threadsOf(1), SystemPhase: trial.Similar, SystemWhy: "workload a, confidence 80 %", Saved: &trial.Saving{Seconds: 1.5, Joules: 12000}},
	}}
	detail.Trial.Saved = &trial.Saving{Seconds: 0.5, Joules: -3,
		SecondsLow: new(trial.Float(0.3)), SecondsHigh: new(trial.Float(0.7)), JoulesLow: new(trial.Float(-4)), JoulesHigh: new(trial.Float(-2))}
	detail.Trial.Setting = &trial.Setting{Configuration: threadsOf(1), Phase: trial.Script, Why: "it is the best"}
	detail.Trial.State = trial.Running
	var out bytes.Buffer
	if err := PrintTrialSystem(&out, detail); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"System configuration of each epoch; savings against the default are measured, with 95% intervals",
		"RUNG EPOCH CONFIGURATION PHASE TIME ENERGY SAVED TIME SAVED ENERGY WHY",
		"0 1 cpu_threads=2 default 2.0s 30 J - - nothing is known",
		"0 2 cpu_threads=1 probing 3.0s energy not known -1.0s -0.2 J measuring [31mone thread",
		"0 3 cpu_threads=1 similar 1.0s energy not known 1.5s 12.0 kJ workload a, confidence 80 %",
		"Saved: 0.5s (95% interval 0.3s to 0.7s) less of the machine's time and 3.0 J (95% interval 2.0 J to 4.0 J) more than with the default system configuration",
		"Next: cpu_threads=1 (script): it is the best",
	}
	compareLines(t, out.String(), want)
}

func TestStudyShowsWhatTuningTheSystemSaved(t *testing.T) {
	progress := protocol.Progress{
		Saved: &trial.Saving{Seconds: 90}, EpochsByPhase: map[trial.Phase]int{trial.Script: 3, trial.Probing: 1},
		SystemUse: []trial.SystemUse{
			{Configuration: threadsOf(1), Phase: trial.Script, Epochs: 3, Seconds: 90, Saved: &trial.Saving{Seconds: 90}},
			{Configuration: threadsOf(2), Phase: trial.Probing, Epochs: 1, Seconds: 60},
		},
	}
	var out bytes.Buffer
	if err := printStudySystem(&out, progress); err != nil {
		t.Fatal(err)
	}
	compareLines(t, out.String(), []string{
		"System: epochs by phase: 3 script (75 %), 1 probing (25 %)",
		"Saved: 1m30s less of the machine's time than with the default system configuration, an estimate",
		"CONFIGURATION PHASE EPOCHS TIME SAVED TIME SAVED ENERGY",
		"cpu_threads=1 script 3 1m30s 1m30s 0 J",
		"cpu_threads=2 probing 1 1m00s - -",
	})
}

func TestNoDifferenceIsSaid(t *testing.T) {
	for want, phases := range map[string]map[trial.Phase]int{
		"Saved: no difference from the default system configuration found in 4 epochs with it":     {trial.Decided: 30, trial.Control: 4},
		"Saved: not measured yet: no control epoch compared with the default system configuration": {trial.Probing: 3, trial.Default: 2},
	} {
		var out bytes.Buffer
		progress := protocol.Progress{EpochsByPhase: phases, SystemUse: []trial.SystemUse{{Configuration: threadsOf(1), Phase: trial.Decided, Epochs: 3}}}
		if err := printStudySystem(&out, progress); err != nil || !strings.Contains(out.String(), want+"\n") {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}

func TestSavingsOfEstimatedJoulesAreEstimates(t *testing.T) {
	saving := trial.Saving{Joules: 14, SecondsLow: new(trial.Float(0)), SecondsHigh: new(trial.Float(0)), JoulesLow: new(trial.Float(8.5)), JoulesHigh: new(trial.Float(21))}
	for method, mark := range map[string]string{"estimate: 10 W per busy core": " (estimate)", "rapl": ""} {
		spent := trial.Energy{Joules: 206, Method: method}
		progress := protocol.Progress{Energy: spent, Saved: &saving, SystemUse: []trial.SystemUse{{Configuration: threadsOf(1), Epochs: 3, Saved: &saving}}}
		detail := protocol.TrialDetail{Reports: []trial.Report{{Epoch: 1, System: threadsOf(1), Energy: spent, Saved: &saving, SystemWhy: "it is the best"}}}
		detail.Trial.Saved, detail.Trial.Energy, detail.Trial.Setting = &saving, spent, &trial.Setting{}
		var out bytes.Buffer
		if err := errors.Join(printStudySystem(&out, progress), PrintTrialSystem(&out, detail)); err != nil {
			t.Fatal(err)
		}
		sentence := "Saved: no difference in the machine's time found and 14 J (95% interval 8.5 J to 21 J) less" + mark + " than with the default system configuration\n"
		if text := out.String(); strings.Count(text, sentence) != 2 || strings.Count(text, "  14 J"+mark) != 2 || strings.Count(text, "(estimate)") != 5*len(mark)/11 {
			t.Errorf("joules by %q:\n%s", method, text)
		}
	}
}

func TestNothingIsSaidWhereNothingIsTuned(t *testing.T) {
	var out bytes.Buffer
	if err := printStudySystem(&out, protocol.Progress{}); err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := PrintTrialSystem(&out, protocol.TrialDetail{Reports: []trial.Report{{Epoch: 1}}}); err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// compareLines compares the lines that are not empty, with single spaces.
func compareLines(t *testing.T, text string, want []string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			got = append(got, strings.Join(fields, " "))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
