package trial

import "time"

// FailedStart is that a command of the trial failed before it reported.
type FailedStart struct {
	// WorkerID is the worker's id, Worker and Host are its name and its machine's.
	WorkerID string `json:"worker_id"`
	Worker   string `json:"worker"`
	Host     string `json:"host"`
	// Error is the class of the error: its text without what differs each time.
	Error string    `json:"error" doc:"the error without what differs each time"`
	At    time.Time `json:"at"`
	// Counted says that it counts as a failure of the trial's own, or is one that
	// never does.
	Counted bool `json:"counted,omitempty" doc:"whose it was is decided"`
}
