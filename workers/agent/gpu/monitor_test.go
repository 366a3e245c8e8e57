package gpu

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
)

const gigabyte = 1 << 30

// onGPU is what a driver tells of a GPU with 16 GiB.
func onGPU(utilization float64, used int64, processes ...profiler.GPUProcess) profiler.GPUUse {
	return profiler.GPUUse{Utilization: utilization, UsedBytes: used * gigabyte, MemoryBytes: 16 * gigabyte, Processes: processes}
}

func holding(pid int, memory int64, utilization float64) profiler.GPUProcess {
	return profiler.GPUProcess{PID: pid, MemoryBytes: memory * gigabyte, Utilization: utilization}
}

// undivided is a GPU whose driver does not tell utilization by process.
func undivided(use profiler.GPUUse) profiler.GPUUse {
	use.ByProcess = errors.New("this GPU does not support it")
	return use
}

func TestWhatTrialsUseOfTheirGPUs(t *testing.T) {
	given := func(members []int, places ...int) Occupant {
		return Occupant{Places: places, Given: true, Members: members}
	}
	loose := func(members []int, places ...int) Occupant { return Occupant{Places: places, Members: members} }
	for name, test := range map[string]struct {
		uses      []profiler.GPUUse
		occupants []Occupant
		want      string // of each: utilization, GiB, seconds, alone or shared, method
	}{
		"alone": {
			[]profiler.GPUUse{onGPU(0.7, 3, holding(10, 2, 0.6))},
			[]Occupant{given([]int{9, 10}, 0)}, "0.7 2GiB 1s alone process",
		},
		"two of the server's on one": {
			[]profiler.GPUUse{onGPU(0.9, 6, holding(10, 2, 0.3), holding(20, 3, 0.5), holding(21, 1, 0.1))},
			[]Occupant{given([]int{10}, 0), given([]int{20, 21}, 0)}, "0.3 2GiB 1s shared process; 0.6 4GiB 1s shared process",
		},
		"one of the server's and one that has not begun": {
			[]profiler.GPUUse{onGPU(0.9, 6, holding(10, 2, 0.3))},
			[]Occupant{given([]int{10}, 0), given([]int{20}, 0)}, "0.9 2GiB 1s alone process; -",
		},
		"somebody else's beside it": {
			[]profiler.GPUUse{onGPU(0.9, 6, holding(10, 2, 0.3), holding(77, 4, 0.6))},
			[]Occupant{given([]int{10}, 0)}, "0.3 2GiB 1s shared process",
		},
		"shared, and the driver does not tell them apart": {
			[]profiler.GPUUse{undivided(onGPU(0.9, 6, holding(10, 2, 0), holding(20, 3, 0)))},
			[]Occupant{given([]int{10}, 0), given([]int{20}, 0)}, "0 2GiB 0s shared process; 0 3GiB 0s shared process",
		},
		"alone, and the driver would not tell them apart": {
			[]profiler.GPUUse{undivided(onGPU(0.9, 6, holding(10, 2, 0)))},
			[]Occupant{given([]int{10}, 0)}, "0.9 2GiB 1s alone process",
		},
		"memory of processes is not told": {
			[]profiler.GPUUse{onGPU(0.9, 6, profiler.GPUProcess{PID: 10, MemoryBytes: -1, Utilization: 0.5})},
			[]Occupant{given([]int{10}, 0)}, "0.9 6GiB 1s alone process",
		},
		"a container in which the driver tells no processes": {
			[]profiler.GPUUse{onGPU(0.4, 5)},
			[]Occupant{given([]int{10}, 0)}, "0.4 5GiB 1s alone device",
		},
		"two in such a container": {
			[]profiler.GPUUse{onGPU(0.4, 5)},
			[]Occupant{given([]int{10}, 0), given([]int{20}, 0)}, "-; -",
		},
		"two GPUs, one of them idle": {
			[]profiler.GPUUse{onGPU(0.8, 6, holding(10, 5, 0.8)), onGPU(0, 0)},
			[]Occupant{given([]int{10}, 0, 1)}, "0.4 5GiB 1s alone process",
		},
		"two GPUs": {
			[]profiler.GPUUse{onGPU(0.8, 6, holding(10, 5, 0.8)), onGPU(0.6, 8, holding(11, 7, 0.6))},
			[]Occupant{given([]int{10, 11}, 0, 1)}, "0.7 7GiB 1s alone process",
		},
		"of a study that says nothing of GPUs": {
			[]profiler.GPUUse{onGPU(0.8, 6), onGPU(0.6, 8, holding(11, 7, 0.6))},
			[]Occupant{loose([]int{10, 11}, 0, 1)}, "0.6 7GiB 1s alone process",
		},
		"it does not use the GPU yet": {
			[]profiler.GPUUse{onGPU(0, 0), onGPU(0.5, 3, holding(20, 3, 0.5))},
			[]Occupant{loose([]int{10}, 0, 1)}, "-",
		},
		"more were given than there are": {
			[]profiler.GPUUse{onGPU(0.7, 3, holding(10, 2, 0.6))},
			[]Occupant{given([]int{10}, 0, 5)}, "0.35 2GiB 1s alone process",
		},
	} {
		t.Run(name, func(t *testing.T) {
			driver := agenttest.NewGPUs(len(test.uses))
			driver.Look = func(device int) (profiler.GPUUse, error) { return test.uses[device], nil }
			for i := range test.occupants {
				test.occupants[i].Use = &Use{}
			}
			if err := (&monitor{driver: driver, devices: driver.Shown}).look(test.occupants, time.Second); err != nil {
				t.Fatal(err)
			}
			got := ""
			for i, one := range test.occupants {
				if i > 0 {
					got += "; "
				}
				got += shownUse(one.Use.Take())
				if again := one.Use.Take(); again != nil {
					t.Errorf("it is told twice: %s", shownUse(again))
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func shownUse(use *trial.GPUUse) string {
	if use == nil {
		return "-"
	}
	with := "shared"
	if use.Alone {
		with = "alone"
	}
	return fmt.Sprintf("%.3g %dGiB %gs %s %s", use.Utilization, use.MemoryBytes/gigabyte, use.Seconds, with, use.Method)
}

// A driver that has told processes of ours tells all of them: where it then
// tells none, nothing of ours is on the GPU.
func TestADriverThatTellsProcessesTellsAll(t *testing.T) {
	now := onGPU(0.7, 3, holding(10, 2, 0.6))
	driver := agenttest.NewGPUs(1)
	driver.Look = func(int) (profiler.GPUUse, error) { return now, nil }
	one := Occupant{Places: []int{0}, Given: true, Members: []int{10}, Use: &Use{}}
	monitor := &monitor{driver: driver, devices: []int{0}}
	if err := monitor.look([]Occupant{one}, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	now = onGPU(0.1, 1)
	if err := monitor.look([]Occupant{one}, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := one.Use.Take(); got == nil || got.Seconds != 2 || math.Abs(got.Utilization-0.7) > 1e-9 {
		t.Errorf("seen is %s", shownUse(got))
	}
	driver.Look = nil
	if err := monitor.look([]Occupant{one}, time.Second); err == nil {
		t.Error("a driver that tells nothing is not noticed")
	}
}
