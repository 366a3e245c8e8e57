package study

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/deflate"
)

const (
	// deflateEvery is how often it is chosen anew what trials leave out.
	deflateEvery = 5 * time.Second
	// dropSteps is how fine the choice is: in steps of 1/20.
	dropSteps = 20
	// foreseen is for how long responses are predicted.
	foreseen = time.Hour
)

// contender is a running study as the deflator sees it.
type contender struct {
	study    string
	priority int
	standing bool // it has a trial for a worker now
	accepts  *definition.Approximation
	limits   definition.ResponseSeconds
	sprint   *definition.Sprint
	curve    deflate.Curve
	unknown  error // why there is no curve
}

// deflateAll chooses anew what trials of low priority leave out, and which of them
// sprint for those that wait, if that is due.
func (s *Service) deflateAll(now time.Time) {
	if !s.deflator.due(now) {
		return
	}
	contenders := s.contenders()
	chosen := map[string]deflation{}
	if slices.ContainsFunc(contenders, contender.decides) {
		met, at := s.deflator.histories(now)
		chosen = choose(contenders, met, at, engine{s.workerSlots(now), *s.sprintAccounts(now)})
		for study, one := range chosen {
			one.chosen = now
			chosen[study] = one
		}
	}
	s.deflator.settle(chosen, s.awaited())
}

// contenders are the studies that workers may train for at the moment.
func (s *Service) contenders() []contender {
	var list []contender
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if def := r.study.Definition; r.study.Status == protocol.StudyRunning && len(def.Command) > 0 && !r.stale && r.broken == nil {
			one := contender{study: r.study.ID, priority: def.Priority, standing: !r.idle(), accepts: def.Approximation, sprint: def.Sprint}
			if def.ResponseSeconds != nil {
				one.limits = *def.ResponseSeconds
			}
			if def.Approximation != nil {
				one.curve, one.unknown = deflate.Learn(r.pairs())
			}
			list = append(list, one)
		}
		r.mutex.Unlock()
	}
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

// choose is what each study that allows it leaves out now, given what was met
// with by priority, the moment in the same time, and what they run on.
func choose(contenders []contender, met map[int]deflate.History, at float64, on engine) map[string]deflation {
	chosen := map[string]deflation{}
	classes, priorities := classesOf(contenders, met, at, on)
	choice, limited, err := decide(classes, at, on)
	highest := priorities[len(priorities)-1]
	for _, c := range contenders {
		if !c.decides() {
			continue
		}
		most, why := c.most()
		one := deflation{most: most, why: why, slots: on.slots, load: choice.Load}
		k := slices.IndexFunc(classes, func(other class) bool { return other.priority == c.priority })
		switch {
		case c.accepts == nil:
			one.why = "nothing is left out: the study has no approximation"
		case c.priority == highest:
			one.why = "nothing is left out: no study of a higher priority is running"
		case most == 0:
		case k < 0 || k == len(classes)-1:
			one.why = "nothing is left out: no trial of " + lacking(c.priority, k) + " has ended in the last hour, so that how long one takes is not known"
		case err != nil && !errors.Is(err, deflate.ErrNoChoice):
			one.why = "nothing is left out: " + err.Error()
		default:
			one.drop = min(most, choice.Drop[k])
			one.why = reason(one.drop, choice, limited, err)
		}
		one.foresee(c, choice, k)
		one.sprints(c, met[c.priority], choice, k, on)
		chosen[c.study] = one
	}
	return chosen
}

func lacking(priority, k int) string {
	if k < 0 {
		return fmt.Sprintf("priority %d", priority)
	}
	return "a higher priority"
}

// reason says why so much is left out.
func reason(drop float64, choice deflate.Choice, limited bool, err error) string {
	switch {
	case choice.Mean == nil:
		return fmt.Sprintf("%.3g%% of the data is left out, as much as it allows: more work comes than the workers can do", 100*drop)
	case err != nil:
		return fmt.Sprintf("%.3g%% of the data is left out, as much as it allows: no share keeps all response_seconds of the studies that run", 100*drop)
	case !limited:
		return fmt.Sprintf("%.3g%% of the data is left out, as much as it allows, as studies of a higher priority run: none of them has response_seconds that would need less", 100*drop)
	case drop == 0:
		return "nothing is left out: the response_seconds of the studies that run are kept without"
	default:
		return fmt.Sprintf("%.3g%% of the data is left out, the least that keeps the response_seconds of the studies that run, as the model has it", 100*drop)
	}
}

// foresee notes what follows from the choice for the study.
func (d *deflation) foresee(c contender, choice deflate.Choice, k int) {
	if c.accepts != nil && c.unknown == nil && d.drop > 0 {
		loss, bound := c.curve.Loss(d.drop), c.curve.Bound(d.drop)
		d.loss, d.bound = &loss, &bound
	}
	if k >= 0 && k < len(choice.Mean) {
		d.mean, d.tail = choice.Mean[k], choice.Tail[k]
	}
}

// class is a priority of which something is known.
type class struct {
	priority int
	history  deflate.History
	demand   deflate.Demand
}

// classesOf are the classes that the model knows, the lowest first, and all
// priorities that run, in the same order.
func classesOf(contenders []contender, met map[int]deflate.History, at float64, on engine) (classes []class, priorities []int) {
	running := map[int][]contender{}
	for _, c := range contenders {
		running[c.priority] = append(running[c.priority], c)
	}
	priorities = slices.Sorted(maps.Keys(running))
	for _, priority := range priorities {
		history := met[priority]
		if history.Rate(at) == 0 {
			continue
		}
		one := class{priority: priority, history: history}
		most := 0.0
		for _, c := range running[priority] {
			share, _ := c.most()
			most = max(most, share)
			one.demand.MeanSeconds = least(one.demand.MeanSeconds, c.limits.Mean)
			one.demand.TailSeconds = least(one.demand.TailSeconds, c.limits.Tail)
			if c.standing && len(classes) == 0 {
				one.demand.Standing++
			}
		}
		one.demand.Sprint, one.demand.Fixed = on.sprint(running[priority], history)
		if most > 0 {
			one.demand.Loss, one.demand.MostLoss = func(drop float64) float64 { return drop }, most+1e-9
		}
		classes = append(classes, one)
	}
	return classes, priorities
}

// least is the smaller of two limits, of which 0 is none.
func least(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return math.Min(a, b)
}

// decide lets the model choose; limited says that there is a limit to keep. The
// highest class leaves nothing out.
func decide(classes []class, at float64, on engine) (choice deflate.Choice, limited bool, err error) {
	if len(classes) == 0 || len(classes) == 1 && classes[0].demand.Sprint.Speed <= 1 {
		return deflate.Choice{}, false, nil
	}
	var histories []deflate.History
	var standing []int
	for _, one := range classes {
		histories, standing = append(histories, one.history), append(standing, one.demand.Standing)
	}
	observed := deflate.Observe(histories, standing, at)
	setting := deflate.Setting{Arrivals: observed.Arrivals, Slots: on.slots, Seconds: foreseen.Seconds(), Account: on.paysFor()}
	for k, one := range classes {
		if k == len(classes)-1 {
			one.demand.Loss = nil
		}
		one.demand.Service = observed.Service(k)
		limited = limited || one.demand.MeanSeconds > 0 || one.demand.TailSeconds > 0
		setting.Demands = append(setting.Demands, one.demand)
	}
	if !limited {
		choice, err = deflate.Deepest(setting, dropSteps)
		return choice, limited, err
	}
	choice, err = deflate.Choose(setting, dropSteps)
	return choice, limited, err
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
