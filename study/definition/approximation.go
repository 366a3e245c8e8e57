package definition

// Approximation is what a study gives up for others of a higher priority: its
// trials may train on less data than their rungs say (DiAS; Rocha's thesis,
// section 4.2).
type Approximation struct {
	// MetricLoss is how much worse the first objective may come out, in its own
	// unit; 0: only MostDrop bounds what is left out.
	MetricLoss float64 `json:"metric_loss,omitempty"`
	// MostDrop is the largest share of its data that a trial may leave out.
	MostDrop float64 `json:"most_drop"`
}

// ResponseSeconds is how long a trial may take for a rung, from when it could
// begin to when it was trained. 0: not bounded.
type ResponseSeconds struct {
	Mean float64 `json:"mean,omitempty"`
	// Tail is what 95% of the trials should be within.
	Tail float64 `json:"tail,omitempty"`
}

// Sprint is how trials are sped up by their worker (section 4.2 of the thesis).
type Sprint struct {
	// AfterSeconds is for how long a trial runs before it sprints.
	AfterSeconds float64 `json:"after_seconds"`
	// Auto has that chosen by the server, as early as what workers may take for
	// sprints allows. AfterSeconds is 0 then.
	Auto bool `json:"auto,omitempty"`
	// WhileWaiting has trials of a lower priority sprint on the machines that a trial
	// of this study waits for.
	WhileWaiting bool `json:"while_waiting,omitempty"`
}
