package edgecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/device"
)

func runDevices(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := devicesCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(arguments)
	err := command.Execute()
	return out.String(), err
}

func TestDevicesAreListedAndShown(t *testing.T) {
	list, err := runDevices(t)
	if err != nil || !strings.Contains(list, "raspberry-pi-4 ") || !strings.Contains(list, "48 Gop/s") || !strings.Contains(list, "2.7-5.2 W") {
		t.Errorf("%v\n%s", err, list)
	}
	one, err := runDevices(t, "raspberry-pi-4")
	for _, want := range []string{"clusters[0]: cortex-a72", "clusters[0].steps_hertz", "10, 600 MHz to 1.5 GHz", "estimate", "5.2 W", "measured, MLPerf Inference v2.0", "12.8 GB/s", "1 MiB"} {
		if err != nil || !strings.Contains(one, want) {
			t.Errorf("%q is not shown, %v\n%s", want, err, one)
		}
	}
	asJSON, err := runDevices(t, "raspberry-pi-4", "--json")
	var got device.Device
	if err != nil || json.Unmarshal([]byte(asJSON), &got) != nil || got.Cores() != 4 || !got.Power.IdleWatts.Estimated {
		t.Errorf("%v\n%s", err, asJSON)
	}
}

func TestDevicesOfUsers(t *testing.T) {
	const file = "../../../../inference_emu/device/testdata/my-board.yaml"
	list, err := runDevices(t, "--device-file", file)
	if err != nil || !strings.Contains(list, "my-board") || !strings.Contains(list, "raspberry-pi-4") {
		t.Errorf("%v\n%s", err, list)
	}
	for _, arguments := range [][]string{{"--device-file", "edge.go"}, {"--device-file", "absent.yaml"}, {"raspbery-pi"}} {
		_, err := runDevices(t, arguments...)
		if usage := (term.UsageError{}); !errors.As(err, &usage) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}

func TestThisMachineIsADevice(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.MemoryBytes < 1<<20 || m.MemoryBytesPerSecond <= 0 {
		t.Errorf("%+v", m)
	}
}

// Whoever estimates on a busy machine must get what the machine can do.
func TestOtherLoadDoesNotSlowTheMemory(t *testing.T) {
	quiet, busy := make([]float64, 128), make([]float64, 128)
	for i := range quiet {
		quiet[i] = 0.001 + 0.00001*float64(i%7)
		busy[i] = quiet[i]
		if i%2 == 0 { // half of the blocks are interrupted
			busy[i] += 0.004
		}
	}
	if alone, beside := blockRate(quiet, 4<<20), blockRate(busy, 4<<20); beside < 0.97*alone || beside > alone {
		t.Errorf("%g bytes a second beside other load, %g alone", beside, alone)
	}
}
