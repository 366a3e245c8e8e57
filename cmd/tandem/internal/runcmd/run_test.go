package runcmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
)

func TestAStudyThatIsKeptIsToldInWhatItDiffers(t *testing.T) {
	stored := definition.Definition{Name: "a", Code: "1", Search: definition.Search{Seed: 7}, Stop: definition.Stop{Trials: 60}}
	file := definition.Definition{Name: "a-2", Code: "1", Search: definition.Search{Promotion: stored.Search.Promotion.OrDefault()}, Stop: definition.Stop{Trials: 50}}
	found := protocol.StudyView{Definition: stored, Extended: true}
	if got := differing(found, file); len(got) > 0 {
		t.Errorf("an extended study differs in %q", got)
	}
	found.Definition.Priority, found.Set.Priority = 5, new(5)
	if got := differing(found, file); len(got) > 0 {
		t.Errorf("a study whose priority was set differs in %q", got)
	}
	found.Definition.Priority, found.Set.Priority = 0, nil
	for name, c := range map[string]struct {
		trials  int
		seconds float64
		code    string
		want    string
	}{
		"more trials":     {80, 0, "1", "'tandem study set a --priority 1', 'tandem study extend a --trials 20' makes it the same"},
		"fewer trials":    {50, 0, "1", ""},
		"another script":  {80, 0, "2", ""},
		"other bounds":    {80, 9, "1", ""},
		"no bound at all": {definition.MaxTrials, 0, "1", ""},
	} {
		larger, one := file, protocol.StudyView{Name: "a", Definition: stored}
		larger.Stop, larger.Code, larger.Priority = definition.Stop{Trials: c.trials, Seconds: c.seconds}, c.code, 1
		got := new(runFlags).instead(one, larger, differing(one, larger))
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
	found.Extended, file.Code, file.Priority = false, "2", 1
	if got := differing(found, file); !slices.Equal(got, []string{"code: the script, or a file beside it, has changed", "priority", "stop"}) {
		t.Errorf("it differs in %q", got)
	}
}

func TestRunTakesSlots(t *testing.T) {
	for _, test := range []struct {
		given []string
		shown string
		fails bool
	}{
		{nil, "auto", false},
		{[]string{"--slots", "auto"}, "auto", false},
		{[]string{"--slots=0"}, "auto", false},
		{[]string{"--slots", "3"}, "3", false},
		{[]string{"--slots", "1024"}, "1024", false},
		{[]string{"--slots", "1025"}, "", true},
		{[]string{"--slots", "-1"}, "", true},
		{[]string{"--slots", "many"}, "", true},
	} {
		command := Command()
		err := command.ParseFlags(test.given)
		if test.fails != (err != nil) {
			t.Errorf("%v: got %v", test.given, err)
		}
		if flag := command.Flags().Lookup("slots"); !test.fails && flag.Value.String() != test.shown {
			t.Errorf("%v: it is shown as %s", test.given, flag.Value)
		}
	}
}
