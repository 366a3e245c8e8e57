// Package trial answers: where is this trial in its life?
//
// A trial is one configuration, trained up a ladder of budgets. Its [State]
// changes only along the arrows of state.go; every change of hands increments
// its [LeaseEpoch], and a write that carries an older one is refused, so that a
// worker which was thought dead can never overwrite its successor's result.
//
// The package is pure: no clock, no storage, no network.
package trial

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/space"
)

// ID names a trial within the server: "<study id>-<number>".
type ID string

// LeaseEpoch counts how often the trial changed hands. It is a fencing token,
// not a training epoch.
type LeaseEpoch int64

// Checkpoint is the last durable state of the training, as an opaque artifact.
type Checkpoint struct {
	// Epoch is the last training epoch it contains.
	Epoch int `json:"epoch"`
	// Rung is the rung the trial was on when it was taken.
	Rung int `json:"rung"`
	// Artifact is the SHA-256 of the bytes, in lower-case hexadecimal.
	Artifact string `json:"artifact"`
	// Bytes is the artifact's size.
	Bytes int64 `json:"bytes"`
	// Trial is whose it is, where a trial has it from the one that it continues.
	Trial ID `json:"trial_id,omitempty" doc:"whose it is, if another trial's that this one continues"`
}

// Result is a trial's measurement at a rung it completed.
type Result struct {
	Rung   int           `json:"rung"`
	Budget budget.Budget `json:"budget"`
	// Epoch is where a budget of seconds or joules was spent; 0 with others,
	// whose last epoch it is.
	Epoch int `json:"epoch,omitempty"`
	// Values holds one value for each objective, in the study's order.
	Values []Float `json:"values"`
	// Violation is by how much the outcome misses the study's constraints: the
	// sum over them, each in parts of its bound. 0 for a feasible outcome,
	// infinity for one that cannot be told, or whose objective is NaN.
	Violation Float `json:"violation,omitempty"`
	// Checkpoint is the training's state at the rung: in studies with populations, which
	// an earlier build stored.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Deflation is what the training up to here left out of the data of this rung;
	// nil: nothing. Budget has what it was trained on.
	Deflation *Deflation `json:"deflation,omitempty"`
	// Estimated says that joules which are an estimate went into a value.
	Estimated bool `json:"estimated,omitempty"`
	// At is when it was measured, by the server's clock; nil for one that an
	// earlier version stored.
	At *time.Time `json:"at,omitempty"`
}

// Report is one epoch's outcome. (Trial, Rung, Epoch) is unique: the first
// accepted report stays, a repetition changes nothing.
type Report struct {
	Trial   ID               `json:"trial_id"`
	Rung    int              `json:"rung"`
	Epoch   int              `json:"epoch"`
	Metrics map[string]Float `json:"metrics"`
	// Seconds is the wall-clock time of this epoch, as the worker measured it.
	Seconds Float  `json:"seconds"`
	Energy  Energy `json:"energy"`
	// Profile is what the trial's processes did in this epoch; nil when it was
	// not profiled.
	Profile *Profile `json:"profile,omitempty"`
	// SetupSeconds is the part of Seconds before the training began: what a first
	// epoch of a lease spends on starting the script and reading data.
	SetupSeconds Float `json:"setup_seconds,omitempty"`
	// System is the system configuration that was in force, SystemPhase why.
	System      map[string]space.Value `json:"system,omitempty"`
	SystemPhase Phase                  `json:"system_phase,omitempty"`
	// SystemWhy is the sentence of the setting it ran with.
	SystemWhy string `json:"system_why,omitempty"`
	// Cost is what it cost; nil where the server has no prices.
	Cost *Cost `json:"cost,omitempty" doc:"absent where the server has no prices"`
	// Machine is the type of machine it ran on.
	Machine string `json:"machine,omitempty" doc:"type of machine"`
	// Neighbours is how many other trials the machine ran meanwhile, on average.
	Neighbours Float `json:"neighbours,omitempty"`
	// Saved is what the configuration saved against the default one; nil where
	// that is not known.
	Saved *Saving `json:"saved,omitempty"`
	// LeaseEpoch and Worker say under which lease it was accepted, and Attestation what a broker signed.
	LeaseEpoch  LeaseEpoch `json:"lease_epoch"`
	Attestation string     `json:"attestation,omitempty" doc:"of the first report that was kept of a confidential lease: the signed result of the broker that released the key"`
	Worker      string     `json:"worker"`
	// At is the server's time of acceptance.
	At time.Time `json:"at"`
}

// Trial is one configuration and everything known of it.
type Trial struct {
	ID            ID                  `json:"id"`
	Study         string              `json:"study_id"`
	Number        int                 `json:"number"`
	Configuration space.Configuration `json:"params"`
	// Origin is how the configuration came about: "random", "model", "grid",
	// "sobol", "groups", "enqueued" or "repeat".
	Origin string `json:"origin"`
	// RepeatOf is the number of the trial whose configuration this one trains
	// again with another seed; nil for all that are no repeats.
	RepeatOf *int `json:"repeat_of,omitempty"`
	// RetryOf is the number of the failed trial whose configuration this one tries
	// again, as a trial like others; nil for all that are no retries.
	RetryOf *int   `json:"retry_of,omitempty"`
	Seed    uint64 `json:"seed"`
	// Parent is the number of the trial that this one continues, and Inherited
	// the last epoch it has from there: 0 if it had to start from scratch. Both are of
	// populations, in studies that an earlier build stored.
	Parent     *int       `json:"parent,omitempty"`
	Inherited  int        `json:"inherited,omitempty"`
	State      State      `json:"state"`
	LeaseEpoch LeaseEpoch `json:"lease_epoch"`
	// Worker holds the lease, or held it last.
	Worker string `json:"worker,omitempty"`
	// Host is the name of that worker's machine, which outlives it.
	Host string `json:"host,omitempty"`
	// Holder is to whom that lease belongs: only the holder writes under it. Empty
	// where it was not noted.
	Holder string `json:"holder,omitempty"`
	// GPUs are those that it has for itself there, or had last, by their place in
	// the worker's list; with a GPUShare it is one that it may share with others.
	GPUs     []int     `json:"gpus,omitempty"`
	GPUShare *GPUShare `json:"gpu_share,omitempty" doc:"expected part of its shared GPU; absent if it shares none"`
	// GPUShortage is what it learned from running out of a shared GPU's memory; nil:
	// it never did.
	GPUShortage *GPUShortage `json:"gpu_shortage,omitempty" doc:"what it learned from running out of memory on a GPU that it shared"`
	// Rung and Budget are what the trial is on, or was last on.
	Rung       int           `json:"rung"`
	Budget     budget.Budget `json:"budget"`
	Checkpoint *Checkpoint   `json:"checkpoint,omitempty"`
	// Earlier is the checkpoint before that one, to go on from when it turns out
	// that Checkpoint cannot be restored.
	Earlier *Checkpoint `json:"earlier_checkpoint,omitempty"`
	// Results has one entry for each completed rung, in order.
	Results []Result `json:"results"`
	// Epochs is the number of accepted reports: epochs really trained and kept.
	Epochs int `json:"epochs"`
	// LastEpoch is the newest epoch accepted at the present rung. Those before it
	// that were accepted too are never counted again.
	LastEpoch int `json:"last_epoch"`
	// Last holds the metrics of the newest report.
	Last    map[string]Float `json:"last,omitempty"`
	Seconds Float            `json:"seconds"`
	Energy  Energy           `json:"energy"`
	// Cost is what its epochs cost together; nil where the server has no prices.
	Cost *Cost `json:"cost,omitempty" doc:"absent where the server has no prices"`
	// Setting is the system configuration it is to run with, and why; nil when its
	// study tunes none. Saved is what tuning has saved so far, an estimate.
	Setting *Setting `json:"setting,omitempty"`
	Saved   *Saving  `json:"saved,omitempty"`
	// SystemUse says how many epochs ran under which system configuration, and
	// what they came to. Events of the study's log leave it out.
	SystemUse []SystemUse `json:"system_use,omitempty"`
	// GPUUse is what it was seen to use of a GPU, over all its leases; nil where that
	// was not seen.
	GPUUse *GPUUse `json:"gpu_use,omitempty" doc:"what it was seen to use of a GPU; absent where that was not seen"`
	// Placement is why its lease went to its machine; nil where there was nothing to
	// choose. Migrations are its moves while it ran, the oldest first.
	Placement  *Assignment `json:"placement,omitempty" doc:"why its lease went to its machine; absent where there was nothing to choose"`
	Migrations []Migration `json:"migrations,omitempty" doc:"its moves to other machines while it ran, the oldest first"`
	// PlacementSaved is what its placements should have saved so far, an estimate.
	PlacementSaved *Saving `json:"placement_saved,omitempty" doc:"what its placements should have saved against the order in which workers asked; an estimate"`
	// Inference is what an inference of its model takes on the study's first
	// device; nil where its script saved no model, or nothing is emulated.
	Inference *InferenceCost `json:"inference,omitempty"`
	// Precisions are its trained model in other precisions, and as it was trained first.
	Precisions []Precision `json:"precisions,omitempty" doc:"its trained model in each precision of the study that was measured by the script"`
	// Failures counts the user's own failures, Losses those of the
	// infrastructure, which never use up the user's retries.
	Failures int `json:"failures"`
	Losses   int `json:"losses"`
	// Explained are those losses of which it is known why, as a preemption: they
	// count for nothing.
	Explained int `json:"explained_losses,omitempty" doc:"losses for a known reason, as a preemption; they do not count towards the losses after which a trial is given up"`
	// LostOn names the machines the trial was lost on since it last reported.
	LostOn []string `json:"lost_on,omitempty"`
	// FailedStarts are its failures before the first report of a lease, since it last
	// reported, where another worker could try it: the last one on each worker.
	FailedStarts []FailedStart `json:"failed_starts,omitempty" doc:"its failures before the first report of a lease, since it last reported, where another worker could try it"`
	// Stalled says that its script showed no sign of life for the study's
	// stall_seconds, and has not reported since.
	Stalled     bool         `json:"stalled,omitempty"`
	Attestation *Attestation `json:"attestation,omitempty" doc:"how far its newest lease is with its key; only of confidential studies"`
	// Reason says why the trial is in its state.
	Reason   string     `json:"reason,omitempty"`
	Created  time.Time  `json:"created"`
	Started  *time.Time `json:"started,omitempty"`
	Finished *time.Time `json:"finished,omitempty"`
	// Deflation is what it leaves out of the data of its present rung; nil: nothing.
	Deflation *Deflation `json:"deflation,omitempty"`
	// Promotions counts how often it went up a rung.
	Promotions int `json:"promotions"`
	// Resumes counts the leases that continued from a checkpoint.
	Resumes int `json:"resumes"`
	// Preemptions counts how often it made way for a trial of higher priority,
	// Preempted is when it last did. Neither costs a retry.
	Preemptions int        `json:"preemptions,omitempty"`
	Preempted   *time.Time `json:"preempted,omitempty"`
	// Samples are what was sampled of it, by lease.
	Samples []Samples `json:"samples,omitempty" doc:"what get-samples answers with, by lease"`
	// Logged are the files that its script logged, by name.
	Logged []Artifact `json:"artifacts,omitempty" doc:"files that its script logged, by name"`
	// Annotation is what people wrote about it.
	Annotation
}

// NextEpoch is the first epoch (1-based) a new lease has to train: behind the
// checkpoint if it belongs to this rung or the rung continues the one below.
func (t Trial) NextEpoch(rung budget.Rung) int {
	if !t.ResumesAt(rung) {
		return 1
	}
	return t.Checkpoint.Epoch + 1
}

// ResumesAt reports whether a lease at the rung continues from the checkpoint.
func (t Trial) ResumesAt(rung budget.Rung) bool {
	if t.Checkpoint == nil {
		return false
	}
	return t.Checkpoint.Rung == rung.Index || !rung.FromScratch
}

// MeasuredAt reports whether the trial has a result at the rung.
func (t Trial) MeasuredAt(rung int) bool {
	return len(t.Results) > 0 && t.Results[len(t.Results)-1].Rung == rung
}

// Value is the newest completed rung's value of an objective, and whether there is one.
func (t Trial) Value(objective int) (Float, bool) {
	if len(t.Results) == 0 {
		return 0, false
	}
	values := t.Results[len(t.Results)-1].Values
	if objective >= len(values) {
		return 0, false
	}
	return values[objective], true
}

// Kept are the checkpoints that may still be needed: the newest one, the one
// before as long as the trial may go on, and those of its results as long as its
// study is not over, since children may continue from them.
func (t Trial) Kept(over bool) []Checkpoint {
	var kept []Checkpoint
	if t.Checkpoint != nil {
		kept = append(kept, *t.Checkpoint)
	}
	if t.Earlier != nil && !t.State.Terminal() {
		kept = append(kept, *t.Earlier)
	}
	for _, result := range t.Results {
		if result.Checkpoint != nil && !over {
			kept = append(kept, *result.Checkpoint)
		}
	}
	return kept
}

// Samples are what was sampled of a trial while it ran under one lease, an artifact.
type Samples struct {
	LeaseEpoch LeaseEpoch `json:"lease_epoch"`
	Rung       int        `json:"rung"`
	Worker     string     `json:"worker"`
	Artifact   string     `json:"artifact"`
	Bytes      int64      `json:"bytes"`
	Seconds    Float      `json:"seconds" doc:"how long they last together"`
}

// maxSampled is of how many leases the samples are kept, the newest.
const maxSampled = 64

// WithSamples is the trial with the samples of its lease in place of those that it has of
// it; false where these last as long.
func (t Trial) WithSamples(s Samples) (Trial, bool) {
	others := slices.DeleteFunc(slices.Clone(t.Samples), func(one Samples) bool { return one.LeaseEpoch == s.LeaseEpoch })
	if n := len(t.Samples); len(others) < n && t.Samples[n-1].Seconds >= s.Seconds {
		return t, false
	}
	t.Samples = append(others[max(0, len(others)+1-maxSampled):], s)
	return t, true
}

// Artifacts are those that may still be needed: checkpoints that are kept, samples, and
// files that its script logged.
func (t Trial) Artifacts(over bool) []Checkpoint {
	needed := t.Kept(over)
	for _, one := range t.Samples {
		needed = append(needed, Checkpoint{Artifact: one.Artifact, Bytes: one.Bytes})
	}
	for _, one := range t.Logged {
		needed = append(needed, Checkpoint{Artifact: one.SHA256, Bytes: one.Bytes})
	}
	return needed
}

// ValueAt is what the trial measured of the objective at the rung; false where it
// was not measured.
func (t *Trial) ValueAt(rung, objective int) (Float, bool) {
	for _, result := range t.Results {
		if result.Rung == rung && objective < len(result.Values) {
			return result.Values[objective], true
		}
	}
	return 0, false
}

// Searched are the trials of a study, by number, without the repeats at their end.
func Searched(trials []Trial) []Trial {
	for n := len(trials); n > 0; n-- {
		if trials[n-1].RepeatOf == nil {
			return trials[:n]
		}
	}
	return nil
}

// Number is the number of the trial in its study; false for an ID that is none of
// ours.
func (id ID) Number() (int, bool) {
	_, text, ok := strings.Cut(string(id), "-")
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= 0 && strconv.Itoa(number) == text
}

// FractionAt is the share of the data that the trial trained with at the rung.
func (t Trial) FractionAt(rung int) float64 {
	for _, result := range t.Results {
		if result.Rung == rung {
			return result.Budget.DataFraction
		}
	}
	return t.Budget.DataFraction
}

// Amounts says how much of a measured budget was spent; an estimate says so.
func (t Trial) Amounts() string {
	text := fmt.Sprintf("epoch %d", t.LastEpoch)
	if t.Budget.Seconds > 0 {
		text += fmt.Sprintf(", %.4g of %.4g s of training", float64(t.Seconds), t.Budget.Seconds)
	}
	if t.Budget.Joules > 0 {
		text += fmt.Sprintf(", %.4g of %.4g J", float64(t.Energy.Joules), t.Budget.Joules)
		if t.Energy.Estimated() {
			text += " (an estimate)"
		}
	}
	return text
}

// FirstLine of a reason says what happened; behind it is the end of standard error.
func FirstLine(reason string) string {
	first, _, _ := strings.Cut(reason, "\n")
	return first
}
