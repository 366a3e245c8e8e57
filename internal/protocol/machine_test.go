package protocol_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Alike machines have one type, whatever they are called and whatever they can
// measure; machines on which a workload may do something else have another.
func TestMachineTypeTellsUnlikeMachinesApart(t *testing.T) {
	plain := func() protocol.Machine {
		return protocol.Machine{Host: "a", CPUModel: "EPYC", Cores: 8, MemoryBytes: 64 << 30, GPUs: []string{"H200"}}
	}
	types := map[string]string{}
	for name, change := range map[string]func(*protocol.Machine){
		"EPYC, 8 cores, H200":                       func(*protocol.Machine) {},
		"Xeon, 8 cores, H200":                       func(m *protocol.Machine) { m.CPUModel = "Xeon" },
		"EPYC, 4 cores, H200":                       func(m *protocol.Machine) { m.Cores = 4 },
		"EPYC, 8 cores, 0.4 cores of time, H200":    func(m *protocol.Machine) { m.CPUQuota = 0.4 },
		"EPYC, 8 cores, 1.5 GiB, H200":              func(m *protocol.Machine) { m.MemoryLimitBytes = 3 << 29 },
		"EPYC, 8 cores, governor powersave, H200":   func(m *protocol.Machine) { m.Governor = "powersave" },
		"EPYC, 8 cores, governor performance, H200": func(m *protocol.Machine) { m.Governor = "performance" },
		"EPYC, 8 cores":                             func(m *protocol.Machine) { m.GPUs = nil },
		"EPYC, 8 cores, H200, H200":                 func(m *protocol.Machine) { m.GPUs = []string{"H200", "H200"} },
		"EPYC, 8 cores, H200, cap 300 W":            func(m *protocol.Machine) { m.GPUPowerCapWatts = 300 },
	} {
		machine := plain()
		change(&machine)
		if got := machine.Type(); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
		if other, taken := types[machine.Type()]; taken {
			t.Errorf("%s and %s are of one type", name, other)
		}
		types[machine.Type()] = name
		machine.Host, machine.EnergyMethod, machine.Knobs, machine.MemoryBytes = "b", "rapl", []string{"cores"}, 32<<30
		if got := machine.Type(); got != name {
			t.Errorf("another machine like it is %q, not %q", got, name)
		}
	}
}
