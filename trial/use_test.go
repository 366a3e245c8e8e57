package trial_test

import (
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func epochWith(threads int64, phase trial.Phase, seconds trial.Float, saved *trial.Saving) trial.Report {
	return trial.Report{
		System: map[string]space.Value{"cpu_threads": space.Int(threads)}, SystemPhase: phase, Seconds: seconds,
		Energy: trial.Energy{Joules: 10 * seconds, Method: "rapl"}, Saved: saved,
	}
}

func TestUseIsAddedUpByConfigurationAndPhase(t *testing.T) {
	var list []trial.SystemUse
	for _, report := range []trial.Report{
		epochWith(2, trial.Probing, 2, nil),
		epochWith(1, trial.Probing, 1, &trial.Saving{Seconds: 1, Joules: 10}),
		epochWith(1, trial.Decided, 1, &trial.Saving{Seconds: 1, Joules: 10}),
		epochWith(1, trial.Decided, 1.5, nil),
	} {
		before := list
		list = trial.Using(list, report)
		if len(before) > 0 && &before[0] == &list[0] {
			t.Error("the list before was changed")
		}
	}
	one, two := map[string]space.Value{"cpu_threads": space.Int(1)}, map[string]space.Value{"cpu_threads": space.Int(2)}
	want := []trial.SystemUse{
		{Configuration: two, Phase: trial.Probing, Epochs: 1, Seconds: 2, Joules: 20},
		{Configuration: one, Phase: trial.Probing, Epochs: 1, Seconds: 1, Joules: 10, Saved: &trial.Saving{Seconds: 1, Joules: 10}},
		{Configuration: one, Phase: trial.Decided, Epochs: 2, Seconds: 2.5, Joules: 25, Saved: &trial.Saving{Seconds: 1, Joules: 10}},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
}
