package queueing

import "github.com/tandem-tune/tandem/workers/approximation"

// Control is a controller for the highest class.
type Control struct {
	// Limits are those of the highest class, Most is the largest share that those
	// below allow to leave out.
	Limits approximation.Limits
	Most   float64
	// Every is how often it is asked, in seconds.
	Every float64
	// Next is the controller.
	Next func(approximation.State, approximation.Observations) (approximation.State, approximation.Decision)
}

// control asks the controller, if that is due.
func (p *play) control() {
	c := p.engine.Control
	if c == nil || p.now < p.asked {
		return
	}
	p.asked = p.now + c.Every
	high := len(p.waiting) - 1
	o := approximation.Observations{Now: p.now, Limits: c.Limits, Most: c.Most, Ended: p.met.Runs(), Oldest: p.now}
	for _, r := range p.slots {
		if job := p.jobs[r.number]; job.Class == high {
			o.Open = append(o.Open, approximation.Run{Began: r.began, Waited: r.began - job.At, Seconds: max(r.ran, tiny)})
			continue
		}
		o.Below, o.Oldest = o.Below+1, min(o.Oldest, r.began)
	}
	if len(p.waiting[high]) > 0 {
		o.Open = append(o.Open, approximation.Run{Began: p.now, Waited: p.now - p.jobs[p.waiting[high][0].number].At})
	}
	var decision approximation.Decision
	p.state, decision = c.Next(p.state, o)
	p.share = decision.Share
}
