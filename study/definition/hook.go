package definition

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Occasion is something that happens in a study and may be told.
type Occasion string

// The occasions.
const (
	NewBest  Occasion = "new_best" // a trial leads that breaks no constraint
	Done     Occasion = "done"     // the study is over
	Failures Occasion = "failures" // so many trials failed in a row
	Spent    Occasion = "spent"    // a share of a limit of the study is used
	Held     Occasion = "held"     // a worker gets no more trials of the study for a while
	Limit    Occasion = "limit"    // a trial breaks a constraint, or has stalled
)

// Occasions are all of them.
func Occasions() []Occasion { return []Occasion{NewBest, Done, Failures, Spent, Held, Limit} }

// Hook names a receiver of what happens in a study, and says what it is told. The receiver
// itself, with its address and its secret, is kept by the server.
type Hook struct {
	Name string     `json:"name" maxLength:"64" doc:"the hook's name"`
	Tell []Occasion `json:"tell,omitempty" doc:"occasions: new_best, done, failures, spent, held, limit; all but limit if empty"`
	// Failures is after how many failed trials in a row it is told; 0: 3.
	Failures int `json:"failures,omitempty" doc:"failed trials in a row; 0: 3"`
	// Spent is the share of a limit in stop; 0: 0.9.
	Spent float64 `json:"spent,omitempty" doc:"share of a limit in stop, up to 1; 0: 0.9"`
}

// MostFailures bounds how many failures in a row a hook may wait for.
const MostFailures = 1000

// Filled is the hook with the values of what was left out.
func (h Hook) Filled() Hook {
	if len(h.Tell) == 0 {
		h.Tell = []Occasion{NewBest, Done, Failures, Spent, Held}
	}
	if h.Failures == 0 {
		h.Failures = 3
	}
	if h.Spent == 0 {
		h.Spent = 0.9
	}
	return h
}

// Check says what is wrong with the occasions; at is where the hook stands.
func (h Hook) Check(at string) (faults []problem.Field) {
	for i, one := range h.Tell {
		if !slices.Contains(Occasions(), one) {
			faults = append(faults, problem.Field{Path: fmt.Sprintf("%stell[%d]", at, i), Value: string(one), Message: "must be new_best, done, failures, spent, held or limit"})
		}
	}
	if h.Failures < 0 || h.Failures > MostFailures {
		faults = append(faults, problem.Field{Path: at + "failures", Value: h.Failures, Message: fmt.Sprintf("must be a number of failed trials in a row, 1 to %d", MostFailures)})
	}
	if !(h.Spent >= 0 && h.Spent <= 1) {
		faults = append(faults, problem.Field{Path: at + "spent", Value: h.Spent, Message: "must be a share of a limit, above 0 and at most 1"})
	}
	return faults
}
