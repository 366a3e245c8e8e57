// Package approximation chooses what trials of low priority leave out of their data,
// and when trials sprint, so that studies of a higher priority keep their limits on
// response times (DiAS: I. Rocha's thesis, Neuchâtel 2021, chapter 4;
// docs/decisions/0014).
//
// The thesis predicts responses by a queueing model (section 4.3); [NextShare] looks at
// those that were met. It begins at nothing left out, takes a step up while a limit is
// broken, and a step down while there is room. Where the limits are kept with nothing
// left out, nothing ever is.
//
// A [Controller] is told what trainings took. It decides on values alone.
package approximation

import (
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Every is how often it is chosen anew what trials leave out.
const Every = 5 * time.Second

// Controller is what is known of the trainings of studies that have limits,
// leave data out or sprint, and what it has chosen that trials leave out. It is safe
// for concurrent use; its lock is taken last and never held while anything is
// computed.
type Controller struct {
	mutex sync.Mutex
	under map[trial.ID]underway
	known map[string]Record // by study
	// unsaved are the studies of which what is known is to be stored, or forgotten
	// where they are not in known; saved is when that was last done.
	unsaved map[string]bool
	saved   time.Time
	// settled is what holds now, by study.
	settled map[string]Choice
	// awaited has the workers that trials wait for, and of which priority, of studies
	// that have others sprint meanwhile.
	awaited map[string]int
	next    time.Time // when it is to be chosen anew
}

// Record is what is known of a study: what its trainings took, and the state of
// the controller of its limits.
type Record struct {
	Runs  History `json:"runs"`
	State State   `json:"state"`
}

// newest is when something was last learned.
func (l Record) newest() float64 { return max(l.Runs.Newest(), l.State.Changed) }

// underway is a training that has begun and not ended.
type underway struct {
	epoch    trial.LeaseEpoch
	study    string
	began    time.Time
	waited   time.Duration
	sprinted float64 // seconds
	epochs   int     // that were reported
	calm     pace    // Of epochs without a sprint
	fast     pace    // and of those that sprinted all the time
}

// pace is how long epochs take.
type pace struct{ seconds, epochs float64 }

// speed is how many times as fast the training was while it sprinted; 0 where that
// was not seen.
func (u underway) speed() float64 {
	if u.calm.epochs == 0 || u.fast.epochs == 0 || u.fast.seconds <= 0 {
		return 0
	}
	return (u.calm.seconds / u.calm.epochs) / (u.fast.seconds / u.fast.epochs)
}

// Choice is what was chosen for a study, and on what grounds.
type Choice struct {
	Drop float64
	Why  string
	// Most is the largest share that it allows. Loss is what Drop costs, an
	// estimate, and Bound with 95% confidence; nil: nothing is known.
	Most        float64
	Loss, Bound *float64
	// LimitsWhy says how it is with the limits of the study; empty: it has none. Met
	// is what was met with, what still waits or runs included.
	LimitsWhy string
	Met       Met
	// Sprint is after how many seconds a trial sprints, where that is chosen; nil: it
	// does not. SprintWhy says why, Speed what is known of sprints; 0: nothing.
	Sprint    *float64
	SprintWhy string
	Speed     float64
	Chosen    time.Time
}

// New returns a controller that knows nothing.
func New() *Controller {
	return &Controller{under: make(map[trial.ID]underway), known: make(map[string]Record), unsaved: make(map[string]bool), settled: make(map[string]Choice)}
}

// Began notes that a worker has the trial of such a study, which could have begun so
// long ago.
func (d *Controller) Began(t trial.Trial, def definition.Definition, waited time.Duration, now time.Time) {
	if def.Approximation == nil && def.ResponseSeconds == nil && def.Sprint == nil {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.under[t.ID] = underway{epoch: t.LeaseEpoch, study: t.Study, began: now, waited: max(0, waited)}
}

// Reported notes what a report tells of what a sprint does to a training. The first
// epoch of a lease, with all that is loaded in it, says nothing of that.
func (d *Controller) Reported(id trial.ID, epoch trial.LeaseEpoch, report protocol.Report) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	one, known := d.under[id]
	if !known || one.epoch != epoch {
		return
	}
	seconds, sprinted := float64(report.Seconds), float64(report.SprintSeconds)
	one.sprinted += sprinted
	one.epochs++
	switch {
	case one.epochs == 1 || seconds <= 0:
	case sprinted <= 0:
		one.calm = pace{one.calm.seconds + seconds, one.calm.epochs + 1}
	case sprinted >= 0.95*seconds:
		one.fast = pace{one.fast.seconds + seconds, one.fast.epochs + 1}
	}
	d.under[id] = one
}

// Ended notes that the training has reached its budget.
func (d *Controller) Ended(id trial.ID, epoch trial.LeaseEpoch, now time.Time) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	one, began := d.under[id]
	if !began || one.epoch != epoch {
		return
	}
	delete(d.under, id)
	known := d.known[one.study]
	known.Runs.Add(Run{
		Began: inSeconds(one.began), Waited: one.waited.Seconds(), Seconds: now.Sub(one.began).Seconds(), Sprinted: one.sprinted, Speed: one.speed(),
	})
	d.known[one.study] = known
	d.unsaved[one.study] = true
}

// inSeconds is a moment in the time in which histories are kept: since 1970.
func inSeconds(moment time.Time) float64 { return float64(moment.UnixMilli()) / 1000 }

// Dropped notes that the training came to nothing.
func (d *Controller) Dropped(id trial.ID, epoch trial.LeaseEpoch) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if one, known := d.under[id]; known && one.epoch == epoch {
		delete(d.under, id)
	}
}

// Of is what holds for a study now; false: nothing was chosen.
func (d *Controller) Of(study string) (Choice, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	one, known := d.settled[study]
	return one, known
}

// Responses are those of a study's runs that ended at a time or later.
func (d *Controller) Responses(study string, since time.Time) Met {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.known[study].Runs.Responses(inSeconds(since))
}

// Due reports whether it is time to choose again, and sets the next.
func (d *Controller) Due(now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now.Before(d.next) {
		return false
	}
	d.next = now.Add(Every)
	return true
}

// recordOf is what is known of a study.
func (d *Controller) recordOf(study string) Record {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known := d.known[study]
	known.Runs = known.Runs.Clone()
	return known
}

// waited is how long the training waited before it began; 0 where that was before
// the server was started.
func (d *Controller) waited(id trial.ID) float64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.under[id].waited.Seconds()
}

// controlled keeps the state of the controller of a study's limits.
func (d *Controller) controlled(study string, state State) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if known := d.known[study]; known.State != state {
		known.State = state
		d.known[study] = known
		d.unsaved[study] = true
	}
}

// settle puts what was chosen into force, and notes the workers that are awaited.
func (d *Controller) settle(chosen map[string]Choice, awaited map[string]int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.settled, d.awaited = chosen, awaited
}

// AwaitedOn is the highest priority of which a trial waits for the worker and wants
// those below to sprint; false: none does.
func (d *Controller) AwaitedOn(worker string) (priority int, awaited bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	priority, awaited = d.awaited[worker]
	return priority, awaited
}

// Paused forgets the state of the controller of a study's limits, which begins anew
// when the study goes on.
func (d *Controller) Paused(study string) { d.controlled(study, State{}) }
