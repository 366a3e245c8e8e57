package batching

import (
	"cmp"
	"fmt"
	"slices"
)

// stages of the search: how many requests the policies left are played
// against, and how many policies go on from there. The last stage has the
// requests of the run.
type stage struct {
	requests, keep int
}

func stages() []stage { return []stage{{8_000, 30}, {40_000, 8}} }

// search compares the policies and returns the simplest of the best, and how
// many it compared.
func search(server Server, goal Goal, run Run, policies []Policy) (verdict, int) {
	rate := run.Arrivals.PerSecond()
	tried := len(policies)
	for _, one := range stages() {
		if one.requests >= run.requests() {
			break
		}
		short := run
		short.Requests = one.requests
		verdicts := judged(newPlay(server, short), goal, policies)
		policies = policies[:0:0]
		for _, verdict := range verdicts[:min(one.keep, len(verdicts))] {
			policies = append(policies, verdict.policy)
		}
		near := neighbours(server, policies[0], rate)
		tried += len(near)
		policies = append(policies, near...)
		// Whoever wins is compared with single samples and with taking all.
		policies = append(policies, sustained(server, []Policy{Single(), Greedy(server.Curve.Cheapest())}, rate)...)
	}
	return simplest(judged(newPlay(server, run), goal, policies)), tried
}

// judged is the policies' verdicts, the best first.
func judged(stage *play, goal Goal, policies []Policy) []verdict {
	var verdicts []verdict
	for _, policy := range policies {
		verdicts = append(verdicts, stage.judge(policy, goal))
	}
	slices.SortStableFunc(verdicts, better)
	return verdicts
}

// simplest is the simplest policy among those as good as the first.
func simplest(verdicts []verdict) verdict {
	best := verdicts[0]
	choice := best
	for _, one := range verdicts[1:] {
		if asGood(one, best) && simpler(one.policy, choice.policy) {
			choice = one
		}
	}
	return choice
}

// asGood tells that a policy is at most 0.2% worse than the best, or at most 1%
// and that by less than the groups of requests can tell: their differences, of
// the same requests, have an interval with 0 in it.
func asGood(one, best verdict) bool {
	if one.meets != best.meets || !one.meets && one.p99 > best.p99 {
		return false
	}
	worse := one.value - best.value
	if worse <= 0.002*best.value {
		return true
	}
	differences := make([]float64, groups)
	for group := range differences {
		differences[group] = one.byGroup[group] - best.byGroup[group]
	}
	return worse <= 0.01*best.value && worse <= halfWidth(differences)
}

// simpler orders policies: single samples, greedy, waiting for a time (the
// shorter the simpler), waiting until full. Of greedy ones the larger batch is
// the simpler: it sustains more, and takes no more than there is.
func simpler(a, b Policy) bool {
	kind := func(p Policy) int {
		switch {
		case p.MaxBatch == 1:
			return 0
		case p.UntilFull:
			return 3
		case p.WaitSeconds == 0:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a.WaitSeconds, b.WaitSeconds), cmp.Compare(b.MaxBatch, a.MaxBatch)) < 0
}

func reason(best verdict, goal Goal) string {
	what := map[Objective]string{MeanResponse: "mean response time", P99: "99th percentile of response times", Joules: "energy a sample"}[goal.Objective]
	if !best.meets {
		return fmt.Sprintf("no policy tried keeps the 99th percentile within %.4g ms; this one comes closest", goal.LatencyBound*1000)
	}
	if best.policy.MaxBatch == 1 {
		return "do not batch: at this rate no policy tried has a lower " + what + " than single samples (or none that can be told apart)"
	}
	return "the lowest " + what + " of the policies tried, or the simplest of those that cannot be told from it"
}
