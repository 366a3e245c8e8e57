package crew

import (
	"time"

	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// LauncherReport is all that a launcher knows. It sends it at each look, so that a server
// that was restarted knows it again; what must not be lost is in the launcher's own file.
type LauncherReport struct {
	LauncherState
	// Over are launches that ended, or that the engine did not take: their tokens end.
	Over []string `json:"over,omitempty" maxItems:"1000" doc:"launches that are over: the enrolments and tokens of their workers end"`
}

// LauncherState is what a launcher has asked its engine for, and what became of it.
type LauncherState struct {
	Engine       string  `json:"engine" minLength:"1" maxLength:"32" doc:"what starts the workers, such as slurm"`
	EverySeconds float64 `json:"every_seconds" minimum:"0" maximum:"86400" doc:"how often it looks; 0: once"`
	// Trouble is why it cannot see its engine now.
	Trouble string        `json:"trouble,omitempty" maxLength:"1024" doc:"why it does not see its engine at the moment, in a sentence"`
	Shapes  []LaunchShape `json:"shapes" maxItems:"50" doc:"the kinds of workers that it starts, the smallest first"`
	Notes   []LaunchNote  `json:"notes" maxItems:"50" doc:"what it does not do at the moment, and why"`
	Ends    []LaunchEnd   `json:"ends" maxItems:"50" doc:"how the last workers ended, the newest first"`
}

// LaunchShape is a kind of worker, with those there are.
type LaunchShape struct {
	Name      string         `json:"name" minLength:"1" maxLength:"32"`
	GPUs      int            `json:"gpus,omitempty" minimum:"0"`
	GPUType   string         `json:"gpu_type,omitempty" maxLength:"64" doc:"the engine's name of the GPUs' type"`
	Cores     int            `json:"cores" minimum:"0"`
	MemoryGiB float64        `json:"memory_gib,omitempty" minimum:"0"`
	Trials    int            `json:"trials" minimum:"0" doc:"trials that one worker runs at once"`
	Most      int            `json:"most" minimum:"0" doc:"workers at once, at most"`
	Wanted    int            `json:"wanted" minimum:"0" doc:"trials that wait for a worker of this shape"`
	Pending   int            `json:"pending" minimum:"0" doc:"workers that wait for the engine"`
	Starting  int            `json:"starting" minimum:"0" doc:"workers that the engine has started and that have not registered yet"`
	Running   int            `json:"running" minimum:"0" doc:"workers that registered and have not ended"`
	Waits     []LaunchWait   `json:"waits,omitempty" maxItems:"10" doc:"why they wait, the most first"`
	Learned   *LaunchLearned `json:"learned,omitempty" doc:"how long workers waited so far"`
	Hold      *LaunchHold    `json:"hold,omitempty" doc:"why no more are started for a while"`
}

// LaunchWait is why workers wait for their engine.
type LaunchWait struct {
	Workers int       `json:"workers" minimum:"1"`
	Why     string    `json:"why" maxLength:"512" doc:"the engine's reason, in a sentence"`
	Since   time.Time `json:"since" doc:"since when the first of them waits"`
}

// LaunchLearned is how long the last workers waited between order and start.
type LaunchLearned struct {
	Workers       int     `json:"workers" minimum:"1" doc:"the last so many, at most 50"`
	MedianSeconds float64 `json:"median_seconds" minimum:"0" doc:"half of them waited no longer"`
	MostSeconds   float64 `json:"most_seconds" minimum:"0" doc:"nine in ten of them waited no longer"`
}

// LaunchHold is why no more workers of a shape are started for a while.
type LaunchHold struct {
	Why   string    `json:"why" maxLength:"1024" doc:"how the last one ended"`
	Until time.Time `json:"until" doc:"then one alone is started, to see whether it is better"`
	// TryAgain says that somebody asked for that, and the launcher has not heard it yet.
	TryAgain bool `json:"try_again,omitempty" doc:"somebody asked to try again, and the launcher has not heard it yet"`
}

// LaunchNote is something that a launcher does not do, and why.
type LaunchNote struct {
	StudyID string `json:"study_id,omitempty" maxLength:"64" doc:"the study that waits; empty: it is about a shape"`
	Says    string `json:"says" maxLength:"1024"`
}

// LaunchEnd is how a worker ended, or an order that the engine refused.
type LaunchEnd struct {
	At     time.Time      `json:"at" doc:"when the launcher saw it"`
	Shape  string         `json:"shape" maxLength:"32"`
	Launch string         `json:"launch" maxLength:"64"`
	Job    string         `json:"job,omitempty" maxLength:"128" doc:"the engine's name of it; empty: it never had one"`
	Node   string         `json:"node,omitempty" maxLength:"256"`
	Cause  protocol.Cause `json:"cause,omitempty" enum:"finished,preempted,evicted,node_failed,time_limit,cancelled,out_of_memory,failed" doc:"missing: the engine did not say"`
	Why    string         `json:"why" maxLength:"512" doc:"that in a sentence"`
	// Seconds is how long it ran, as far as the launcher saw.
	Seconds float64 `json:"seconds,omitempty" minimum:"0" doc:"how long it ran"`
	Worked  bool    `json:"worked,omitempty" doc:"a trial ran on it"`
}

// LauncherReply is what a launcher is told.
type LauncherReply struct {
	TryAgain []string `json:"try_again" doc:"shapes on hold that somebody asked to try again"`
}

// TryAgain asks a launcher not to wait for the end of a hold.
type TryAgain struct {
	Shape string `json:"shape" minLength:"1" maxLength:"32"`
}

// Launches are the launchers whose workers the caller's trials may get.
type Launches struct {
	Launchers []Launcher `json:"launchers"`
}

// Launcher is one of them, as it said last.
type Launcher struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// User is whose trials alone its workers run.
	User  string    `json:"user,omitempty" doc:"whose trials alone its workers run; missing: those of all"`
	Heard time.Time `json:"heard" doc:"when it reported last"`
	// Silent says that this is longer ago than it should be.
	Silent bool `json:"silent,omitempty" doc:"it should have reported again: does it still run?"`
	// Yours says that the caller may ask it to try again.
	Yours bool `json:"yours,omitempty" doc:"the caller may ask it to try again"`
	build.Build
	LauncherState
}
