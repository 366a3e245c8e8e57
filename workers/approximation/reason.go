package approximation

import (
	"fmt"
	"strings"
)

// leftOutReason says how much is left out for a study of a higher priority, what that
// met with and what it wants, and why it is so much.
func leftOutReason(share float64, decision Decision, of Study) string {
	text := "nothing is left out"
	if share > 0 {
		text = fmt.Sprintf("%.3g%% of the data is left out", 100*share)
	}
	return text + ": " + limitsReason(decision, of)
}

// limitsReason says how it is with a study's limits: what was met with, what it wants,
// and what is done about it.
func limitsReason(decision Decision, of Study) string {
	near := "no limit is broken for certain"
	if decision.Share > 0 {
		near += ", and there is no room to leave less out"
	}
	return fmt.Sprintf("%s; %s", metWith(decision.Met, of), map[Verdict]string{
		Kept:     "its limits are kept",
		Near:     near,
		Settling: "trials of a lower priority still run that began before the last step",
		Lowered:  "its limits were kept with room to spare, so less is left out",
		Raised:   "a limit was broken, so more is left out",
		Deepest:  "a limit is broken, and no more may be left out",
		Nobody:   "a limit is broken, and no trial of a lower priority that may leave data out runs on its workers",
		Alone:    "a limit is broken, and its trials take longer than that without any waiting",
		Useless:  "a limit is broken, and leaving data out has not shortened the waiting: it is tried again later",
	}[decision.Verdict])
}

// metWith says what trials of a study met with, and its limits.
func metWith(met Met, of Study) string {
	var wanted []string
	if of.Limits.Mean > 0 {
		wanted = append(wanted, fmt.Sprintf("%.4g s in the mean", of.Limits.Mean))
	}
	if of.Limits.Tail > 0 {
		wanted = append(wanted, fmt.Sprintf("95%% within %.4g s", of.Limits.Tail))
	}
	limits := strings.Join(wanted, " and ")
	if met.Runs == 0 {
		return fmt.Sprintf("priority %d wants trials to take %s, and none was met lately", of.Priority, limits)
	}
	return fmt.Sprintf("trials of priority %d took %.3g s in the mean and 95%% of them at most %.3g s, and %s is wanted", of.Priority, met.Mean, met.Tail, limits)
}
