package artifact

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestWhatIsTooLargeIsNotSent(t *testing.T) {
	c := Checkpoint{}
	if err := c.Log(t.Context(), "a.txt", strings.NewReader(strings.Repeat("x", trial.LargestArtifact+1))); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "8388608") {
		t.Error(err)
	}
}

// Nothing of an encrypted study leaves the machine in the clear: there is no server here.
func TestEncryptedStudiesLogNothing(t *testing.T) {
	c := Checkpoint{Lease: protocol.Lease{Study: "secret", Recipients: []string{"age1recipient"}}}
	if err := c.Log(t.Context(), "a.txt", strings.NewReader("secret")); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "study secret is encrypted") {
		t.Error(err)
	}
}
