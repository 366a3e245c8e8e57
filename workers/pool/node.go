package pool

import (
	"cmp"

	"github.com/tandem-tune/tandem/trial"
)

// Node is a worker: by its id, which is another one when it is started again, and by
// its machine and its name, which are not, but which other workers may have as well.
type Node struct{ ID, Host, Name string }

// NodeOf is the worker.
func NodeOf(member Member) Node {
	name := member.Registration.Name
	return Node{ID: member.Registration.ID, Host: cmp.Or(member.Registration.Machine.Host, name), Name: name}
}

// Freshness is 2 for a machine on which the trial has not failed to start, 1 for
// another worker of one on which it has, and 0 for the same worker.
func Freshness(starts []trial.FailedStart, at Node) int {
	fresh := 2
	for _, one := range starts {
		switch {
		case one.WorkerID == at.ID:
			return 0
		case one.Host == at.Host:
			fresh = 1
		}
	}
	return fresh
}
