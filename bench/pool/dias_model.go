package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/workers/deflate"
)

// observed is what a server knows of the jobs: a process and what they take.
func observed(jobs []deflate.Job, classes int) (deflate.Observed, error) {
	var list []deflate.Arrival
	for _, job := range jobs {
		list = append(list, deflate.Arrival{Class: job.Class, Run: deflate.Run{Began: job.At, Seconds: job.Seconds}})
	}
	return deflate.FitArrivals(list, classes)
}

// settingOf is what a choice is made for: the trace, as long as it is, with the
// sprint for the high class.
func (r replayer) settingOf(o deflate.Observed, jobs []deflate.Job, sprint deflate.Sprint, account deflate.Account) deflate.Setting {
	return deflate.Setting{
		Arrivals: o.Arrivals, Slots: slots, Seconds: jobs[len(jobs)-1].At, Account: account,
		Demands: []deflate.Demand{
			{Service: o.Service(0), Loss: r.losses.mean, MostLoss: 0.01, MostDrop: 0.5},
			{Service: o.Service(1), Sprint: sprint},
		},
	}
}

// chosen is the choice of the deflator: the least drop, and the timeout of the
// sprint, with which the high class is answered as fast as if nothing of the low
// class were in its way, for a point of accuracy at most.
func (r replayer) chosen(jobs []deflate.Job, sprint deflate.Sprint, account deflate.Account) (deflate.Choice, error) {
	o, err := observed(jobs, 2)
	if err != nil {
		return deflate.Choice{}, err
	}
	service, err := o.Service(1)(0)
	if err != nil {
		return deflate.Choice{}, err
	}
	alone, err := deflate.NewQueue(deflate.Arrivals{Hidden: o.Arrivals.Hidden, Marked: o.Arrivals.Marked[1:]}, []deflate.Class{{Service: service}}, slots)
	if err != nil {
		return deflate.Choice{}, err
	}
	alone = alone.Within(jobs[len(jobs)-1].At)
	setting := r.settingOf(o, jobs, sprint, account)
	setting.Demands[1].MeanSeconds = alone.Mean(0)
	choice, err := deflate.Choose(setting, 20)
	if err == deflate.ErrNoChoice { //nolint:errorlint // that very one, with a choice
		err = nil
	}
	return choice, err
}

// predicted is the model's queue of jobs of so many classes.
func predicted(jobs []deflate.Job, classes int) (*deflate.Queue, error) {
	o, err := observed(jobs, classes)
	if err != nil {
		return nil, err
	}
	return queueOf(o, classes, jobs)
}

// queueOf is the queue of what was observed, for as long as the jobs come.
func queueOf(o deflate.Observed, classes int, jobs []deflate.Job) (*deflate.Queue, error) {
	q, err := deflate.NewQueue(o.Arrivals, classesOf(o, classes), slots)
	if err != nil {
		return nil, err
	}
	return q.Within(jobs[len(jobs)-1].At - jobs[0].At), nil
}

// classesOf are the classes that were observed; where a class's times cannot be
// fitted it has none, which the queue refuses.
func classesOf(o deflate.Observed, classes int) []deflate.Class {
	all := make([]deflate.Class, classes)
	for k := range all {
		all[k].Service, _ = o.Service(k)(0)
	}
	return all
}

// errorsOfWays are those of the model for the engine without evictions.
type errorsOfWays struct {
	scattered, drawn, spread, recorded, poisson errorsOf
	spans                                       map[string]*spans
}

// spans are the mean responses of a class, predicted and met, summed over runs that
// each begin at another job of the trace.
type spans struct{ predicted, met float64 }

// off is how far the sums differ on average, as a part of what was met, and for each
// class with its sign.
func (e *errorsOfWays) off() (mean float64, byClass [2]float64) {
	for _, key := range slices.Sorted(maps.Keys(e.spans)) {
		one := e.spans[key]
		off := one.predicted/one.met - 1
		mean += math.Abs(off) / float64(len(e.spans))
		byClass[key[len(key)-1]-'0'] += off * 2 / float64(len(e.spans))
	}
	return mean, byClass
}

func (e *errorsOfWays) print(name string) {
	e.scattered.print("**The model's error, " + name + "**, if these jobs come one by one (Poisson)")
	e.drawn.print("if as many are drawn from the process that was fitted")
	e.spread.print("if they come as recorded, but those that come together are spread over the length of an average job")
	e.recorded.print("and if they come as recorded")
	mean, byClass := e.off()
	fmt.Printf("\nthe average over spans that each begin at another job: off by %.1f%% (low %+.1f%%, high %+.1f%%).\n", 100*mean, 100*byClass[0], 100*byClass[1])
	e.poisson.print("as recorded, with a model that takes them to come one by one")
}

// compare notes the model's errors for a way: for arrivals at random, from the
// fitted process, and as recorded, there also without bursts in the model.
func (r replayer) compare(jobs []deflate.Job, w way, run int, errors *errorsOfWays) error {
	less := dropped(jobs, w.drop)
	o, err := observed(less, 2)
	if err != nil {
		return err
	}
	q, err := queueOf(o, 2, less)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(uint64(run), 19)) //nolint:gosec // what is drawn has to repeat
	drawn, err := o.Arrivals.Draw(classesOf(o, 2), len(jobs), random)
	if err != nil {
		return err
	}
	one := scattered(less, run)
	smooth, err := predicted(one, 2)
	if err != nil {
		return err
	}
	plain, err := withoutBursts(less)
	if err != nil {
		return err
	}
	apart := spreadOut(less, run)
	calm, err := predicted(apart, 2)
	if err != nil {
		return err
	}
	if err := r.span(less, w, run, errors); err != nil {
		return err
	}
	for _, compared := range []struct {
		jobs   []deflate.Job
		model  *deflate.Queue
		errors *errorsOf
	}{{one, smooth, &errors.scattered}, {drawn, q, &errors.drawn}, {apart, calm, &errors.spread}, {less, q, &errors.recorded}, {less, plain, &errors.poisson}} {
		if err := note(w.engine, compared.jobs, compared.model, compared.errors); err != nil {
			return err
		}
	}
	return nil
}

// span adds a run that begins at another job to the average over spans.
func (r replayer) span(jobs []deflate.Job, w way, run int, errors *errorsOfWays) error {
	if !r.trace.given { // the others begin at another job already
		random := rand.New(rand.NewPCG(uint64(run), 23)) //nolint:gosec // what is drawn has to repeat
		jobs = turned(jobs, random.IntN(len(jobs)))
	}
	q, err := predicted(jobs, 2)
	if err != nil {
		return err
	}
	played, err := w.engine.Replay(jobs, 2, 0.1)
	if err != nil {
		return err
	}
	for k, met := range played.Classes {
		key := fmt.Sprintf("%.1f %s %d", r.load, w.name, k)
		if errors.spans[key] == nil {
			errors.spans[key] = &spans{}
		}
		errors.spans[key].predicted += q.Mean(k)
		errors.spans[key].met += met.Mean
	}
	return nil
}

// note plays the jobs and notes how far the model is off.
func note(engine deflate.Engine, jobs []deflate.Job, q *deflate.Queue, errors *errorsOf) error {
	played, err := engine.Replay(jobs, 2, 0.1)
	if err != nil {
		return err
	}
	for k, met := range played.Classes {
		last, err := q.Quantile(k, 0.95)
		if err != nil {
			return err
		}
		errors.note(q.Mean(k), met.Mean, last, met.Tail)
	}
	return nil
}

// withoutBursts is the model that takes jobs to come at random, in the long run.
func withoutBursts(jobs []deflate.Job) (*deflate.Queue, error) {
	var rates []float64
	var classes []deflate.Class
	for k := range 2 {
		count, sum, square := 0.0, 0.0, 0.0
		for _, job := range jobs {
			if job.Class == k {
				count, sum, square = count+1, sum+job.Seconds, square+job.Seconds*job.Seconds
			}
		}
		mean := sum / count
		service, err := deflate.Fit(mean, max(0, square/count/(mean*mean)-1))
		if err != nil {
			return nil, err
		}
		rates, classes = append(rates, count/jobs[len(jobs)-1].At), append(classes, deflate.Class{Service: list(service)})
	}
	return deflate.NewQueue(deflate.Poisson(rates...), classes, slots)
}
