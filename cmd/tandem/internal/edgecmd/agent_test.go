package edgecmd

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
)

// A board may be named as studies name it, and what was probably meant is said of a name that the
// catalogue nearly has.
func TestTheNameOfABoard(t *testing.T) {
	for _, test := range []struct{ given, want, said string }{
		{"camera-2", "board/camera-2", ""},
		{"board/camera-2", "board/camera-2", ""},
		{"raspbery-pi-4", "board/raspbery-pi-4", "raspberry-pi-4"},
		{"raspberry-pi-4", "raspberry-pi-4", ""},
		{"Camera", "", ""},
		{"this-machine", "", ""},
	} {
		var log bytes.Buffer
		flags := agentFlags{device: test.given, force: true}
		got, err := flags.deviceName(device.Machine{Processor: "another"}, slog.New(slog.NewTextHandler(&log, nil)))
		if got != test.want || (err == nil) != (test.want != "") || !strings.Contains(log.String(), test.said) || test.said == "" && log.Len() > 0 {
			t.Errorf("%s is %q (%v), and the log says %q", test.given, got, err, log.String())
		}
	}
}

// A board that asks no more does not wait.
func TestABoardThatAsksNoMoreIsSilent(t *testing.T) {
	for _, test := range []struct {
		since           time.Duration
		measuring, want string
	}{{time.Second, "", "waits"}, {time.Second, "0123456789abcdef", "measures 0123456789ab"}, {time.Hour, "", "silent"}, {time.Hour, "0123456789abcdef", "silent"}} {
		var out bytes.Buffer
		one := emu.Board{Name: "cam", Device: "board/camera-2", Seen: time.Now().Add(-test.since), Measuring: test.measuring}
		if err := printBoards(&out, []emu.Board{one}); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("after %s: %v\n%s", test.since, err, out.String())
		}
	}
}
