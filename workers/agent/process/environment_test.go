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

// TestThreadsOfTheWorkersOwnEnvironment: what the worker's owner chose holds for studies
// that say nothing of threads.
func TestThreadsOfTheWorkersOwnEnvironment(t *testing.T) {
	for _, name := range system.ThreadVariables() {
		t.Setenv(name, "")
	}
	if got := OwnThreads(8); got != 0 {
		t.Errorf("%d threads of an environment that does not say", got)
	}
	t.Setenv("OMP_NUM_THREADS", "3,1")
	t.Setenv("MKL_NUM_THREADS", "2")
	if OwnThreads(8) != 3 || OwnThreads(2) != 2 {
		t.Errorf("%d threads on 8 cores, %d on 2, want 3 and 2", OwnThreads(8), OwnThreads(2))
	}
	for name, one := range map[string]struct {
		lease          protocol.Lease
		omp, mkl, blas string
	}{
		"nothing":     {lease: protocol.Lease{}, omp: "3,1", mkl: "2", blas: "8"},
		"kept cores":  {lease: protocol.Lease{Cores: 4}, omp: "3,1", mkl: "2", blas: "4"},
		"the same":    {lease: protocol.Lease{System: map[string]space.Value{system.CPUThreads: space.Int(3)}}, omp: "3,1", mkl: "2", blas: "3"},
		"the study's": {lease: protocol.Lease{System: map[string]space.Value{system.CPUThreads: space.Int(1)}}, omp: "1", mkl: "1", blas: "1"},
		"cores":       {lease: protocol.Lease{System: map[string]space.Value{system.Cores: space.Int(2)}}, omp: "2", mkl: "2", blas: "2"},
		"environment": {lease: protocol.Lease{Environment: map[string]string{"OMP_NUM_THREADS": "7"}}, omp: "7", mkl: "2", blas: "8"},
	} {
		got := Rules{Elastic: true}.Environment(one.lease, 8)
		if got["OMP_NUM_THREADS"] != one.omp || got["MKL_NUM_THREADS"] != one.mkl || got["OPENBLAS_NUM_THREADS"] != one.blas {
			t.Errorf("%s: %s, %s and %s threads, want %s, %s and %s", name, got["OMP_NUM_THREADS"], got["MKL_NUM_THREADS"], got["OPENBLAS_NUM_THREADS"], one.omp, one.mkl, one.blas)
		}
	}
}
