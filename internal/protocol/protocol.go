// Package protocol holds the messages that workers, clients and the server
// exchange as JSON over REST v1. docs/protocol.md tells the rules in prose.
//
// They are plain data. The package decides nothing and depends only on the
// domain's value types, so that a worker agent can be built without the server.
package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
)

// Timing is the clock a worker has to keep.
type Timing struct {
	// LeaseSeconds is how long a lease lives without a heartbeat.
	LeaseSeconds float64 `json:"lease_seconds"`
	// HeartbeatSeconds is how often to send one.
	HeartbeatSeconds float64 `json:"heartbeat_seconds"`
}

// Worker is a registered worker as the server sees it.
type Worker struct {
	WorkerRegistration
	build.Build
	// LastSeenSeconds is how long ago it was heard of.
	LastSeenSeconds float64 `json:"last_seen_seconds"`
	Alive           bool    `json:"alive"`
	// Load is how busy its machine was between its last two heartbeats; absent where
	// it does not say.
	Load *Load `json:"load,omitempty" doc:"how busy its machine was between its last heartbeats"`
	// Sprint is what is left for sprints; absent where its owner allows none.
	Sprint *SprintAccount `json:"sprint,omitempty" doc:"what is left for sprints"`
	Trials []trial.ID     `json:"trials"`
	// Refuses has the studies that it does not run, by id, each with the reason.
	Refuses map[string]string `json:"refuses,omitempty" doc:"ids of studies that it does not run, each with the reason"`
	// Excluded has the studies of which it is given no trials for a time, by id.
	Excluded map[string]Exclusion `json:"excluded,omitempty" doc:"ids of studies that give it no trials for a time, because its starts failed there"`
	// Drained says that it is given no more trials; absent: it is.
	Drained *Drain `json:"drained,omitempty" doc:"it gets no more trials; absent: it does"`
}

// LeaseRequest asks for a trial to run.
type LeaseRequest struct {
	Worker string `json:"worker" minLength:"8" maxLength:"64" doc:"the worker's id"`
	// Study restricts the request to one study, by name or id. Studies without
	// a command are leased only this way.
	Study string `json:"study,omitempty" maxLength:"200"`
	// WaitSeconds is how long the server may hold the request open.
	WaitSeconds float64 `json:"wait_seconds,omitempty" minimum:"0" maximum:"60"`
	// Key names the call over all its attempts, and is sent as its Idempotency-Key:
	// who asks again with the same one hears of the trial that an attempt before was
	// given. Empty: the call is one of its own.
	Key string `json:"-"`
}

// Lease is the permission to run a trial up to a budget.
type Lease struct {
	Trial      trial.ID         `json:"trial_id"`
	Study      string           `json:"study" doc:"the study's name"`
	StudyID    string           `json:"study_id"`
	Number     int              `json:"number"`
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" doc:"fencing token: send it with every write"`
	// Rung, Budget and FirstEpoch say what to train: epochs FirstEpoch to
	// Budget.Epochs, each over Budget.DataFraction of the data.
	Rung       int                    `json:"rung"`
	Budget     budget.Budget          `json:"budget"`
	FirstEpoch int                    `json:"first_epoch"`
	Params     space.Configuration    `json:"params"`
	System     map[string]space.Value `json:"system"`
	GPUs       []int                  `json:"gpus,omitempty" doc:"places in the worker's list of GPUs: those the trial has for itself"`
	GPUCount   *int                   `json:"gpu_count,omitempty" doc:"how many GPUs the command sees; absent: those that the worker lets it see"`
	// GPUShared says that other trials may run on its GPU: the command should take no
	// more of its memory than it needs.
	GPUShared bool   `json:"gpu_shared,omitempty" doc:"other trials may run on its GPU"`
	Cores     int    `json:"cores,omitempty" doc:"cores that are kept for the trial; 0: its study asks for none"`
	Seed      uint64 `json:"seed"`
	// Checkpoint, if set, is to be put in place before the command starts.
	Checkpoint          *trial.Checkpoint `json:"checkpoint,omitempty"`
	Command             []string          `json:"command,omitempty"`
	Directory           string            `json:"directory,omitempty"`
	Processes           int               `json:"processes,omitempty" doc:"processes of the command that train together; below 2: one"`
	Environment         map[string]string `json:"environment,omitempty"`
	EpochTimeoutSeconds float64           `json:"epoch_timeout_seconds,omitempty"`
	// StallSeconds is after how long without a report, output or CPU time the
	// worker tells the server so; with StallEnds it then ends the script. 0: never.
	StallSeconds float64 `json:"stall_seconds,omitempty"`
	StallEnds    bool    `json:"stall_ends,omitempty"`
	// Sandbox is "strict" where the command may run only in one with all layers,
	// without a network.
	Sandbox string `json:"sandbox,omitempty"`
	// Secrets are names of what the worker's owner gives the command.
	Secrets []string `json:"secrets,omitempty" doc:"names of secrets that the worker's owner provides; never their values"`
	// Recipients are those to whom the worker encrypts checkpoints.
	Recipients []string `json:"recipients,omitempty" doc:"age public keys to encrypt checkpoints to; the worker holds the first; absent: not encrypted"`
	// Datasets are encrypted data sets that the command gets.
	Datasets     map[string]string        `json:"datasets,omitempty" doc:"SHA-256 of the encrypted data sets that the command gets, by name: the worker downloads and decrypts them"`
	Confidential *definition.Confidential `json:"confidential,omitempty" doc:"what may leave the machine; absent: the study is not confidential"`
	// Objectives names the metrics every report at the end of a rung must have:
	// the objectives, or what their formulas need.
	Objectives []string `json:"objectives"`
	// Precisions are those in which the trained model is wanted at the end of this run.
	Precisions []string `json:"precisions,omitempty" doc:"in which the trained model is wanted when this run ends; absent: as it was trained"`
	Timing     Timing   `json:"timing"`
	// Sprint, if set, has the worker speed the command up after a time, if its
	// owner allows that and it can.
	Sprint *definition.Sprint `json:"sprint,omitempty"`
}

// LeaseReply is the answer to a LeaseRequest.
type LeaseReply struct {
	// Lease is absent when there is nothing to do now.
	Lease *Lease `json:"lease,omitempty"`
	// StudyFinished says, for a request restricted to a study, that it is over.
	StudyFinished bool `json:"study_finished,omitempty"`
}

// DirectiveAction is what a worker does after a report.
type DirectiveAction string

// The actions.
const (
	Continue DirectiveAction = "continue" // train the next epoch
	Pause    DirectiveAction = "pause"    // take a checkpoint, end, finish as interrupted
	Stop     DirectiveAction = "stop"     // end now, the result is no longer wanted
	Finish   DirectiveAction = "finish"   // the budget is reached: checkpoint, end, finish as budget_reached
)

// Directive is the server's answer to a report.
type Directive struct {
	Action DirectiveAction        `json:"action" enum:"continue,pause,stop,finish"`
	Reason string                 `json:"reason,omitempty"`
	System map[string]space.Value `json:"system,omitempty" doc:"system configuration for the next epoch, when it changes"`
}

// Report is one epoch's outcome, from the worker.
type Report struct {
	LeaseEpoch trial.LeaseEpoch       `json:"lease_epoch" minimum:"1"`
	Epoch      int                    `json:"epoch" minimum:"1" maximum:"1000000000" doc:"the epoch just ended, 1-based"`
	Metrics    map[string]trial.Float `json:"metrics" minProperties:"1" maxProperties:"1000"`
	Seconds    trial.Float            `json:"seconds,omitempty" doc:"wall-clock time of the epoch"`
	Energy     *trial.Energy          `json:"energy,omitempty"`
	Profile    *trial.Profile         `json:"profile,omitempty" doc:"what the processes did during the epoch"`
	// SetupSeconds is the part of seconds before the training began; the profile
	// is of what came after it.
	SetupSeconds trial.Float            `json:"setup_seconds,omitempty" minimum:"0" doc:"part of seconds before the training began"`
	System       map[string]space.Value `json:"system,omitempty" maxProperties:"32" doc:"system configuration that was in force"`
	Neighbours   trial.Float            `json:"neighbours,omitempty" minimum:"0" maximum:"4096" doc:"other trials the machine ran meanwhile, on average"`
	// SprintSeconds is the part of seconds in which it was sped up.
	SprintSeconds trial.Float `json:"sprint_seconds,omitempty" minimum:"0" doc:"part of seconds in which it sprinted"`
	Attestation   string      `json:"attestation,omitempty" maxLength:"16384" doc:"signed result of the broker that released the key"`
	// GPUUse is what it used of its GPUs since the report before; absent where that
	// was not seen.
	GPUUse *trial.GPUUse `json:"gpu_use,omitempty" doc:"measured use of its GPUs since the previous report"`
}

// CheckpointCommit publishes an uploaded artifact as the trial's checkpoint.
type CheckpointCommit struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	Epoch      int              `json:"epoch" minimum:"1" doc:"last training epoch it contains"`
	Artifact   string           `json:"artifact" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the uploaded bytes"`
	Bytes      int64            `json:"bytes" minimum:"0"`
}

// Outcome is how a lease ended.
type Outcome string

// The outcomes.
const (
	BudgetReached Outcome = "budget_reached" // all epochs were reported
	CommandFailed Outcome = "failed"         // the user's command failed
	Interrupted   Outcome = "interrupted"    // the worker gives it back: drained, paused or stopped
	Vanished      Outcome = "vanished"       // the worker died under it, as the next one on its machine found
	Refused       Outcome = "refused"        // the worker's owner does not let it run there: it is not offered again
)

// FinishRequest ends a lease.
type FinishRequest struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	Outcome    Outcome          `json:"outcome" enum:"budget_reached,failed,interrupted,vanished,refused"`
	Reason     string           `json:"reason,omitempty" maxLength:"4096"`
	// Unusable, with the outcome interrupted, is the lease's checkpoint if that
	// could not be restored: the next lease then goes on from the one before it.
	Unusable string `json:"unusable_checkpoint,omitempty" pattern:"^([0-9a-f]{64})?$" doc:"SHA-256 of the lease's checkpoint, if it could not be restored"`
	// OutOfGPUMemory, with the outcome failed, says that the command could not have
	// the memory of a GPU that it asked for: on a GPU that it shares that is no
	// failure of its own.
	OutOfGPUMemory bool   `json:"out_of_gpu_memory,omitempty" doc:"the command failed because a GPU ran out of memory"`
	KeyRefused     string `json:"key_refused,omitempty" pattern:"^([a-z0-9_]{1,64})?$" doc:"why the broker released no key to the confidential lease: its code"`
	Keyed          bool   `json:"keyed,omitempty" doc:"the broker had released the key to the confidential lease"`
	// GPUUse is what it used of its GPUs since the last report.
	GPUUse *trial.GPUUse `json:"gpu_use,omitempty" doc:"measured use of its GPUs since its last report"`
}

// What the reason of a lease's end begins with where the worker itself says that it
// is at fault: it could not begin the command at all, or a GPU of it is broken.
const (
	CannotRun = "this worker cannot run it: "
	NoKey     = "no key can be had now: " // the broker's fault
	GPUFailed = "a GPU of its worker failed"
)

// FinishReply says what became of the trial.
type FinishReply struct {
	State trial.State `json:"state"`
	Rung  int         `json:"rung"`
	// Excluded says that the worker is given no more trials of the study for a time.
	Excluded *Exclusion `json:"excluded,omitempty" doc:"the worker is given no more trials of the study for a time"`
}

// Exclusion is that a worker is given no trials of a study for a time.
type Exclusion struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// HeldLease names a lease a worker believes it holds.
type HeldLease struct {
	Trial      trial.ID         `json:"trial_id"`
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch"`
	// QuietSeconds is how long the script has shown no sign of life; only sent
	// once that is longer than the lease's StallSeconds.
	QuietSeconds float64 `json:"quiet_seconds,omitempty" minimum:"0" doc:"time without report, output and CPU time, once it reaches stall_seconds"`
	Keyed        bool    `json:"keyed,omitempty" doc:"the broker released the key to this confidential lease"`
	// GPUUse is what it used of its GPUs since its last report, which will say it
	// again; only sent for a GPU that others may share.
	GPUUse *trial.GPUUse `json:"gpu_use,omitempty" doc:"measured use of its GPU since its last report, if others may share it"`
}

// Heartbeat keeps a worker's leases alive.
type Heartbeat struct {
	Leases []HeldLease `json:"leases" maxItems:"1024"`
	// Load is how busy the machine was since the heartbeat before.
	Load *Load `json:"load,omitempty"`
	// Sprint is what is left for sprints; absent where the owner allows none.
	Sprint *SprintAccount `json:"sprint,omitempty"`
}

// HeartbeatReply carries what the worker has to do about its leases.
type HeartbeatReply struct {
	// Lost leases belong to another now: kill the command, write nothing.
	Lost []trial.ID `json:"lost"`
	// Directives holds, for a held lease, anything but continue.
	Directives map[trial.ID]Directive `json:"directives,omitempty"`
	// Hurried are held trials that sprint, where the worker's owner allows that, as
	// long as they are named: a trial of a higher priority waits for their machine.
	Hurried []trial.ID `json:"hurried,omitempty" doc:"held trials that sprint while they are listed: a trial of higher priority waits for their machine"`
}

// LogChunk appends to a trial's log.
type LogChunk struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	// Offset is where in this lease's log the text starts, in bytes: a
	// repeated chunk is recognised by it.
	Offset int64  `json:"offset" minimum:"0"`
	Text   string `json:"text" maxLength:"262144"`
}

// SampleBatch is what was sampled of a trial under a lease so far.
type SampleBatch struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	Data       []byte           `json:"data" doc:"begin, seconds, epochs and metrics as in the answer of get-samples: JSON, compressed by gzip"`
}

// TrialSamples are the samples of a trial.
type TrialSamples struct {
	Leases []LeaseSamples `json:"leases" doc:"in the order in which they ran; a lease without samples is absent"`
}

// LeaseSamples are the samples under one lease.
type LeaseSamples struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch"`
	Rung       int              `json:"rung"`
	Worker     string           `json:"worker"`
	series.Series
}

// StudyStatus is where a study is in its life.
type StudyStatus string

// The statuses.
const (
	StudyRunning   StudyStatus = "running"
	StudyPaused    StudyStatus = "paused"
	StudyCompleted StudyStatus = "completed" // the search ended, or a bound of stop was reached
	StudyStopped   StudyStatus = "stopped"   // by the user
	StudyFailed    StudyStatus = "failed"    // it ended with nothing measured, and trials failed or were lost
)

// Over reports whether nothing more will happen in the study, unless it is extended.
func (s StudyStatus) Over() bool {
	return s == StudyCompleted || s == StudyStopped || s == StudyFailed
}

// Progress is a study's state in numbers.
type Progress struct {
	// Trials counts the trials in each state; every state is present.
	Trials map[trial.State]int `json:"trials"`
	// Created is how many configurations were tried, MaxTrials how many may be: 0 if
	// that is the most that a study file can say, which is no bound.
	Created   int `json:"created"`
	MaxTrials int `json:"max_trials" doc:"how many configurations may be tried; 0: there is no bound"`
	// Repeats is how many trials train one of these configurations again; they
	// are not among the created.
	Repeats int `json:"repeats,omitempty" doc:"trials that train one of the best configurations again"`
	Retried int `json:"retried,omitempty" doc:"failed trials that were tried again as others"`
	// Enqueued is how many configurations wait in front of what the search proposes.
	Enqueued int `json:"enqueued,omitempty" doc:"configurations that were enqueued and not started yet"`
	// Epochs is how many epochs were trained, DataPasses the same weighted by
	// the data fraction: passes over the whole data.
	Epochs     int     `json:"epochs"`
	DataPasses float64 `json:"data_passes"`
	// TrialSeconds is the training time summed over trials; ElapsedSeconds how
	// long workers held trials of the study while it ran.
	TrialSeconds   float64      `json:"trial_seconds"`
	ElapsedSeconds float64      `json:"elapsed_seconds"`
	Energy         trial.Energy `json:"energy"`
	Cost           *trial.Cost  `json:"cost,omitempty" doc:"absent where the server has no prices"`
	// RemainingSeconds is an estimate of the time left; absent when unknown.
	RemainingSeconds *float64 `json:"remaining_seconds,omitempty" doc:"an estimate"`
	// Saved is what tuning the system parameters saved against their default;
	// absent where no difference was measured.
	Saved *trial.Saving `json:"saved,omitempty" doc:"against the default system configuration, with its 95% interval"`
	// EpochsByPhase counts the epochs by why they had their system configuration;
	// SystemUse has them by configuration and phase, also those without a phase
	// because their script did not follow. Both are absent for a study that tunes
	// none.
	EpochsByPhase map[trial.Phase]int `json:"epochs_by_phase,omitempty"`
	SystemUse     []trial.SystemUse   `json:"system_use,omitempty"`
	Promotions    int                 `json:"promotions"`
	// Resumes counts leases that continued from a checkpoint.
	Resumes   int        `json:"resumes"`
	Best      *Best      `json:"best,omitempty"`
	Disclosed *Disclosed `json:"disclosed,omitempty" doc:"what the study has told, if it is confidential"`
}

// Recommendation is the answer of a study.
type Recommendation struct {
	Study   string                 `json:"study"`
	Status  StudyStatus            `json:"status"`
	Best    *Best                  `json:"best,omitempty"`
	Metrics map[string]trial.Float `json:"metrics,omitempty" doc:"all metrics of the winner's last report"`
	// System is the system configuration to train with: the winner's, and where it
	// was tuned meanwhile what is best for a training alone on the machine.
	System     map[string]space.Value `json:"system,omitempty"`
	Checkpoint *trial.Checkpoint      `json:"checkpoint,omitempty" doc:"the winner's last checkpoint"`
	// FullBudget says whether the winner was measured at the top rung.
	FullBudget bool         `json:"full_budget"`
	Seconds    trial.Float  `json:"seconds" doc:"training time of the winner"`
	Energy     trial.Energy `json:"energy" doc:"energy of the winner's training"`
	// Pareto is the front of a study with several objectives; Best is its best
	// compromise.
	Pareto *Pareto `json:"pareto,omitempty"`
	// Deployments are how to run the winner's model on the study's devices.
	Deployments []deployment.Deployment `json:"deployments,omitempty"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// Event is one line of a study's history, in the order it happened.
type Event struct {
	Study    string    `json:"study_id"`
	Sequence int64     `json:"sequence" doc:"1, 2, 3, ... within the study"`
	At       time.Time `json:"at"`
	// Kind is "study_created", "study_status", "study_extended", "study_set", "study_owner",
	// "trial_state", "report", "checkpoint", "emulation", "annotation" or "search".
	Kind   string   `json:"kind"`
	Trial  trial.ID `json:"trial_id,omitempty"`
	Number *int     `json:"number,omitempty"`
	// State is the state after the event, for kinds that change one.
	State  string `json:"state,omitempty"`
	Worker string `json:"worker,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Data is the event's own content, by kind; see docs/protocol.md.
	Data any `json:"data,omitempty"`
}
