package study

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/deflate"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// deflateEvery is how often it is chosen anew what trials leave out.
	deflateEvery = 5 * time.Second
	// dropSteps is how finely it is looked how much a study allows: in steps of 1/20.
	dropSteps = 20
)

// contender is a running study as the deflator sees it.
type contender struct {
	runtime  *runtime
	study    string
	priority int
	accepts  *definition.Approximation
	limits   deflate.Limits
	sprint   *definition.Sprint
	curve    deflate.Curve
	unknown  error // why there is no curve
	// waits is for how long a worker could have had its next trial, were it not for
	// others; 0: nothing waits.
	waits float64
}

// limited reports whether it is said how long the study's trials may take.
func (c contender) limited() bool { return c.limits != deflate.Limits{} }

// deflateAll chooses anew what trials of low priority leave out, and which of them
// sprint for those that wait, if that is due.
func (s *Service) deflateAll(now time.Time) {
	if !s.deflator.due(now) {
		return
	}
	contenders := s.contenders(now)
	chosen := map[string]deflation{}
	for _, c := range contenders {
		if c.accepts != nil || c.limited() || c.sprint != nil && c.sprint.Auto {
			chosen[c.study] = deflation{chosen: now, why: "nothing is left out: the study has no approximation"}
		}
	}
	s.leaveOutAll(contenders, chosen, now)
	s.sprintAll(contenders, chosen, now)
	s.deflator.settle(chosen, s.awaited())
}

// contenders are the studies that workers may train for at the moment, those of the
// highest priority first.
func (s *Service) contenders(now time.Time) []contender {
	var list []contender
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if def := r.study.Definition; r.study.Status == protocol.StudyRunning && len(def.Command) > 0 && !r.stale && r.broken == nil {
			one := contender{runtime: r, study: r.study.ID, priority: def.Priority, accepts: def.Approximation, sprint: def.Sprint}
			if limits := def.ResponseSeconds; limits != nil {
				one.limits = deflate.Limits{Mean: limits.Mean, Tail: limits.Tail}
				if !r.able.IsZero() && r.wanting() && len(s.fullFor(r)) > 0 {
					one.waits = max(0, now.Sub(r.able).Seconds())
				}
			}
			if def.Approximation != nil {
				one.curve, one.unknown = deflate.Learn(r.pairs())
			}
			list = append(list, one)
		} else if r.study.Status != protocol.StudyRunning {
			s.deflator.controlled(r.study.ID, deflate.State{}) // it begins anew when it goes on
		}
		r.mutex.Unlock()
	}
	slices.SortFunc(list, func(a, b contender) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.study, b.study))
	})
	return list
}

// pairs are what configurations came to at the two highest rungs that enough of
// them have results of.
func (r *runtime) pairs() []deflate.Pair {
	sign := 1.0
	if r.study.Definition.Objectives[0].Direction == definition.Minimize {
		sign = -1
	}
	for top := len(r.ladder) - 1; top > 0; top-- {
		var pairs []deflate.Pair
		for _, t := range searched(r.trials) {
			low, high := resultAt(t, top-1), resultAt(t, top)
			if low == nil || high == nil || !low.Values[0].IsFinite() || !high.Values[0].IsFinite() || passes(high.Budget) <= passes(low.Budget) {
				continue
			}
			pairs = append(pairs, deflate.Pair{Less: passes(low.Budget), More: passes(high.Budget), Low: sign * float64(low.Values[0]), High: sign * float64(high.Values[0])})
		}
		if _, err := deflate.Learn(pairs); err == nil {
			return pairs
		}
	}
	return nil
}

// passes is how much data a budget is, in passes over all of it.
func passes(b budget.Budget) float64 { return float64(b.Epochs) * b.DataFraction }

// resultAt is the trial's result at the rung, or nil.
func resultAt(t trial.Trial, rung int) *trial.Result {
	for i := range t.Results {
		if t.Results[i].Rung == rung {
			return &t.Results[i]
		}
	}
	return nil
}

// workerSlots is how many trials the workers that are heard of run at once.
func (s *Service) workerSlots(now time.Time) int {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	slots := 0
	for _, member := range s.workers.Members() {
		switch {
		case now.Sub(member.LastSeen) >= s.leaseTerm():
		case member.Registration.Elastic: // as many as there was room for
			slots += max(1, len(s.leases.HeldBy(member.Registration.ID)))
		default:
			slots += max(1, member.Registration.Slots)
		}
	}
	return max(1, slots)
}

// most is the largest share of its data that the study allows to leave out, and
// why that is nothing.
func (c contender) most() (share float64, why string) {
	if c.accepts == nil {
		return 0, ""
	}
	if c.accepts.MetricLoss == 0 {
		return c.accepts.MostDrop, ""
	}
	if c.unknown != nil {
		return 0, "nothing is left out: it is not known what that would cost, as " + c.unknown.Error()
	}
	for step := 1; step < dropSteps; step++ {
		drop := float64(step) / dropSteps
		if drop > c.accepts.MostDrop+1e-9 || c.curve.Bound(drop) > c.accepts.MetricLoss {
			break
		}
		share = drop
	}
	if share == 0 {
		return 0, fmt.Sprintf("nothing is left out: a share of 1/%d may cost %.3g already, and approximation.metric_loss is %g", dropSteps, c.curve.Bound(1.0/dropSteps), c.accepts.MetricLoss)
	}
	return share, ""
}

// leaveOutAll has the controller of each study with limits say what those of a lower
// priority that run on the same workers leave out. Of several of these each leaves
// out the same share, as far as it allows that much.
func (s *Service) leaveOutAll(contenders []contender, chosen map[string]deflation, now time.Time) {
	var below []contender
	for _, c := range contenders {
		if c.accepts == nil {
			continue
		}
		one := chosen[c.study]
		one.most, one.why = c.most()
		if one.why == "" {
			one.why = "nothing is left out: no study of a higher priority runs on its workers that has response_seconds"
			below = append(below, c)
		}
		if c.priority == contenders[0].priority {
			one.why = "nothing is left out: no study of a higher priority is running"
		}
		chosen[c.study] = one
	}
	worst := map[string]deflate.Verdict{}
	for _, c := range contenders {
		if !c.limited() {
			continue
		}
		decision, others := s.controlled(c, below, chosen, now)
		one := chosen[c.study]
		one.met, one.limitsWhy = decision.Met, limitsReason(decision, c)
		chosen[c.study] = one
		for _, other := range others {
			one := chosen[other.study]
			share := min(one.most, decision.Share)
			if verdict, known := worst[other.study]; known && (share < one.drop || share == one.drop && decision.Verdict <= verdict) {
				continue
			}
			worst[other.study] = decision.Verdict
			one.drop, one.why = share, leftOutReason(share, decision, c)
			one.loss, one.bound = nil, nil
			if other.unknown == nil && share > 0 {
				loss, bound := other.curve.Loss(share), other.curve.Bound(share)
				one.loss, one.bound = &loss, &bound
			}
			chosen[other.study] = one
		}
	}
}

// controlled asks the controller of a study's limits. The others are those of the
// studies below it which run on the same workers.
func (s *Service) controlled(c contender, below []contender, chosen map[string]deflation, now time.Time) (deflate.Decision, []contender) {
	at, record := inSeconds(now), s.deflator.recordOf(c.study)
	o := deflate.Observations{Now: at, Limits: c.limits, Ended: record.Runs.Runs(), Oldest: at}
	if c.waits > 0 {
		o.Open = append(o.Open, deflate.Run{Began: at, Waited: c.waits})
	}
	workers := s.workersFor(c.runtime, nil)
	others, leavesOut := []contender{}, map[string]bool{}
	for _, other := range below {
		if other.priority < c.priority && len(s.workersFor(other.runtime, workers)) > 0 {
			others, leavesOut[other.study] = append(others, other), true
			o.Most = max(o.Most, chosen[other.study].most)
		}
	}
	s.poolMutex.Lock()
	leases := s.leases.All()
	s.poolMutex.Unlock()
	for _, lease := range leases {
		began := inSeconds(lease.Granted)
		switch {
		case lease.Study == c.study:
			o.Open = append(o.Open, deflate.Run{Began: began, Waited: s.deflator.waited(lease.Trial), Seconds: max(1e-3, at-began)})
		case leavesOut[lease.Study] && workers[lease.Worker]:
			o.Below, o.Oldest = o.Below+1, min(o.Oldest, began)
		}
	}
	state, decision := deflate.Next(record.State, o)
	s.deflator.controlled(c.study, state)
	return decision, others
}

// workersFor are the workers that the study's trials could be on were nothing there;
// of some of them one is enough.
func (s *Service) workersFor(r *runtime, some map[string]bool) map[string]bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	found, needs := map[string]bool{}, s.needs(r)
	for _, member := range s.workers.Members() {
		id := member.Registration.ID
		if some != nil && !some[id] || !s.usable(member) || !suited(r, member) || !pool.RoomOf(member, nil).Fits(needs(max(1, member.Registration.Machine.Cores))) {
			continue
		}
		found[id] = true
		if some != nil {
			break
		}
	}
	return found
}

// leaveOut gives a training at the rung its budget, without what the study
// leaves out now. Repeats leave nothing out: they tell how good the best are.
func (tx *transaction) leaveOut(t trial.Trial, rung int) trial.Trial {
	t.Rung, t.Budget, t.Deflation = rung, tx.runtime.ladder[rung].Budget, nil
	if tx.deflation.drop > 0 && t.RepeatOf == nil {
		t.Budget = t.Budget.Deflated(tx.deflation.drop)
		t.Deflation = &trial.Deflation{Drop: tx.deflation.drop, Loss: tx.deflation.loss, Why: tx.deflation.why}
	}
	return t
}

// withAll are a result's values as the search compares them: the first one as it
// is taken to have come out with all data: an estimate, never more than the loss
// its user accepts, where one is given.
func (r *runtime) withAll(result trial.Result) []trial.Float {
	if result.Deflation == nil || result.Deflation.Loss == nil {
		return result.Values
	}
	values, loss := slices.Clone(result.Values), trial.Float(*result.Deflation.Loss)
	if r.study.Definition.Objectives[0].Direction == definition.Minimize {
		loss = -loss
	}
	values[0] += loss
	return values
}
