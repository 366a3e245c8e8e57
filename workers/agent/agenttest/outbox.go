package agenttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// AbandonedOutbox leaves the folder of an agent that was killed while it
// reported the epochs under the lease, of which some were answered; it was just
// writing when it was killed. Its id was killed-worker.
func AbandonedOutbox(t *testing.T, scratch string, held protocol.HeldLease, epochs, answered []int) {
	t.Helper()
	lines := []any{map[string]any{"lease": held}}
	for _, epoch := range epochs {
		lines = append(lines, map[string]any{"report": protocol.Report{LeaseEpoch: held.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": 0.5}}})
	}
	for _, epoch := range answered {
		lines = append(lines, map[string]any{"answered": epoch})
	}
	var content []byte
	for _, line := range lines {
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		content = append(append(content, text...), '\n')
	}
	content = append(content, `{"report":{"lease_epoch":1,"ep`...)
	folder := filepath.Join(scratch, "w-abandoned")
	if err := os.MkdirAll(filepath.Join(folder, "outbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{"lock": nil, "worker": []byte("killed-worker"), "outbox/1.jsonl": content} {
		if err := os.WriteFile(filepath.Join(folder, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
