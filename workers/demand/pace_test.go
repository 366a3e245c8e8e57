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
	woken := at(60 * 15)
	for i, c := range []struct {
		minute int
		steps  []demand.Step
		due    []string
	}{
		{0, []demand.Step{step("a", demand.Drain), step("b", demand.Keep)}, nil},
		{1, []demand.Step{step("a", demand.Drain), step("b", demand.Drain)}, nil},
		{2, []demand.Step{step("a", demand.Drain), step("b", demand.Keep)}, []string{"a"}}, // the third time in a row
		{3, []demand.Step{step("a", demand.Drain), step("b", demand.Drain)}, nil},
		{4, []demand.Step{step("b", demand.Drain)}, nil}, // a is gone
		{5, []demand.Step{step("b", demand.Drain)}, []string{"b"}},
		{6, []demand.Step{step("a", demand.Drain)}, nil},
		{7, []demand.Step{step("a", demand.Drain)}, nil},
		{8, []demand.Step{step("a", demand.Drain)}, nil}, // steady, but drained six minutes ago
		{12, []demand.Step{step("a", demand.Drain)}, []string{"a"}},
		{16, []demand.Step{step("b", demand.Drain)}, nil},
		{17, []demand.Step{step("b", demand.Drain)}, nil},
		{18, []demand.Step{step("b", demand.Drain)}, nil}, // steady, but woken three minutes ago
		{25, []demand.Step{step("b", demand.Drain)}, []string{"b"}},
	} {
		if c.minute == 16 {
			pace.Acted("b", woken)
		}
		var ids []string
		for _, one := range pace.Due(at(60*c.minute), c.steps) {
			ids = append(ids, one.Host.ID)
		}
		if !slices.Equal(ids, c.due) {
			t.Errorf("%d, minute %d: %v, want %v", i, c.minute, ids, c.due)
		}
	}
}
