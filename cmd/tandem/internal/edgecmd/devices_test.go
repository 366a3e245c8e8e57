package edgecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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
	var got device.Device
	if err != nil || json.Unmarshal([]byte(one), &got) != nil || got.Cores() != 4 || !got.Power.IdleWatts.Estimated || !strings.Contains(got.Power.LoadWatts.Source, "MLPerf") {
		t.Errorf("%v\n%s", err, one)
	}
	mine := filepath.Join(t.TempDir(), "mine.yaml") // what is shown describes a device
	if err := os.WriteFile(mine, []byte(strings.Replace(one, `"raspberry-pi-4"`, `"mine"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := runDevices(t, "--device-file", mine, "mine"); err != nil || strings.Replace(again, `"mine"`, `"raspberry-pi-4"`, 1) != one {
		t.Errorf("%v\n%s", err, again)
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
