package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAnUpdatedBoardMeasuresAgain updates a board's runtime: what is recommended is measured
// again. A board that only starts again is asked for nothing.
func TestAnUpdatedBoardMeasuresAgain(t *testing.T) {
	t.Parallel()
	libraries, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0")
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) == 0 {
		t.Skip("scripts/test installs ONNX Runtime, with which a board measures")
	}
	content, err := os.ReadFile(libraries[0])
	if err != nil {
		t.Fatal(err)
	}
	updated := filepath.Join(t.TempDir(), "libonnxruntime.so.1.30.1")
	if err := os.WriteFile(updated, content, 0o600); err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	token := deviceToken(t, here)
	board := func(library string) *launch.Process {
		agent, err := launch.Start(binary, []string{"TANDEM_SERVER=http://" + here.listen}, "edge", "agent", "--token-file", token, "--device", "lab", "--name", "lab", "--onnxruntime", library, "--seconds", "0.3")
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, agent)
		return agent
	}
	seen := func() []emu.Board { return read[emu.Boards](t, here.must("edge", "boards", "--json")).Boards }
	first := board(libraries[0])
	until(t, "a board", func() bool { return len(seen()) == 1 })
	s := newDeployedStudy(t, "updated", "../inference_emu/emulator/testdata/cnn.onnx", "board/lab")
	here.must("study", "create", s.file)
	here.worker("--slots", "1")
	here.must("study", "watch", s.name)
	measured := func() (at time.Time) {
		answer := read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
		if len(answer.Deployments) == 1 && answer.Deployments[0].MeasuredAt != nil {
			at = *answer.Deployments[0].MeasuredAt
		}
		return at
	}
	until(t, "a measured deployment", func() bool { return !measured().IsZero() })
	// idle has asked again twice since, and got nothing.
	idle := func() bool {
		times := map[time.Time]bool{}
		until(t, "a board that asks", func() bool {
			one := seen()[0]
			times[one.Seen] = true
			return len(times) > 2 || one.Measuring != ""
		})
		return seen()[0].Measuring == ""
	}
	until(t, "a board with nothing to do", idle)
	before := measured()
	first.Kill()
	second := board(libraries[0])
	until(t, "a board with nothing to do after it started again", idle)
	if after := measured(); !after.Equal(before) {
		t.Errorf("a board that started again measured at %v, after %v", after, before)
	}
	second.Kill()
	board(updated)
	until(t, "a measurement with the updated runtime", func() bool { return measured().After(before) })
	if said := here.must("study", "deployments", s.name, "--trial", "0"); !strings.Contains(said, "measured on") || !strings.Contains(said, " ago") {
		t.Errorf("it says\n%s", said)
	}
}
