package ladder

import "github.com/tandem-tune/tandem/study/space"

// Proposal is a configuration that a method proposes, and where it comes from.
type Proposal struct {
	Configuration space.Configuration
	Origin        string
	Reason        string
	RetryOf       *int  // the failed trial that is tried again with it; nil: none
	Draw          *Draw // what the proposer needs to see again, if anything
}

// Slot is a place on the ladder for a new trial.
type Slot struct {
	Bracket int // counted from 1; 0 where trials of all brackets share the rungs
	Rung    int
}
