package search_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// climb runs a study of 72 trials on two rungs, one after the other, and
// returns how many went up and the reasons. The values below are 0
// down to -71; above says what a trial gets there.
func climb(t *testing.T, settings search.Settings, above func(number int) float64) (up int, reasons []string) {
	t.Helper()
	method := start(t, settings)
	for {
		actions, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil {
			t.Fatal(err)
		}
		a := actions[0]
		if a.Kind == search.Finish {
			return up, reasons
		}
		value := -float64(a.Trial)
		if a.Rung == 1 {
			value = above(a.Trial)
			up++
			reasons = append(reasons, a.Reason)
		}
		if _, err := method.Handle(search.Event{Kind: search.Measured, Trial: a.Trial, Rung: a.Rung, Values: []trial.Float{trial.Float(value)}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWidening(t *testing.T) {
	t.Parallel()
	agrees := func(number int) float64 { return -float64(number) }
	unrelated := func(number int) float64 { return float64(number * 29 % 73) } // a fixed shuffle
	reversed := func(number int) float64 { return float64(number) }
	for _, c := range []struct {
		name  string
		above func(int) float64
		widen bool
		least int
		most  int
		says  bool
	}{
		{"ranks agree", agrees, true, 24, 24, false},
		{"ranks are unrelated, and nobody asked", unrelated, false, 24, 24, false},
		{"ranks are reversed", reversed, true, 40, 48, true},
		{"ranks are reversed, and nobody asked", reversed, false, 24, 24, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := sha(2, 3, 72)
			settings.Widen = c.widen
			up, reasons := climb(t, settings, c.above)
			if up < c.least || up > c.most {
				t.Errorf("%d of 72 went up, want %d to %d", up, c.least, c.most)
			}
			said := strings.Contains(strings.Join(reasons, "\n"), "instead of")
			if said != c.says {
				t.Errorf("said so: %t, want %t; the last: %s", said, c.says, reasons[len(reasons)-1])
			}
			for _, reason := range reasons[:8] {
				if strings.Contains(reason, "instead of") {
					t.Errorf("widened before eight pairs were seen: %s", reason)
				}
			}
		})
	}
}

func TestWideningNeedsAsynchronousPromotion(t *testing.T) {
	t.Parallel()
	settings := sha(2, 3, 9)
	settings.Widen, settings.Promotion, settings.Brackets = true, budget.Synchronous, 0
	if _, err := search.New(settings); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "search.widen") {
		t.Errorf("got %v", err)
	}
}
