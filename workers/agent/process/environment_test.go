package process

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

func TestThreadsOfALease(t *testing.T) {
	lease := protocol.Lease{System: map[string]space.Value{system.CPUThreads: space.Int(1)}, Cores: 3}
	if got := threads(lease, 8); got != 1 {
		t.Errorf("%d threads, want those of the study", got)
	}
	if got := threads(protocol.Lease{Cores: 3}, 8); got != 3 {
		t.Errorf("%d threads, want a thread for each core that is kept", got)
	}
}
