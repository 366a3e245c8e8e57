package journal

// Outcome is what becomes of a submitted change.
type Outcome struct {
	known chan struct{}
	err   error
}

// NewOutcome returns an outcome that is not known yet.
func NewOutcome() *Outcome { return &Outcome{known: make(chan struct{})} }

// Settle makes the outcome known; it is called once. nil: the change is durable.
func (o *Outcome) Settle(err error) {
	o.err = err
	close(o.known)
}

// Wait returns the outcome as soon as it is known.
func (o *Outcome) Wait() error {
	<-o.known
	return o.err
}
