package protocol

// SetRequest changes what a study gets of the pool; nil leaves that as it is.
type SetRequest struct {
	Priority *int `json:"priority,omitempty" minimum:"-1000" maximum:"1000" doc:"studies of a higher priority are served first"`
	Parallel *int `json:"parallel,omitempty" minimum:"0" maximum:"1000000" doc:"how many of its trials run at once at most; 0: as many as there is room for"`
}

// ExtendRequest asks that a study goes on longer: each number is how much more it gets of
// what its stop section bounds, and 0 leaves that as it is. It counts from the limit of a
// study that runs, and from what was used where the study is over.
type ExtendRequest struct {
	Trials          int     `json:"trials,omitempty" minimum:"0" maximum:"1000000" doc:"how many more configurations may be tried"`
	Seconds         float64 `json:"seconds,omitempty" minimum:"0" maximum:"1e9" doc:"how much longer it may run, in seconds"`
	DataPasses      float64 `json:"data_passes,omitempty" minimum:"0" maximum:"1e9" doc:"how many more passes over the data its trials may make"`
	TrainingSeconds float64 `json:"training_seconds,omitempty" minimum:"0" maximum:"1e12" doc:"how much longer its trials may train together, in seconds"`
	Joules          float64 `json:"joules,omitempty" minimum:"0" maximum:"1e15" doc:"how much more energy its trials may use together, in joules"`
	Cost            float64 `json:"cost,omitempty" minimum:"0" maximum:"1e15" doc:"how much more money its trials may cost together, in the currency of the server's prices"`
	CO2             float64 `json:"co2_g,omitempty" minimum:"0" maximum:"1e15" doc:"how many more grams of CO2 its trials may emit together"`
	// RetryFailed tries each trial again that failed, or was lost, as a new trial with the
	// same parameters, before anything else. Trials gets as many more.
	RetryFailed bool `json:"retry_failed,omitempty" doc:"try each failed or lost trial again that was not tried again yet, and allow as many more trials for that"`
}
