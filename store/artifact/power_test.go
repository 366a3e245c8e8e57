package artifact_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/store/lossydisk"
)

// The power of the disk is cut while artifacts are put: those that were accepted
// are there, and whatever has an artifact's name is one.
func TestPowerLossLosesNoAcceptedArtifact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		disk := lossydisk.Require(t)
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), childFolder+"="+filepath.Join(disk.Path, "artifacts"), fmt.Sprintf("%s=%d", childSeed, 100+seed))
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		var accepted []string
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var name string
			if _, err := fmt.Sscanf(lines.Text(), "ack %s", &name); err != nil {
				break // it failed, behind the cut
			}
			accepted = append(accepted, name)
			if len(accepted) == 1+int(seed*17%60) {
				disk.Cut(seed)
				if err := command.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = command.Wait() // it was killed
		recovered := filepath.Join(t.TempDir(), "recovered")
		if err := disk.Recover(recovered); err != nil {
			t.Fatal(err)
		}
		wantComplete(t, filepath.Join(recovered, "artifacts"), accepted)
		if t.Failed() {
			t.Fatalf("the power was cut with seed %d", seed)
		}
	}
}
