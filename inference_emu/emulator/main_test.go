package emulator_test

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/tandem-tune/tandem/inference_emu/emulator"
)

// TestMain is the emulation process where [emulator.Run] starts this program
// again.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], emulator.Subcommand()) {
		os.Exit(emulator.Process())
	}
	goleak.VerifyTestMain(m)
}
