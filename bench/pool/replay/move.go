package replay

import "fmt"

// move takes a job to where its policy says, and brings back what it changes places
// with.
func (e *engine) move(one Move) {
	jobs, spots := []*Running{one.Job}, []Spot{one.To}
	if one.With != nil {
		jobs, spots = append(jobs, one.With), []Spot{{one.With.Machine, one.With.GPUs}, {one.Job.Machine, one.Job.GPUs}}
	}
	for _, job := range jobs {
		if e.trouble != nil {
			return
		}
		if !job.Working() {
			e.trouble = fmt.Errorf("it moves job %s, which does not work", job.Name)
			return
		}
		e.lift(job)
	}
	for i, job := range jobs {
		e.arriveAt(job, spots[i])
	}
}

// arriveAt has a job that was lifted go on elsewhere.
func (e *engine) arriveAt(job *Running, to Spot) {
	if e.trouble != nil {
		return
	}
	if why := e.fits(job.Job, to, job.from.Alone); why != "" {
		e.trouble = fmt.Errorf("it moves job %s to machine %d, GPUs %v: %s", job.Name, to.Machine, to.GPUs, why)
		return
	}
	e.account.migrations++
	from := job.from
	from.moved, from.Left, from.joules = true, job.left, from.joules+job.joules
	job.joules = 0
	e.settle(job, to)
	if !job.starved {
		e.pause(job)
	}
}
