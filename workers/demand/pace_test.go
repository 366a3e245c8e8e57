package demand_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/demand"
)

func TestAdviceIsActedOnWithPatience(t *testing.T) {
	pace := demand.Pace{Steady: 3, Pause: 10 * time.Minute}
	step := func(id string, action demand.Action) demand.Step {
		return demand.Step{Host: demand.Host{ID: id}, Action: action}
	}
	for i, c := range []struct {
		minute  int
		steps   []demand.Step
		missing float64
		due     []string
		more    bool
	}{
		{0, []demand.Step{step("a", demand.Drain), step("b", demand.Keep)}, 0, nil, false},
		{1, []demand.Step{step("a", demand.Drain), step("b", demand.Drain)}, 0, nil, false},
		{2, []demand.Step{step("a", demand.Drain), step("b", demand.Keep)}, 0, []string{"a"}, false}, // the third time in a row
		{3, []demand.Step{step("a", demand.Wake), step("b", demand.Drain)}, 0, []string{"a"}, false}, // waking does not wait
		{4, []demand.Step{step("b", demand.Drain)}, 0, nil, false},                                   // a is gone
		{5, []demand.Step{step("b", demand.Drain)}, 4, []string{"b"}, true},
		{6, []demand.Step{step("a", demand.Wake)}, 4, nil, false},
		{12, []demand.Step{step("a", demand.Wake), step("b", demand.Sleep)}, 4, nil, false},
		{13, []demand.Step{step("a", demand.Wake), step("b", demand.Sleep)}, 4, []string{"a"}, false}, // ten minutes after
		{14, []demand.Step{step("b", demand.Sleep)}, 4, []string{"b"}, false},                         // drained long ago
		{15, []demand.Step{step("b", demand.Wake), step("c", demand.Wake)}, 4, []string{"b", "c"}, true},
		{16, []demand.Step{step("b", demand.Drain)}, 0, nil, false},
		{17, []demand.Step{step("b", demand.Drain)}, 0, nil, false},
		{18, []demand.Step{step("b", demand.Drain)}, 0, nil, false}, // steady, but woken three minutes ago
	} {
		due, more := pace.Due(at(60*c.minute), c.steps, c.missing)
		var ids []string
		for _, one := range due {
			ids = append(ids, one.Host.ID)
		}
		if !slices.Equal(ids, c.due) || more != c.more {
			t.Errorf("%d, minute %d: %v, %v, want %v, %v", i, c.minute, ids, more, c.due, c.more)
		}
	}
}
