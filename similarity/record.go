package similarity

import (
	"time"

	"github.com/tandem-tune/tandem/study/system"
)

// Record is what one run of a training (a trial on one type of machine and one
// fraction of its data, as long as its profile does not drift) taught about its workload. It holds counts and times
// of the machine and nothing of the user's: no name, parameter, metric or data
// (Rocha, section 6.3.5).
type Record struct {
	// ID is random-looking and tells nothing of the trial it came from.
	ID string `json:"id" minLength:"8" maxLength:"64"`
	// Machine is the type of machine (protocol.Machine.Type).
	Machine string    `json:"machine" maxLength:"1024"`
	Updated time.Time `json:"updated"`
	// Odd says that the newest profile was not like those before it under the same
	// configuration: a second one in a row is a drift.
	Odd bool `json:"odd,omitempty"`
	// Cells has one entry for each system configuration that was run.
	Cells []Cell `json:"cells" maxItems:"256"`
}

// Cell is what a run showed under one system configuration beside as many other
// trials. Logarithms are natural.
type Cell struct {
	Configuration system.Configuration `json:"configuration"`
	// Neighbours is how many other trials the machine ran, to the nearest whole.
	Neighbours int `json:"neighbours"`
	// Epochs is how many were timed, without those that come first after a start
	// and warm up.
	Epochs int `json:"epochs"`
	// LogSeconds and LogJoules are the means over those epochs of the logarithm
	// of what an epoch over the whole data would have taken.
	LogSeconds float64 `json:"log_seconds"`
	LogJoules  float64 `json:"log_joules"`
	// Variance is the sample variance of the logarithm of the seconds; 0 of one.
	Variance float64 `json:"variance"`
	// Firsts is how many first epochs after a start were timed, and the logarithms
	// are the means over those.
	Firsts          int     `json:"firsts,omitempty"`
	FirstLogSeconds float64 `json:"first_log_seconds,omitempty"`
	FirstLogJoules  float64 `json:"first_log_joules,omitempty"`
	// Profiles is how many epochs were profiled, the first one included where the
	// script said when its training began. Features are the means over them.
	Profiles int                `json:"profiles"`
	Features map[string]float64 `json:"features,omitempty"`
}
