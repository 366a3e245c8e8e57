package ranking

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Verdict is how a study ends that ended by itself. One that measured nothing has
// failed if trials of it failed or were lost, whatever it was that ended it: there
// is nothing to recommend, and its command is the likely cause. Trials that its rule
// has stopped early were seen to be worse than others, so that it has not failed. load
// says that its deployments must keep up with one.
func Verdict(status protocol.StudyStatus, reason string, load bool, trials iter.Seq[trial.Trial]) (protocol.StudyStatus, string) {
	if status == protocol.StudyStopped {
		return status, reason
	}
	fruitless := failures{counts: map[string]int{}}
	known, diverged, overloaded := 0, 0, 0
	for t := range trials {
		known++
		switch {
		case len(t.Results) > 0 && !slices.ContainsFunc(t.Results, finite):
			diverged++
			if i := t.Inference; load && i != nil && i.Failure == "" && i.P99Seconds == 0 {
				overloaded++
			}
		case len(t.Results) > 0, t.State == trial.Pruned:
			return status, reason
		case t.State == trial.Failed, t.State == trial.Lost:
			fruitless.add(t)
		}
	}
	if diverged > 0 && overloaded == diverged {
		return status, reason + fmt.Sprintf(", and no trial measured a number: the device keeps up with inference.scenario in none of %d; lower its rate, or take another device", known)
	}
	if diverged > 0 {
		return status, reason + fmt.Sprintf(", and no trial measured a number: %d of %d reported NaN, which is never the best; look at the ranges, such as the learning rate's", diverged, known)
	}
	if fruitless.all() == 0 {
		return status, reason + ", and no trial was measured"
	}
	return protocol.StudyFailed, reason + ", and no trial was measured: " + fruitless.say(known)
}

// FailuresInARow counts the trials that failed since one was measured or stopped early, or
// the study last went on after its end. measured says whether one ever was measured.
func FailuresInARow(trials iter.Seq[trial.Trial], since time.Time) (row int, measured bool) {
	for t := range trials {
		if t.State == trial.Pruned && t.Finished != nil && t.Finished.After(since) {
			since = *t.Finished
		}
		for _, result := range t.Results {
			if measured = true; result.At != nil && result.At.After(since) {
				since = *result.At
			}
		}
	}
	for t := range trials {
		if t.State == trial.Failed && (t.Finished == nil || t.Finished.After(since)) {
			row++
		}
	}
	return row, measured
}

// finite reports whether no value of a result is NaN.
func finite(r trial.Result) bool { return !slices.ContainsFunc(r.Values, trial.Float.IsNaN) }

// failures are the trials of a study that came to nothing.
type failures struct {
	failed, lost int
	counts       map[string]int // of each reason
	// commonest is the reason that most have, the first of equals; newest is the last
	// trial with it.
	commonest string
	newest    int
}

func (f *failures) add(t trial.Trial) {
	if t.State == trial.Lost {
		f.lost++
	} else {
		f.failed++
	}
	reason := trial.FirstLine(t.Reason)
	f.counts[reason]++
	if f.counts[reason] > f.counts[f.commonest] {
		f.commonest = reason
	}
	if reason == f.commonest {
		f.newest = t.Number
	}
}

func (f *failures) all() int { return f.failed + f.lost }

// say tells how many of the trials came to nothing, why most of them did, and where
// one can see more.
func (f *failures) say(trials int) string {
	var parts []string
	if f.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d failed", f.failed, trials))
	}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d lost", f.lost, trials))
	}
	return fmt.Sprintf("%s; the commonest reason (%d of %d): %s; see trial %d and its log",
		strings.Join(parts, " and "), f.counts[f.commonest], f.all(), f.commonest, f.newest)
}
