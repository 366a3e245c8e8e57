package protocol

import "time"

// DemandUnit is what demand is counted in.
type DemandUnit string

// The units.
const (
	DemandGPUs  DemandUnit = "GPUs"
	DemandSlots DemandUnit = "trial slots"
)

// PoolForecast is how many GPUs trials held and waited for in the last hours, and
// how many they will in the next minutes. All of what lies ahead is an estimate.
type PoolForecast struct {
	Unit DemandUnit `json:"unit" enum:"GPUs,trial slots" doc:"unit of the demand: GPUs, or trial slots if no worker has a GPU"`
	// Owner is whose demand it is; empty for that of all.
	Owner string    `json:"owner,omitempty" doc:"the user; absent: all users"`
	Now   time.Time `json:"now"`
	// Recorded is how many minutes are kept, Continuous how many of them, back from
	// now, the forecast stands on.
	Recorded   int            `json:"recorded" minimum:"0" doc:"how many minutes are kept"`
	Continuous int            `json:"continuous" minimum:"0" doc:"minutes up to now without a gap of more than 15 minutes"`
	Minutes    []DemandMinute `json:"minutes" doc:"minutes of the last hours, oldest first; missing minutes were not observed"`
	Gaps       []DemandGap    `json:"gaps" doc:"times without observation"`
	// Method is how the forecast is made; empty where there is none yet, for the
	// Reason.
	Method string `json:"method,omitempty" doc:"forecast method: persistence or gru; absent without a forecast"`
	Reason string `json:"reason,omitempty" doc:"why there is no forecast, or no better one"`
	// Quantiles are those of Ahead, and of what was told of a minute.
	Quantiles   []float64            `json:"quantiles"`
	Ahead       []DemandAhead        `json:"ahead" doc:"the next minutes: an estimate"`
	Learned     *ForecastLearned     `json:"learned,omitempty"`
	Calibration *ForecastCalibration `json:"calibration,omitempty" doc:"of the last day; absent without forecasts"`
	Users       []DemandOfUser       `json:"users" doc:"users by demand in the newest minute, largest first; without a minute, by demand now"`
}

// DemandMinute is one minute: the moment of it at which most was wanted.
type DemandMinute struct {
	At       time.Time `json:"at"`
	Running  float64   `json:"running" minimum:"0" doc:"held by trials"`
	Waiting  float64   `json:"waiting" minimum:"0" doc:"waited for by trials"`
	Capacity float64   `json:"capacity" minimum:"0" doc:"capacity of the workers that sent heartbeats"`
	// Told is what had been forecast for the minute five minutes before.
	Told []float64 `json:"told,omitempty" doc:"forecast of five minutes before, at each quantile"`
}

// DemandGap is a time in which nobody looked.
type DemandGap struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
}

// DemandAhead is the forecast of a minute, at each quantile.
type DemandAhead struct {
	At     time.Time `json:"at"`
	Demand []float64 `json:"demand" doc:"at each quantile: an estimate"`
}

// DemandOfUser is what the trials of one owner hold and wait for.
type DemandOfUser struct {
	Owner   string  `json:"owner"`
	Running float64 `json:"running" minimum:"0"`
	Waiting float64 `json:"waiting" minimum:"0"`
}

// ForecastLearned is how the way to forecast was chosen.
type ForecastLearned struct {
	At time.Time `json:"at"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds" minimum:"0" doc:"how long learning took"`
	// Minutes are those that were learned from, JudgedOn those that the ways were
	// compared on; Bridged of both were not looked at, and stand for the minute
	// before.
	Minutes  int             `json:"minutes" minimum:"0" doc:"minutes used for training"`
	JudgedOn int             `json:"judged_on" minimum:"0" doc:"later minutes, used to compare the methods"`
	Bridged  int             `json:"bridged" minimum:"0" doc:"of both, minutes that were interpolated"`
	Tried    []ForecastTried `json:"tried" doc:"the methods with their errors"`
}

// ForecastTried is a way to forecast that was compared.
type ForecastTried struct {
	Method string `json:"method"`
	// Pinball is its loss; absent where it was not compared, for the Reason.
	Pinball *float64 `json:"pinball,omitempty" doc:"mean loss over all quantiles; less is better"`
	Reason  string   `json:"reason,omitempty" doc:"why it was not compared"`
}

// ForecastCalibration is what came against what had been foretold five minutes before.
type ForecastCalibration struct {
	Minutes int `json:"minutes" minimum:"1" doc:"minutes with a forecast"`
	// Covered has for each quantile the share of the minutes with a demand that was
	// not above it: it should be the quantile.
	Covered []float64 `json:"covered" doc:"for each quantile, the share of minutes with at most that demand; ideally the quantile itself"`
	// CoveredLeast and CoveredMost are the share if half a GPU more or less is the
	// same: demand comes in whole ones.
	CoveredLeast []float64 `json:"covered_least" doc:"the same, of the minutes whose demand was at least half a GPU below it"`
	CoveredMost  []float64 `json:"covered_most" doc:"the same, of the minutes whose demand was at most half a GPU above it"`
	// Verdicts are about each quantile, as far as chance allows one: holds, too low,
	// or too high.
	Verdicts []string `json:"verdicts" enum:"holds,too low,too high" doc:"for each quantile, whether a test finds it calibrated; too low: the demand exceeded it too often"`
	// Trust is about all of them.
	Trust string `json:"trust" enum:"unsure,good,optimistic,cautious,uneven" doc:"unsure: too few minutes; good: all quantiles hold; optimistic: high ones are too low; cautious: high ones are too high; uneven: only lower ones are off"`
}

// PoolAdviceQuery says what advice is wanted for.
type PoolAdviceQuery struct {
	// Performance is the share of the demand that is to find a GPU awake; 0: what
	// the server was told.
	Performance float64
	// Least is how many GPUs stay awake whatever is forecast.
	Least int
}

// PoolAdvice is how many GPUs should be awake, and which workers to wake or to
// drain. Everything that lies ahead, and every watt, is an estimate.
type PoolAdvice struct {
	Unit DemandUnit `json:"unit" enum:"GPUs,trial slots"`
	Now  time.Time  `json:"now"`
	// Performance is the target, Quantile the setting of the knob for it; Reached
	// says whether that met the target on what was recorded.
	Performance float64 `json:"performance" doc:"target share of the demand that finds an awake GPU"`
	Quantile    float64 `json:"quantile,omitempty" doc:"the setting of the knob: GPUs are awake for this quantile of the forecast"`
	Reached     bool    `json:"reached" doc:"whether the setting met the corrected target on the minutes used to choose it"`
	// Correction is how the target was corrected by what was seen; absent where the
	// knob was not yet compared with what came.
	Correction *KnobCorrection `json:"correction,omitempty" doc:"correction of the target by observed service; absent before the first comparison"`
	// Wanted is how many should be awake, Awake how many are, Total how many there
	// are in all, and Missing how many no known worker has.
	Wanted  float64 `json:"wanted" minimum:"0" doc:"how many should be awake"`
	Awake   float64 `json:"awake" minimum:"0" doc:"how many are"`
	Total   float64 `json:"total" minimum:"0" doc:"how many there are, awake or not"`
	Missing float64 `json:"missing" minimum:"0" doc:"wanted GPUs that no known worker has: start machines"`
	// Reason says how the number came about, or why there is no advice but to leave
	// all as it is.
	Reason   string          `json:"reason"`
	Method   string          `json:"method,omitempty" doc:"how the forecast is made"`
	Settings []KnobSetting   `json:"settings" doc:"all settings of the knob"`
	Workers  []WorkerAdvice  `json:"workers"`
	Power    PowerAssumption `json:"power"`
	// Saved is what was saved in the last day; absent where less than an hour was
	// recorded.
	Saved *PoolSaving `json:"saved,omitempty" doc:"what sleeping saved in the last day: an estimate"`
}

// KnobSetting is a quantile: how it did on recorded minutes, and what it wants now.
type KnobSetting struct {
	Quantile float64 `json:"quantile"`
	Served   float64 `json:"served" doc:"share of the demand that found a GPU awake, on recorded minutes"`
	Met      float64 `json:"met" doc:"share of the minutes in which all demand did"`
	Saved    float64 `json:"saved" doc:"share of the energy of idle GPUs that are always awake: an estimate"`
	Wanted   float64 `json:"wanted" minimum:"0" doc:"how many it wants awake now"`
}

// KnobCorrection is what the knob would have served, had the pool kept to it, and
// what it aims at instead of what is asked for therefore.
type KnobCorrection struct {
	// Aim is never less than the performance that is asked for.
	Aim float64 `json:"aim" minimum:"0" maximum:"1" doc:"share of the demand that the knob aims at to serve the target; never below the target; an estimate"`
	// Served is of the Minutes of the last week that were compared, at the
	// performance that the server was told.
	Minutes int     `json:"minutes" minimum:"1" doc:"how many minutes of the last week the knob was compared with"`
	Served  float64 `json:"served" minimum:"0" maximum:"1" doc:"share of their demand that would have found an awake GPU at the configured performance: an estimate"`
	// Debt is what went unserved beyond what may, in minutes of what may.
	Debt     float64 `json:"debt" minimum:"0" doc:"unserved demand beyond the allowance; 1 is the allowance of a minute of mean demand"`
	MostDebt float64 `json:"most_debt" minimum:"0" doc:"cap of the debt; there the knob aims at a tenth of the shortfall"`
}

// WorkerAdvice is what to do with one worker.
type WorkerAdvice struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Capacity float64 `json:"capacity" minimum:"0"`
	Trials   int     `json:"trials" minimum:"0"`
	// Silent says that it is not heard of: to wake it, its machine has to be.
	Silent bool   `json:"silent,omitempty" doc:"it sends no heartbeats: wake its machine"`
	Action string `json:"action" enum:"keep,wake,drain"`
	Reason string `json:"reason"`
}

// PowerAssumption is what a GPU is taken to draw, and how long it takes to wake
// up: the server is told, and measures neither.
type PowerAssumption struct {
	AwakeWatts   float64 `json:"awake_watts" doc:"of a GPU that is awake and idle: an estimate"`
	AsleepWatts  float64 `json:"asleep_watts" doc:"of one that sleeps: an estimate"`
	DelayMinutes int     `json:"delay_minutes" doc:"how long one takes to wake up"`
}

// PoolSaving is what it saved that not all GPUs were awake.
type PoolSaving struct {
	Minutes int     `json:"minutes" minimum:"1" doc:"how many minutes were recorded"`
	Joules  float64 `json:"joules" minimum:"0" doc:"an estimate"`
	Share   float64 `json:"share" minimum:"0" maximum:"1" doc:"of the energy of idle GPUs that are all always awake: an estimate"`
	// Served is the share of the demand that found a GPU.
	Served float64 `json:"served" minimum:"0" maximum:"1" doc:"share of the demand that found a GPU"`
}
