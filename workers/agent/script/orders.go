package script

import (
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// Orders are what the server wants of a run.
type Orders struct {
	Directive protocol.Directive
	told      bool          // the script knows the directive
	Client    bool          // the script uses the socket
	StopAt    clock.Moment  // when a stop that is ignored is enforced; 0: not wanted
	Grace     time.Duration // of a script with a client that is to stop
}

// Direct takes what a heartbeat brought; no action means to continue.
func (o *Orders) Direct(directive protocol.Directive) {
	if directive.Action == "" {
		directive.Action = protocol.Continue
	}
	// A report's answer to continue has the system configuration as well.
	if directive.Action == protocol.Continue && o.Directive.Action == protocol.Continue {
		return
	}
	o.Take(directive)
}

// Take remembers what the server wants. Stop and finish are final, and so is a
// pause the script knows of: it may be taking its checkpoint.
func (o *Orders) Take(directive protocol.Directive) {
	switch current := o.Directive.Action; {
	case current == protocol.Stop, current == protocol.Finish && directive.Action != protocol.Stop:
		return
	case current == protocol.Pause && o.told && directive.Action == protocol.Continue:
		return
	}
	o.Directive, o.told = directive, false
	if directive.Action == protocol.Stop {
		o.StopAt = clock.Now()
		if o.Client { // it learns of it by itself, at its next call
			o.StopAt += clock.Moment(o.Grace)
		}
	}
}

// Tell returns what the server wants, to a script that asks or has reported
// and got the answer. What a heartbeat brought may be newer than an answer to
// continue; any other answer stands.
func (o *Orders) Tell(answer protocol.Directive) protocol.Directive {
	if answer.Action == protocol.Pause && o.Directive.Action == protocol.Continue {
		o.Directive = answer
	}
	o.told = true
	if answer.Action == "" || answer.Action == protocol.Continue && o.Directive.Action != protocol.Continue {
		return o.Directive
	}
	return answer
}
