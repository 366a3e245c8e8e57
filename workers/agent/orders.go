package agent

import (
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// orders are what the server wants of a run.
type orders struct {
	directive protocol.Directive
	told      bool          // the script knows the directive
	client    bool          // the script uses the socket
	stopAt    clock.Moment  // when a stop that is ignored is enforced; 0: not wanted
	grace     time.Duration // of a script with a client that is to stop
}

// direct takes what a heartbeat brought; no action means to continue.
func (o *orders) direct(directive protocol.Directive) {
	if directive.Action == "" {
		directive.Action = protocol.Continue
	}
	// A report's answer to continue has the system configuration as well.
	if directive.Action == protocol.Continue && o.directive.Action == protocol.Continue {
		return
	}
	o.take(directive)
}

// take remembers what the server wants. Stop and finish are final, and so is a
// pause the script knows of: it may be taking its checkpoint.
func (o *orders) take(directive protocol.Directive) {
	switch current := o.directive.Action; {
	case current == protocol.Stop, current == protocol.Finish && directive.Action != protocol.Stop:
		return
	case current == protocol.Pause && o.told && directive.Action == protocol.Continue:
		return
	}
	o.directive, o.told = directive, false
	if directive.Action == protocol.Stop {
		o.stopAt = clock.Now()
		if o.client { // it learns of it by itself, at its next call
			o.stopAt += clock.Moment(o.grace)
		}
	}
}

// tell returns what the server wants, to a script that asks or has reported
// and got the answer. What a heartbeat brought may be newer than an answer to
// continue; any other answer stands.
func (o *orders) tell(answer protocol.Directive) protocol.Directive {
	if answer.Action == protocol.Pause && o.directive.Action == protocol.Continue {
		o.directive = answer
	}
	o.told = true
	if answer.Action == "" || answer.Action == protocol.Continue && o.directive.Action != protocol.Continue {
		return o.directive
	}
	return answer
}
