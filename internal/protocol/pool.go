package protocol

import "time"

// Quota bounds what one user has of the pool. A bound of 0 is none.
type Quota struct {
	Trials int `json:"trials,omitempty" minimum:"0" maximum:"1000000" doc:"trials at once; 0: no bound"`
	GPUs   int `json:"gpus,omitempty" minimum:"0" maximum:"1000000" doc:"GPUs at once; 0: no bound"`
	// GPUSecondsADay and JoulesADay bound what the user's trials use in a day (UTC).
	GPUSecondsADay float64 `json:"gpu_seconds_a_day,omitempty" minimum:"0" maximum:"1e12" doc:"GPUs times seconds in a day (UTC); 0: no bound"`
	JoulesADay     float64 `json:"joules_a_day,omitempty" minimum:"0" maximum:"1e15" doc:"joules in a day (UTC), as workers report them, estimates too; 0: no bound"`
	CostADay       float64 `json:"cost_a_day,omitempty" minimum:"0" maximum:"1e12" doc:"money in a day (UTC), by the server's prices; 0: no bound"`
	// Weight is the user's fair share against users with weight 1.
	Weight float64 `json:"weight,omitempty" minimum:"0" maximum:"1000" doc:"the user's fair share against users with weight 1; 0: 1"`
	// DatasetBytes bounds the user's encrypted data sets together.
	DatasetBytes int64 `json:"dataset_bytes,omitempty" minimum:"0" maximum:"1000000000000000" doc:"encrypted data sets together; 0: no bound"`
	// Preempt lets the user's studies take the place of trials of lower priority.
	Preempt bool `json:"preempt,omitempty" doc:"the user's studies may say preempt"`
}

// QuotaView is a user's quota beside what its trials have.
type QuotaView struct {
	User string `json:"user" doc:"admin: the administrators"`
	// Quota is absent for a user who has none.
	Quota *Quota  `json:"quota,omitempty" doc:"absent: the user has none"`
	Uses  PoolUse `json:"uses"`
	// UserAbsent says that no token is the user's: the name may be misspelt.
	UserAbsent bool `json:"user_absent,omitempty" doc:"the user has no token: the quota limits nobody until one exists"`
}

// PoolUse is what a user's trials have of the pool now, and used today.
type PoolUse struct {
	Trials int     `json:"trials"`
	GPUs   float64 `json:"gpus" doc:"a part of a GPU counts as its fraction"`
	Cores  int     `json:"cores"`
	// DominantShare is the largest part of any resource, without the weight.
	DominantShare   float64 `json:"dominant_share" doc:"largest part of the pool's GPUs, cores or memory"`
	GPUSecondsToday float64 `json:"gpu_seconds_today" doc:"since midnight UTC"`
	JoulesToday     float64 `json:"joules_today" doc:"as workers report them, estimates too"`
	CostToday       float64 `json:"cost_today,omitempty" doc:"money, by the server's prices"`
}

// ReservationRequest keeps a worker, or some GPUs, for a user or a study.
type ReservationRequest struct {
	User   string `json:"user,omitempty" maxLength:"128" doc:"who it is for; or else study"`
	Study  string `json:"study,omitempty" maxLength:"200" doc:"the study it is for, by name or id; or else user"`
	Worker string `json:"worker,omitempty" maxLength:"128" doc:"the name of the worker that is kept; or else gpus"`
	GPUs   int    `json:"gpus,omitempty" minimum:"0" maximum:"1000000" doc:"how many GPUs are kept, of whatever workers; or else worker"`
	// From is when it begins; absent: now.
	From *time.Time `json:"from,omitempty" doc:"when it begins; absent: now"`
	To   time.Time  `json:"to" doc:"when it is over"`
}

// Reservation is one that was made.
type Reservation struct {
	ID      string    `json:"id"`
	User    string    `json:"user,omitempty"`
	Study   string    `json:"study,omitempty" doc:"the study's reference"`
	StudyID string    `json:"study_id,omitempty"`
	Worker  string    `json:"worker,omitempty"`
	GPUs    int       `json:"gpus,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Active  bool      `json:"active" doc:"it holds now"`
	// WorkerAbsent, GPUsAbsent and UserAbsent say that what it names is not there now,
	// which may be because it is yet to come, or because it was written wrong.
	WorkerAbsent bool `json:"worker_absent,omitempty" doc:"no worker of this name is connected now: nothing is kept until one is"`
	GPUsAbsent   int  `json:"gpus_absent,omitempty" doc:"how many of the GPUs no connected worker has: while it holds, nobody else begins a trial with GPUs"`
	UserAbsent   bool `json:"user_absent,omitempty" doc:"the user has no token: nobody can use what is kept until one exists; shown to administrators and viewers"`
}

// DrainRequest says how a worker is drained.
type DrainRequest struct {
	// Now also asks the trials that run there to pause by checkpoint.
	Now    bool   `json:"now,omitempty" doc:"also let the trials that run there pause by checkpoint and go on elsewhere"`
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"shown to people"`
}

// Drain says that a worker is given no more trials, until it is undrained.
type Drain struct {
	Since  time.Time `json:"since"`
	Now    bool      `json:"now,omitempty" doc:"its trials were asked to go on elsewhere"`
	Reason string    `json:"reason,omitempty"`
}

// Drained is the answer to a drain or an undrain.
type Drained struct {
	// Workers are the names of those it changed.
	Workers []string `json:"workers"`
	// Trials is how many trials they still run.
	Trials int `json:"trials" doc:"trials that they still run"`
}

// WaitCause is why a study's next trial does not start.
type WaitCause string

// The causes.
const (
	WaitParallel  WaitCause = "parallel"    // its own bound on trials at once
	WaitHours     WaitCause = "hours"       // the hours that its study file names
	WaitQuota     WaitCause = "quota"       // its owner's quota
	WaitReserved  WaitCause = "reservation" // what there is, is kept for others
	WaitUnfit     WaitCause = "unfit"       // no worker is large enough, or there is none
	WaitBusy      WaitCause = "busy"        // every worker that suits it is busy
	WaitGang      WaitCause = "gang"        // a machine is being cleared for it or for another
	WaitUnsuited  WaitCause = "unsuited"    // no worker may run it
	WaitDrained   WaitCause = "drained"     // the workers that suit it are drained
	WaitPreempted WaitCause = "preemption"  // trials of others are making way for it
	WaitExcluded  WaitCause = "excluded"    // a worker failed its trials for its own sake
)

// NoWorker begins the reason where no worker at all is connected.
const NoWorker = "no worker is connected"

// Wait says in words why a study's next trial does not start.
type Wait struct {
	Cause  WaitCause `json:"cause" enum:"parallel,hours,quota,reservation,unfit,busy,gang,unsuited,drained,preemption,excluded"`
	Reason string    `json:"reason"`
	// Launcher is the one that Reason tells of.
	Launcher string `json:"launcher,omitempty" doc:"the launcher that the reason tells of"`
}
