package batching

import "fmt"

// String names the policy.
func (p Policy) String() string {
	switch {
	case p.MaxBatch == 1:
		return "single"
	case p.UntilFull:
		return fmt.Sprintf("fixed batches of %d", p.MaxBatch)
	case p.WaitSeconds == 0:
		return fmt.Sprintf("greedy, at most %d", p.MaxBatch)
	default:
		return fmt.Sprintf("at most %d, wait %.3g ms", p.MaxBatch, p.WaitSeconds*1000)
	}
}
