package cluster

import (
	"testing"
	"time"
)

// A job that runs, and one that waits for its place, end with their cluster.
func TestNoJobOutlivesItsSlurm(t *testing.T) {
	if testing.Short() {
		t.Skip("a Slurm takes time to start")
	}
	t.Setenv("USER", "") // as in a container
	s := StartSlurm(t)   // ends with the test, and says what outlives it
	for range 2 {
		s.Run("sbatch", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 300")
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, tasks := s.running("SLURMD_NODENAME="); len(tasks) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no job has begun:\n%s", s.Run("squeue"))
		}
	}
}
