package emulator

import "github.com/tandem-tune/tandem/internal/problem"

// order is what the process is told on its standard input. After it comes a line
// for each time that the process waits.
type order struct {
	// Inspect says that the model is only looked at, without a library.
	Inspect   bool      `json:"inspect,omitempty"`
	Library   string    `json:"library"`
	Cells     []placed  `json:"cells"`
	Inputs    Inputs    `json:"inputs"`
	Limits    Limits    `json:"limits"`
	Precision Precision `json:"precision"`
	Seconds   float64   `json:"cpu_seconds"` // of CPU time that it may use
}

// placed is a cell with the cores chosen for it.
type placed struct {
	Cell
	CoreNumbers []int `json:"core_numbers"`
}

// message is what the process answers, one a line. Exactly one field is set.
type message struct {
	Ready *readyMessage `json:"ready,omitempty"`
	// Begin and End are said when the measured runs begin and end, with the CPU
	// seconds that the process has used by then. The process waits after each.
	Begin *float64    `json:"begin,omitempty"`
	End   *endMessage `json:"end,omitempty"`
	// Graph is what was found in a file that is only looked at.
	Graph *Inspection `json:"graph,omitempty"`
	// Failed is why there is nothing more to come.
	Failed *failedMessage `json:"failed,omitempty"`
}

type readyMessage struct {
	Runtime      string  `json:"runtime"`
	LibraryBytes int64   `json:"library_bytes"`
	Layers       []Layer `json:"layers"`
}

type endMessage struct {
	CPUSeconds  float64     `json:"cpu_seconds"`
	Measurement Measurement `json:"measurement"`
}

type failedMessage struct {
	Code   problem.Code `json:"code"`
	Detail string       `json:"detail"`
}

// The descriptors of the process besides its standard input.
const (
	modelDescriptor  = 3
	answerDescriptor = 4
)

// maxAnswerBytes bounds what is read of a process's answers, maxErrorBytes what is
// kept of what it prints.
const (
	maxAnswerBytes = 64 << 20 // of a graph with many operators
	maxErrorBytes  = 16 << 10
)
