package demand_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/demand"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func wants(running, waiting float64) map[string]demand.Want {
	return map[string]demand.Want{"alice": {Running: running, Waiting: waiting}}
}

func TestAMinuteHasTheMostThatWasWanted(t *testing.T) {
	var gauge demand.Gauge
	host := demand.Host{ID: "a", Capacity: 4, GPUs: true}
	for _, one := range []struct {
		second int
		look   demand.Look
	}{
		{3, demand.Look{Owners: wants(1, 0), Hosts: []demand.Host{host}}},
		{20, demand.Look{Owners: wants(2, 3), Hosts: []demand.Host{host}}},
		{50, demand.Look{Owners: wants(4, 0), Hosts: []demand.Host{host, {ID: "b", Capacity: 1}, {ID: "c", Capacity: 8, Silent: true}}}},
	} {
		if over, whole := gauge.Look(at(one.second), one.look); whole {
			t.Fatalf("after %d seconds %+v is over", one.second, over)
		}
	}
	if over, whole := gauge.Look(at(10), demand.Look{}); whole {
		t.Fatalf("a clock that went back ends %+v", over)
	}
	over, whole := gauge.Look(at(200), demand.Look{})
	if !whole || !over.At.Equal(start) || over.Total() != 5 || over.Running != 2 || over.Capacity != 5 || over.Owners["alice"].Waiting != 3 {
		t.Errorf("the minute is %+v, %v", over, whole)
	}
	over, whole = gauge.Look(at(240), demand.Look{Owners: wants(9, 9)})
	if !whole || !over.At.Equal(at(180)) || over.Total() != 0 || len(over.Owners) != 0 {
		t.Errorf("the next one that was looked at is %+v, %v", over, whole)
	}
}

func TestOwnersAreBounded(t *testing.T) {
	owners := map[string]demand.Want{"nobody": {}}
	for i := range 2 * demand.MaxOwners {
		owners[fmt.Sprint(i)] = demand.Want{Running: float64(i + 1)}
	}
	var gauge demand.Gauge
	gauge.Look(at(0), demand.Look{Owners: owners})
	minute, _ := gauge.Look(at(60), demand.Look{})
	sum := 0.0
	for _, one := range minute.Owners {
		sum += one.Total()
	}
	if len(minute.Owners) != demand.MaxOwners || sum != minute.Total() || minute.Owners[demand.Others].Running != 101*51 {
		t.Errorf("%d owners want %g of %g, the others %+v", len(minute.Owners), sum, minute.Total(), minute.Owners[demand.Others])
	}
}

func TestGapsAreNoDemand(t *testing.T) {
	var history demand.History
	add := func(minute int, total float64) bool {
		return history.Add(demand.Minute{At: at(60 * minute), Want: demand.Want{Running: total}, Owners: map[string]demand.Want{"alice": {Running: total / 2}}})
	}
	for minute, total := range []float64{1, 2, 3} {
		add(minute, total)
	}
	add(100, 4)
	add(103, 5)
	add(104, 6)
	if add(104, 7) || add(50, 7) {
		t.Error("a minute was taken twice, or late")
	}
	minutes := history.Since(start)
	gaps := demand.Gaps(minutes)
	if want := []demand.Gap{{Begin: at(180), End: at(6000)}, {Begin: at(6060), End: at(6180)}}; !slices.Equal(gaps, want) {
		t.Errorf("the gaps are %v", gaps)
	}
	series, bridged := demand.Series(minutes)
	if want := []float64{4, 4, 4, 5, 6}; !slices.Equal(series, want) || bridged != 2 {
		t.Errorf("the series is %v, %d bridged", series, bridged)
	}
	if own, _ := demand.Series(demand.Of(minutes, "alice")); !slices.Equal(own, []float64{2, 2, 2, 2.5, 3}) {
		t.Errorf("alice's series is %v", own)
	}
	if none, _ := demand.Series(nil); len(none) != 0 {
		t.Errorf("of nothing: %v", none)
	}
	if got := history.Since(at(6200)); len(got) != 1 {
		t.Errorf("since then there are %v", got)
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	var history demand.History
	for minute := range 60 * 24 * 60 {
		history.Add(demand.Minute{At: at(60 * minute)})
	}
	minutes := history.Since(start)
	kept := int(demand.Kept / time.Minute)
	if len(minutes) < kept || len(minutes) > kept*8/7+2 {
		t.Errorf("%d minutes are kept, of %d", len(minutes), kept)
	}
	if newest, some := history.Newest(); !some || !newest.At.Equal(at(60*(60*24*60-1))) {
		t.Errorf("the newest is %+v", newest)
	}
}

func TestWhoIsWokenAndDrained(t *testing.T) {
	busy := demand.Host{ID: "busy", Name: "busy", Capacity: 4, Trials: 3}
	calm := demand.Host{ID: "calm", Name: "calm", Capacity: 4, Trials: 1}
	large := demand.Host{ID: "large", Name: "large", Capacity: 8}
	small := demand.Host{ID: "small", Name: "small", Capacity: 1}
	person := demand.Host{ID: "person", Name: "person", Capacity: 32, Draining: true}
	silent := demand.Host{ID: "silent", Name: "silent", Capacity: 8, Silent: true}
	all := []demand.Host{busy, calm, large, small, person, silent} // 17 are awake
	for _, c := range []struct {
		wanted  float64
		changes []string
		missing float64
	}{
		{17, nil, 0},
		{16, []string{"small drain"}, 0},
		{10, []string{"calm drain", "small drain"}, 0},
		{9, []string{"large drain"}, 0},
		{8, []string{"large drain", "small drain"}, 0},
		{4, []string{"calm drain", "large drain", "small drain"}, 0},
		{0, []string{"busy drain", "calm drain", "large drain", "small drain"}, 0},
		{18, []string{"silent wake"}, 0},
		{40, []string{"silent wake"}, 15}, // what a person drained is not counted
	} {
		steps, missing := demand.Plan(all, c.wanted)
		var changes []string
		for _, step := range steps {
			if step.Action != demand.Keep {
				changes = append(changes, step.Host.ID+" "+string(step.Action))
			}
			if step.Reason == "" {
				t.Errorf("%s without a reason", step.Host.ID)
			}
		}
		if !slices.Equal(changes, c.changes) || missing != c.missing || len(steps) != len(all) {
			t.Errorf("for %g: %v, %g missing, want %v, %g", c.wanted, changes, missing, c.changes, c.missing)
		}
	}
}

func TestAPlanLeavesEnoughAwake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hosts []demand.Host
		there := 0.0
		for i := range rapid.IntRange(0, 8).Draw(t, "hosts") {
			one := demand.Host{
				ID: fmt.Sprint(i), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), Capacity: float64(rapid.IntRange(0, 8).Draw(t, "capacity")),
				Trials: rapid.IntRange(0, 3).Draw(t, "trials"), Silent: rapid.Bool().Draw(t, "silent"), Draining: rapid.Bool().Draw(t, "draining"),
			}
			hosts = append(hosts, one)
			if !one.Draining {
				there += one.Capacity
			}
		}
		wanted := float64(rapid.IntRange(0, 40).Draw(t, "wanted"))
		steps, missing := demand.Plan(hosts, wanted)
		awake := 0.0
		for _, step := range steps {
			if is := !step.Host.Silent && !step.Host.Draining; is && step.Action != demand.Drain || !is && step.Action == demand.Wake {
				awake += step.Host.Capacity
			}
			if step.Host.Draining && step.Action != demand.Keep {
				t.Fatalf("a person drained it: %+v", step)
			}
			if step.Action == demand.Drain && (step.Host.Silent || step.Host.Draining) {
				t.Fatalf("%+v", step)
			}
		}
		if awake+missing < wanted || missing > 0 && awake != there || missing != max(0, wanted-there) {
			t.Fatalf("%g are awake and %g missing of %g: %+v", awake, missing, wanted, steps)
		}
	})
}
