package trial_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func many(n int) map[string]trial.Float {
	values := map[string]trial.Float{}
	for i := range n {
		values[fmt.Sprint("event-", i)] = 1
	}
	return values
}

func TestProfilesAreBounded(t *testing.T) {
	one := func(name string, value float64) map[string]trial.Float {
		return map[string]trial.Float{name: trial.Float(value)}
	}
	for name, test := range map[string]struct {
		profile trial.Profile
		want    string
	}{
		"nothing":           {trial.Profile{Level: "host metrics only"}, ""},
		"as many as it may": {trial.Profile{Events: many(100), Host: one("tree.threads", 0)}, ""},
		"too many":          {trial.Profile{Events: many(100), Host: many(29)}, "at most 128"},
		"a negative rate":   {trial.Profile{Host: one("tree.threads", -1)}, "at least 0"},
		"infinity":          {trial.Profile{Events: one("cpu-cycles", math.Inf(1))}, "cpu-cycles"},
		"a long name":       {trial.Profile{Events: one(strings.Repeat("x", 65), 1)}, "64 bytes"},
		"no name":           {trial.Profile{Events: one("", 1)}, "64 bytes"},
		"a fraction":        {trial.Profile{RunFraction: 1.5}, "run fraction"},
		"not a fraction":    {trial.Profile{RunFraction: trial.Float(math.NaN())}, "run fraction"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(test.profile.Faults(), "; ")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("faults %q, want %q", got, test.want)
			}
		})
	}
}

// TestReportsOfBeforeProfilesAreReadAsTheyWere: stored documents have no such
// member, and reports without a profile write none.
func TestReportsOfBeforeProfilesAreReadAsTheyWere(t *testing.T) {
	var old trial.Report
	const document = `{"trial_id":"s-1","rung":0,"epoch":1,"metrics":{"loss":1},"seconds":1,"energy":{"joules":1,"method":"rapl"},"lease_epoch":1,"worker":"w","at":"2026-01-01T00:00:00Z"}`
	if err := json.Unmarshal([]byte(document), &old); err != nil || old.Profile != nil {
		t.Fatalf("%+v, %v", old, err)
	}
	if again, err := json.Marshal(old); err != nil || string(again) != document {
		t.Errorf("it is written as %s, %v", again, err)
	}
}
