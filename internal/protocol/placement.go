package protocol

import (
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/trial"
)

// Pool is who runs where and why.
type Pool struct {
	// Machines are the workers, by name.
	Machines []PoolMachine `json:"machines"`
	// Waiting is what studies have ready, in the order in which it goes.
	Waiting []PoolTask `json:"waiting" doc:"what studies have ready, in the order in which it goes"`
	// Models say how well epochs are predicted, by study and type of machine.
	Models []PoolModel `json:"models" doc:"how well epochs are predicted, by study and type of machine"`
	// GPUModels are what was learned of trainings on each type of GPU.
	GPUModels []PoolGPUModel `json:"gpu_models" doc:"what was learned of trainings on each type of GPU"`
	// Migrations are moves of running trials, the newest first.
	Migrations []PoolMigration `json:"migrations" doc:"moves of running trials, the newest first"`
	// Placed is how many trials have a lease for which machines of several types were
	// compared, of the studies that run; Saved what all placements of these studies
	// should have saved against the order in which workers asked.
	Placed int           `json:"placed" doc:"trials whose newest lease was chosen among several types of machine"`
	Saved  *trial.Saving `json:"saved,omitempty" doc:"against the order in which workers asked; an estimate"`
}

// PoolMachine is a worker with what it runs.
type PoolMachine struct {
	build.Build
	ID    string `json:"id"`
	Name  string `json:"name"`
	Host  string `json:"host"`
	Type  string `json:"type" doc:"machines of one type take the same time and energy"`
	Alive bool   `json:"alive"`
	// Waiting is how many trials it asks for.
	Waiting int `json:"waiting" doc:"trials it asks for"`
	// Drained says that it gets none, whatever it asks for.
	Drained bool `json:"drained,omitempty" doc:"it gets no more trials, whatever it asks for"`
	// Reserved says for whom it is kept now.
	Reserved string `json:"reserved,omitempty" doc:"for whom it is kept now, and until when, in words"`
	Slots    int    `json:"slots"`
	Elastic  bool   `json:"elastic,omitempty"`
	// Probes is how many probes it brought.
	Probes  int       `json:"probes,omitempty" doc:"probes it brought"`
	Running []PoolRun `json:"running"`
	// Busy says that it runs trials of studies which the caller does not see.
	Busy bool `json:"busy,omitempty" doc:"it runs trials of studies that the caller does not see"`
}

// PoolRun is a trial that a worker runs.
type PoolRun struct {
	Trial     trial.ID `json:"trial_id"`
	Study     string   `json:"study"`
	StudyID   string   `json:"study_id"`
	Number    int      `json:"number"`
	Rung      int      `json:"rung"`
	LastEpoch int      `json:"last_epoch"`
	Epochs    int      `json:"epochs" doc:"of its budget"`
	// Placement is why it runs there; absent where there was nothing to choose.
	Placement *trial.Assignment `json:"placement,omitempty"`
	// GPU is what it has of the machine's GPUs; absent: none.
	GPU *PoolGPU `json:"gpu,omitempty" doc:"what it has of the machine's GPUs; absent: none"`
	// Moves says where it is about to go, and why.
	Moves string `json:"moves,omitempty" doc:"where it is about to go, and why"`
}

// PoolTask is a trial, or as many new ones, that a study has ready.
type PoolTask struct {
	Study    string  `json:"study"`
	StudyID  string  `json:"study_id"`
	Priority int     `json:"priority"`
	Energy   float64 `json:"energy" minimum:"0" maximum:"1" doc:"the study's placement.energy"`
	// Number is that of a queued trial; absent for new ones.
	Number *int `json:"number,omitempty" doc:"of a queued trial; absent for new ones"`
	// New is how many new ones there may be.
	New int    `json:"new,omitempty" doc:"how many new trials there may be"`
	Why string `json:"why" doc:"why it waits"`
	// Options are the types of machine that are connected, the best one first.
	Options []trial.PlacementOption `json:"options"`
}

// PoolModel is how well a study's epochs are predicted on a type of machine.
type PoolModel struct {
	Study   string      `json:"study"`
	StudyID string      `json:"study_id"`
	Machine string      `json:"machine" doc:"type of machine"`
	Basis   trial.Basis `json:"basis" enum:"epochs,earlier,probes,none"`
	// Epochs is how many epochs were seen, Learned how many of them taught anything.
	Epochs  int `json:"epochs"`
	Learned int `json:"learned" doc:"epochs that were not predicted well, and so were learned from"`
	// SecondsError and JoulesError are the medians of the relative errors of the
	// newest predictions; absent where there are none.
	SecondsError *trial.Float `json:"seconds_error,omitempty" doc:"median relative error of the newest predictions"`
	JoulesError  *trial.Float `json:"joules_error,omitempty" doc:"median relative error of the newest predictions"`
	// Estimated says that the joules that were learned from are estimates.
	Estimated bool `json:"estimated,omitempty"`
}

// PoolMigration is a move of a trial, with whose it is.
type PoolMigration struct {
	Study   string `json:"study"`
	StudyID string `json:"study_id"`
	Number  int    `json:"number"`
	trial.Migration
}
