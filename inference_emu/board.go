package emu

import (
	"time"

	"github.com/tandem-tune/tandem/internal/build"
)

// BoardAsk is a board's question for a model to measure.
type BoardAsk struct {
	// Board is its own name, Device what it is: a name of the catalogue, or "board/"
	// and a name of the user's.
	Board  string `json:"board" minLength:"1" maxLength:"128" doc:"the board's own name"`
	Device string `json:"device" minLength:"1" maxLength:"128" doc:"what it is: a name of the catalogue, or board/ and a name of your own"`
	// Site is what it found out about itself.
	Site Site `json:"site"`
	// Agent names the process that asks, anew at each start; empty: it does not tell.
	Agent string `json:"agent,omitempty" maxLength:"64" doc:"a random name of the process that asks; a second process that asks as the board is refused with 409"`
	// Busy says that it measures, and wants no order.
	Busy bool `json:"busy,omitempty" doc:"it measures, and only says that it is there"`
	// WaitSeconds is how long the server may hold the request open.
	WaitSeconds float64 `json:"wait_seconds,omitempty" minimum:"0" maximum:"60"`
}

// BoardReply is what the board shall measure; no order if there is nothing.
type BoardReply struct {
	Order *BoardOrder `json:"order,omitempty"`
}

// BoardOrder is a model to measure, and how.
type BoardOrder struct {
	Key string `json:"key"`
	// Skeleton is the model without weights and names, packed.
	Skeleton []byte `json:"skeleton"`
	Cells    []Cell `json:"cells"`
}

// BoardRuns is what an order took.
type BoardRuns struct {
	Board  string `json:"board" minLength:"1" maxLength:"128"`
	Device string `json:"device" minLength:"1" maxLength:"128"`
	Site   Site   `json:"site"`
	Key    string `json:"key" minLength:"8" maxLength:"128"`
	// Runs are without their machine, which is the device.
	Runs []Run `json:"runs" maxItems:"64"`
	// Failure says why there are none, or not all.
	Failure string `json:"failure,omitempty" maxLength:"4096"`
	// Provider is the order's.
	Provider string `json:"provider,omitempty" maxLength:"64" doc:"the order's execution provider; absent: cpu"`
}

// Boards are those that asked lately.
type Boards struct {
	Boards []Board `json:"boards"`
}

// Board is one of them.
type Board struct {
	build.Build
	Name   string    `json:"name"`
	Device string    `json:"device"`
	Site   Site      `json:"site"`
	Seen   time.Time `json:"seen" doc:"when it asked or answered last"`
	// Measuring is the architecture that it has an order for.
	Measuring string `json:"measuring,omitempty"`
	Measured  int    `json:"measured" doc:"settings that it measured since the server started"`
	Failure   string `json:"failure,omitempty" doc:"why its last order failed"`
}

// Cell is one setting to measure.
type Cell struct {
	Batch   int `json:"batch"`
	Threads int `json:"threads"`
	// Provider is empty for [CPU], and the same in all cells of an order.
	Provider string `json:"provider,omitempty" doc:"the execution provider; absent: cpu"`
}
