// Package definition is a study as values: what to run, what to tune, what to
// measure, how much to spend and when to stop.
//
// Package studyfile reads a [Definition] from a study file, checks it and fills in
// all defaults; nothing later has to check it again. Its JSON is a study file too.
package definition

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Direction says which way an objective improves.
type Direction string

// The directions.
const (
	Maximize Direction = "maximize"
	Minimize Direction = "minimize"
)

// Score turns a value so that the larger is the better one, or back.
func (d Direction) Score(value trial.Float) float64 {
	if d == Minimize {
		return -float64(value) + 0 // and no -0
	}
	return float64(value)
}

// Compare puts the better value first, and what is no number last.
func (d Direction) Compare(x, y trial.Float) int {
	switch {
	case x.IsNaN() && y.IsNaN():
		return 0
	case x.IsNaN():
		return 1
	case y.IsNaN():
		return -1
	case d == Maximize:
		return cmp.Compare(y, x)
	default:
		return cmp.Compare(x, y)
	}
}

// Search is the search section.
type Search struct {
	// Method is "bohb" (default), "tpe", "cma-es", "gp", "random", "sobol" or "grid".
	Method string `json:"method"`
	// Promotion is how trials go up the ladder. Studies that were stored by
	// versions which knew one only lack it: they are asynchronous.
	Promotion budget.Promotion `json:"promotion,omitempty"`
	// Seed determines every random draw; 0 when not given is drawn by the
	// server when the study is created, and shown.
	Seed uint64 `json:"seed,omitempty"`
	// RandomFraction is the share of uniformly drawn configurations (bohb).
	RandomFraction float64 `json:"random_fraction"`
	// Population is of studies that an earlier build stored, with promotion: population.
	// Their trials are kept; they do not go on.
	Population int `json:"population,omitempty"`
	// Brackets bounds the starting rungs used; 0 means all, as in Hyperband.
	Brackets int `json:"brackets"`
	// Learning is from which outcomes the models of bohb and tpe learn. Studies
	// that were stored without it learn from one rung.
	Learning search.Learning `json:"learning,omitempty"`
	// GridPoints is how many points the grid takes of each continuous range.
	GridPoints int `json:"grid_points"`
	// Initial are configurations to try before anything the method proposes.
	// What one lacks is drawn when the study is created.
	Initial []space.Configuration `json:"initial,omitempty"`
	// EarlyStopping stops trials while they train, by their reports; nil: never.
	EarlyStopping *stopping.EarlyStopping `json:"early_stopping,omitempty"`
	// Restarts is how cma-es goes on when it has arrived somewhere; empty with
	// other methods unless it was given.
	Restarts cmaes.Restarts `json:"restarts,omitempty"`
	// Widen is of studies that an earlier build stored: it sent more trials up from a
	// rung that ranks unlike the next one. It is kept, and sends up none.
	Widen bool `json:"widen,omitempty"`
	// Groups is of studies that an earlier build stored: parts of a space could have
	// methods of their own. It is kept, and Method searches all of the space.
	Groups map[string]any `json:"groups,omitempty"`
	// Repeats trains the best configurations again before the study ends; nil: never.
	Repeats *search.Repeats `json:"repeats,omitempty"`
	// WarmStart is what was measured elsewhere before the study began.
	WarmStart *WarmStart `json:"warm_start,omitempty"`
}

// WarmStart says which results of elsewhere a study begins with.
type WarmStart struct {
	// Studies are earlier studies of the same server, by name or id.
	Studies []string `json:"studies,omitempty"`
	// Similar is how many of the newest studies with the same parameters and
	// objectives are used besides; the server finds them when the study is created.
	Similar int `json:"similar,omitempty"`
	// Sources is written by the server when the study is created: what it found.
	Sources []Source `json:"sources,omitempty"`
}

// Source is one place where results come from.
type Source struct {
	Name         string `json:"name"`
	Observations int    `json:"observations"`
	// Skipped counts what does not fit the space, Reason says why for the first.
	Skipped int    `json:"skipped,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Stop is when the study ends; whichever comes first.
type Stop struct {
	// Trials is how many configurations are tried at most.
	Trials int `json:"trials"`
	// Seconds is how long the study may run; pauses and times without a server
	// do not count. 0 means no bound.
	Seconds float64 `json:"seconds"`
	// Cost and CO2 are how much money, in the currency of the server's prices, and how
	// many grams of CO2 all trials together may use. 0 means no bound.
	Cost float64 `json:"cost,omitempty"`
	CO2  float64 `json:"co2_g,omitempty"`
	// DataPasses, TrainingSeconds and Joules are how much all trials together may
	// use: epochs times data fraction, seconds and energy as their workers
	// reported them. 0 means no bound.
	DataPasses      float64 `json:"data_passes,omitempty"`
	TrainingSeconds float64 `json:"training_seconds,omitempty"`
	Joules          float64 `json:"joules,omitempty"`
	// TargetReached ends the study when one trial keeps to the constraints and
	// meets the targets of all objectives that have one.
	TargetReached bool `json:"target_reached"`
	// Regret is of studies that an earlier build stored: it ended them by a bound on
	// what was left to gain. It is kept, and ends nothing.
	Regret float64 `json:"regret,omitempty"`
	// Failures ends the study when this many trials in a row failed and none
	// was ever measured.
	Failures int `json:"failures"`
	// FailuresInARow ends the study when this many trials in a row failed, measured before
	// or not. 0 means never.
	FailuresInARow int `json:"failures_in_a_row,omitempty"`
}

// When is at which hours the study starts trials, until so many hours after it was
// created. Those that run go on.
type When struct {
	// PriceBelow is of a kWh, CO2Below in g for a kWh; nil: any.
	PriceBelow       *float64 `json:"price_below,omitempty"`
	CO2Below         *float64 `json:"co2_below,omitempty"`
	LatestStartHours float64  `json:"latest_start_hours"`
}

// Encryption is to whom workers encrypt checkpoints.
type Encryption struct {
	// Recipients are age public keys. Workers hold the first.
	Recipients []string `json:"recipients"`
	// Datasets are the SHA-256 of the encrypted data sets that commands get, by name.
	Datasets map[string]string `json:"datasets,omitempty"`
}

// DatasetName is how data sets are named: commands find them by TANDEM_DATA_ and the name.
var DatasetName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Recipients are those of its checkpoints; none where they are not encrypted.
func (d *Definition) Recipients() []string {
	if d.Encryption == nil {
		return nil
	}
	return d.Encryption.Recipients
}

// Datasets are the SHA-256 of its encrypted data sets, by name.
func (d *Definition) Datasets() map[string]string {
	if d.Encryption == nil {
		return nil
	}
	return d.Encryption.Datasets
}

// UsesDataset reports whether the data set of the SHA-256 is one of them.
func (d *Definition) UsesDataset(hash string) bool {
	return slices.Contains(slices.Collect(maps.Values(d.Datasets())), hash)
}

// Retry is what happens after failures.
type Retry struct {
	// Failures is how often a failed command is started again from its last
	// checkpoint before the trial is FAILED. Lost workers never use it up.
	Failures int `json:"failures"`
}

// Definition is a whole study file.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Command is an argv, started without a shell. Empty for a study that is
	// driven by ask and tell from the user's own process.
	Command []string `json:"command,omitempty"`
	// Processes is how many processes of Command train a trial together; below 2: one.
	Processes int `json:"processes,omitempty"`
	// Service is what Command drives, where that is [Service.Command]; nil for a script.
	Service *Service `json:"service,omitempty"`
	// Directory is where the command starts, on the worker. Relative to the
	// worker's own directory; empty means that directory.
	Directory string `json:"directory,omitempty"`
	// Code tells the command from an earlier one with other files: a hash of them, which
	// the command line makes. Empty where it is not known.
	Code string `json:"code,omitempty"`
	// Environment is added to the command's environment.
	Environment map[string]string `json:"environment,omitempty"`
	// EpochTimeoutSeconds is the longest silence allowed between two reports
	// (the first counts from the start); 0 means no limit.
	EpochTimeoutSeconds float64 `json:"epoch_timeout_seconds,omitempty"`
	// Sandbox is "strict" for a study whose commands run only where all layers of
	// the sandbox hold, and without a network; else empty.
	Sandbox string `json:"sandbox,omitempty"`
	// Encryption is who can read its checkpoints; nil: the server can.
	Encryption *Encryption `json:"encryption,omitempty"`
	// Confidential is what may leave its machines; nil: any machine may have its key.
	Confidential *Confidential `json:"confidential,omitempty"`
	// Secrets are names of variables that workers' owners give its commands.
	Secrets []string `json:"secrets,omitempty"`
	// StallSeconds is after how long without a sign of life (a report, output, or
	// CPU time worth mentioning) a script counts as stalled; 0 means never. It is
	// told in the study's events; with StallEnds the script is ended as well and
	// counts as failed.
	StallSeconds float64     `json:"stall_seconds,omitempty"`
	StallEnds    bool        `json:"stall_ends,omitempty"`
	Objectives   []Objective `json:"objective"`
	// Constraints are what outcomes must keep to.
	Constraints []Constraint `json:"constraints,omitempty"`
	Space       space.Space  `json:"space"`
	// System is with what trials run, and what of it is tuned meanwhile.
	System System `json:"system,omitzero"`
	// Similarity is how PipeTune groups runs into workloads for this study; nil: as
	// the server does.
	Similarity *similarity.Grouping `json:"similarity,omitempty"`
	// Inference is where the models will run; nil where nothing is emulated.
	Inference *Inference      `json:"inference,omitempty"`
	Budget    budget.Settings `json:"budget"`
	Search    Search          `json:"search"`
	Stop      Stop            `json:"stop"`
	// When is at which hours it starts trials; nil: at all.
	When  *When `json:"when,omitempty"`
	Retry Retry `json:"retry"`
	// Placement is on which machines its trials run, where there are several types.
	Placement Placement `json:"placement,omitzero"`
	// Priority orders studies that wait for workers; higher goes first.
	Priority int `json:"priority"`
	// Approximation is what its trials may leave out for studies of a higher
	// priority; nil: nothing.
	Approximation *Approximation `json:"approximation,omitempty"`
	// ResponseSeconds is how long its trials may take; nil: as long as they do.
	ResponseSeconds *ResponseSeconds `json:"response_seconds,omitempty"`
	// Sprint is how its trials are sped up; nil: they are not.
	Sprint *Sprint `json:"sprint,omitempty"`
	// Parallel is how many trials run at once at most; 0 means as many as there is
	// room for.
	Parallel int `json:"parallel,omitempty"`
	// Preempt lets the study take the place of trials of lower priority where its
	// owner may: they pause by checkpoint.
	Preempt bool `json:"preempt,omitempty"`
	// Resources is what each trial has of one machine for itself; nil where the
	// study does not say.
	Resources *Resources `json:"resources,omitempty"`
	// Hooks are who is told what happens in it.
	Hooks []Hook `json:"hooks,omitempty"`
}

// Ladder returns the rungs a trial climbs, the cheapest first.
func (d Definition) Ladder() []budget.Rung { return d.Budget.Ladder() }

// SearchSettings returns what the study's search is made from.
func (d Definition) SearchSettings() search.Settings {
	settings := search.Settings{
		Method: d.Search.Method, Promotion: d.Search.Promotion, Seed: d.Search.Seed, Space: d.Space,
		Rungs: d.Ladder(), Eta: d.Budget.Eta, Brackets: d.Search.Brackets,
		MaxTrials: d.Stop.Trials, RandomFraction: d.Search.RandomFraction, Learning: d.Search.Learning, GridPoints: d.Search.GridPoints,
		EarlyStopping: d.Search.EarlyStopping,
		Restarts:      d.Search.Restarts,
		Repeats:       d.Search.Repeats,
	}
	for _, objective := range d.Objectives {
		settings.Maximize = append(settings.Maximize, objective.Direction == Maximize)
	}
	return settings
}

// KnewBefore reports whether its search begins with results of elsewhere, or expectations.
func (d *Definition) KnewBefore() bool { return d.Search.WarmStart != nil || d.Space.Expects() != "" }

// Plan previews what the study will do, before it is created.
func (d Definition) Plan() budget.Plan {
	learns := !slices.Contains([]string{"random", "sobol", "grid"}, d.Search.Method)
	trials := cmp.Or(d.Stop.Trials, math.MaxInt)
	if points, err := d.Space.Grid(d.Search.GridPoints); err == nil && d.Search.Method == "grid" {
		trials = min(trials, points.Count()+len(d.Search.Initial))
	}
	plan := budget.NewPlan(d.Budget, d.Search.Promotion, trials%math.MaxInt, d.Search.Brackets, learns) // 0: without bound
	if !slices.Contains([]string{"bohb", "random"}, d.Search.Method) || d.Search.Brackets != 1 {
		plan.FewestPasses, plan.MostPasses = 0, 0 // bench/search -compare plans holds no range to it
	}
	plan.System = append(d.SystemPlan(), d.Inference.plan()...)
	plan.UpperBound = d.Search.EarlyStopping != nil
	if again := d.Search.Repeats; again != nil {
		trials := again.Trials
		if again.Present {
			trials++
		}
		plan = plan.Repeating(trials, again.Times)
	}
	return plan
}
