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
	Machine string `json:"machine" maxLength:"1024"`
	// Study and Script are the same random-looking words in all records of one
	// study, and of one command of one owner. They are empty in records of earlier
	// versions.
	Study  string `json:"study,omitempty" maxLength:"64"`
	Script string `json:"script,omitempty" maxLength:"64"`
	// Code is such a word for the script's files; empty where they are not known.
	Code string `json:"code,omitempty" maxLength:"64"`
	// Fixed is such a word for the parameters to which the study leaves one value: they
	// are arguments of the script. It is empty where there are none.
	Fixed   string    `json:"fixed,omitempty" maxLength:"64"`
	Updated time.Time `json:"updated"`
	// Reads is what its script takes by itself of the knobs that it asks for; empty where it
	// asks for none.
	Reads system.Configuration `json:"reads,omitempty"`
	// Odd says that the newest profile was not like those before it under the same
	// configuration: a second one in a row is a drift.
	Odd bool `json:"odd,omitempty"`
	// Contrast is a comparison with the default that is being made; nil if none is.
	Contrast *Contrast `json:"contrast,omitempty"`
	// Process is what its process has loaded; nil where no knob loads code.
	Process *Process `json:"process,omitempty"`
	// Uncompared counts epochs under the default that no comparison came of.
	Uncompared int `json:"uncompared,omitempty"`
	// Cells has one entry for each system configuration that was run.
	Cells []Cell `json:"cells" maxItems:"256"`
}

// Compares reports whether the run was timed under more than one configuration, so that
// it teaches a ratio of costs.
func (r Record) Compares() bool {
	first := -1
	for i, cell := range r.Cells {
		switch {
		case cell.Epochs == 0 && cell.Firsts == 0:
		case first < 0:
			first = i
		case !cell.Configuration.Equal(r.Cells[first].Configuration):
			return true
		}
	}
	return false
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
	// Compared has the comparisons with the default; nil if there were none.
	Compared *Compared `json:"compared,omitempty"`
	// ComparedAlone has those in which the default had the machine for itself.
	ComparedAlone *Compared `json:"compared_alone,omitempty"`
}

// Contrast is an epoch under a configuration, and then one under the default: a
// comparison is complete after one more epoch under the configuration, so that what
// changes steadily over the epochs cancels out.
type Contrast struct {
	Configuration system.Configuration `json:"configuration"`
	Neighbours    int                  `json:"neighbours"`
	// Alone says that the default has the machine for itself, and Waits that another
	// trial still runs there.
	Alone bool `json:"alone,omitempty"`
	Waits bool `json:"waits,omitempty"`
	// Before and After count the epochs between the default's and those that it is
	// compared with.
	Before int `json:"before,omitempty"`
	After  int `json:"after,omitempty"`
	// LogSeconds and LogJoules are of the epoch before, and DefaultLogSeconds and
	// DefaultLogJoules of the default's, where that has ended.
	LogSeconds        float64 `json:"log_seconds"`
	LogJoules         float64 `json:"log_joules"`
	Ended             bool    `json:"ended,omitempty"`
	DefaultLogSeconds float64 `json:"default_log_seconds,omitempty"`
	DefaultLogJoules  float64 `json:"default_log_joules,omitempty"`
}

// Compared sums up comparisons: how much higher the logarithm of an epoch's cost is
// under the default than between the epochs before and after it.
type Compared struct {
	Count int `json:"count"`
	// Seconds and Joules are means over the comparisons, the squares sums of squared
	// deviations from them.
	Seconds        float64 `json:"seconds"`
	SecondsSquares float64 `json:"seconds_squares"`
	Joules         float64 `json:"joules"`
	JoulesSquares  float64 `json:"joules_squares"`
}

// Plus merges two sums (Chan, Golub and LeVeque 1983).
func (c Compared) Plus(other Compared) Compared {
	if c.Count == 0 || other.Count == 0 {
		if c.Count == 0 {
			return other
		}
		return c
	}
	n, m := float64(c.Count), float64(other.Count)
	merge := func(mean, squares, otherMean, otherSquares float64) (float64, float64) {
		d := otherMean - mean
		return mean + d*m/(n+m), squares + otherSquares + d*d*n*m/(n+m)
	}
	sum := Compared{Count: c.Count + other.Count}
	sum.Seconds, sum.SecondsSquares = merge(c.Seconds, c.SecondsSquares, other.Seconds, other.SecondsSquares)
	sum.Joules, sum.JoulesSquares = merge(c.Joules, c.JoulesSquares, other.Joules, other.JoulesSquares)
	return sum
}
