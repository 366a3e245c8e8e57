package definition

// Ends reports whether the search ends by itself.
func (s Search) Ends() bool { return s.Method == "grid" }

// MaxTrials is the most trials that a study may be bounded by: such a bound is no
// plan, and means that the study goes on until somebody ends it.
const MaxTrials = 1_000_000

// MaxPriority is the highest priority of a study, and -MaxPriority the lowest; MaxParallel
// bounds its trials at once.
const (
	MaxPriority = 1000
	MaxParallel = 1_000_000
)
