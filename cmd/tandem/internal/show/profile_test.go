package show

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func TestATrialsProfileIsTheRangeOfItsEpochs(t *testing.T) {
	reports := []trial.Report{
		{Epoch: 1, Profile: &trial.Profile{Level: "kernel", Events: map[string]trial.Float{"page-faults": 1200}, Host: map[string]trial.Float{"tree.threads": 2}}},
		{Epoch: 2},
		{Epoch: 3, Profile: &trial.Profile{Level: "kernel", RunFraction: 0.5, Events: map[string]trial.Float{"page-faults": 10, "instructions": 5}}},
	}
	var out strings.Builder
	if err := PrintTrialProfile(&out, reports); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Profile \(kernel\), scaled: events had a counter at least 50% of the time`, `instructions +5 +5\n`, `page-faults +10 +1,200\n`, `tree.threads +2 +2\n`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
	out.Reset()
	if err := PrintTrialProfile(&out, reports[1:2]); err != nil || out.Len() > 0 {
		t.Errorf("without a profile it says %q, %v", &out, err)
	}
}
