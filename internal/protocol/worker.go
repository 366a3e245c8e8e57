package protocol

import (
	"strings"

	"github.com/tandem-tune/tandem/internal/build"
)

// WorkerRegistration introduces a worker. The id is made by the worker and kept
// for the life of its process: registering again with it is harmless.
type WorkerRegistration struct {
	ID      string  `json:"id" minLength:"8" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$" doc:"made by the worker, unique, kept for the life of its process"`
	Name    string  `json:"name" minLength:"1" maxLength:"128" doc:"shown to people"`
	Slots   int     `json:"slots" minimum:"1" maximum:"1024" doc:"how many trials it runs at once"`
	Machine Machine `json:"machine"`
	// Elastic says that the worker runs as many trials as its cores have room
	// for, at most Slots: the server decides how many those are.
	Elastic bool `json:"elastic,omitempty" doc:"run as many trials as the cores have room for, at most slots"`
	// Sandbox is what holds the commands; absent where the worker does not say.
	Sandbox *Sandbox `json:"sandbox,omitempty" doc:"isolation of the commands it runs"`
	// Measures is what it can measure trials with, and why not; absent where the
	// worker does not say.
	Measures []Measure `json:"measures,omitempty" maxItems:"64" doc:"what it can measure trials with, and why not"`
	// Probes is what the probing tasks took on its machine; absent where they never
	// ran.
	Probes []Probe `json:"probes,omitempty" maxItems:"128" doc:"what the probing tasks took on its machine"`
	// Recipients are public keys of identities that it holds. With any it runs encrypted
	// studies only.
	Recipients []string `json:"recipients,omitempty" maxItems:"32" doc:"age public keys whose identities it holds: with any it runs encrypted studies only"`
	// Confidential is what it claims to be, with which it runs confidential studies only.
	// A broker finds out before it releases a key.
	Confidential *Claim `json:"confidential,omitempty" doc:"a confidential machine, as it says: it runs confidential studies of the policy only"`
	// Launch is the id of the order that a launcher started it for; empty: none did.
	Launch string `json:"launch,omitempty" maxLength:"64" doc:"the id of the order that a launcher started it for"`
	// Labels are those that its owner gave it, for studies that ask for some.
	Labels map[string]string `json:"labels,omitempty" doc:"what its owner says of it, for resources.labels of studies: up to 32 names of up to 128 letters, digits and ._-/ with values of up to 63"`
	// Taints keep the trials of studies away that do not tolerate them.
	Taints []string `json:"taints,omitempty" maxItems:"32" doc:"what keeps trials away whose resources.tolerates does not name it"`
	// StaysSeconds is in how long its machine is taken away; 0: not that it knows.
	StaysSeconds float64 `json:"stays_seconds,omitempty" minimum:"0" maximum:"1e9" doc:"in how long its machine is taken away, for resources.time_limit_seconds; absent: not that it knows"`
	// Program is what registers, by its User-Agent.
	Program build.Build `json:"-"`
	// Features are those that it knows, by [FeaturesHeader]; nil: it does not say.
	Features []Feature `json:"-"`
}

// Unbegun reports whether a trial came back for that reason before it began.
func Unbegun(reason string) bool {
	return strings.HasPrefix(reason, CannotRun) || strings.HasPrefix(reason, NoKey)
}

// Claim is what a worker says of its confidential machine. It serves placement only.
type Claim struct {
	TEE    string `json:"tee" enum:"sev-snp,tdx" doc:"what signs its reports"`
	Policy string `json:"policy" pattern:"^[0-9a-f]{64}$" doc:"id of the policy by which its broker releases a key"`
}

func (c *Claim) String() string {
	if c == nil {
		return ""
	}
	return c.TEE + ", policy " + c.Policy
}

// Measure is one thing that a worker can or cannot measure trials with.
type Measure struct {
	Name      string `json:"name" minLength:"1" maxLength:"64"`
	Available bool   `json:"available"`
	// Detail says what there is.
	Detail string `json:"detail,omitempty" maxLength:"1024"`
	// Reason says why it is not available, or only in part; Remedy what to do.
	Reason string `json:"reason,omitempty" maxLength:"1024"`
	Remedy string `json:"remedy,omitempty" maxLength:"1024"`
}

// Sandbox is what holds the commands that a worker runs.
type Sandbox struct {
	Mode   string   `json:"mode" enum:"auto,strict,off"`
	Layers []string `json:"layers" maxItems:"32" doc:"layers that hold"`
	// Missing are the other layers there are, each with the reason.
	Missing []string `json:"missing,omitempty" maxItems:"32" doc:"layers that are missing, each with the reason"`
}

// StrictSandbox is what a study wants that runs only where all layers hold.
const StrictSandbox = "strict"

// Complete reports whether all layers hold.
func (s *Sandbox) Complete() bool {
	return s != nil && s.Mode != "off" && len(s.Layers) > 0 && len(s.Missing) == 0
}

// Load is how busy a whole machine was, whoever kept it busy.
type Load struct {
	CPUUtilization    float64 `json:"cpu_utilization" minimum:"0" maximum:"1" doc:"share of all cores' time"`
	MemoryUtilization float64 `json:"memory_utilization" minimum:"0" maximum:"1" doc:"share of the memory"`
	// Watts are those of processors, and of GPUs that are metered; Method is how they
	// were obtained: what starts with estimate is one.
	Watts  float64 `json:"watts" minimum:"0" maximum:"1000000"`
	Method string  `json:"method" maxLength:"255"`
}

// SprintAccount is the energy that a worker's owner allows for sprints.
type SprintAccount struct {
	Joules float64 `json:"joules" minimum:"0" maximum:"1000000000000" doc:"joules left, by the owner's estimate of a sprint's cost"`
	Of     float64 `json:"of" minimum:"0" maximum:"1000000000000" doc:"joules that the account holds when it is full"`
	// Watts is what it is replenished by.
	Watts float64 `json:"watts" minimum:"0" maximum:"1000000000000" doc:"rate at which it refills"`
	// ExtraWatts is what it is charged for each trial that sprints; 0 from a worker
	// that does not say.
	ExtraWatts float64 `json:"extra_watts,omitempty" minimum:"0" maximum:"1000000000000" doc:"charge for a sprinting trial"`
}
