// Package replayed is the command `go run ./bench/pool replay`: it plays a recorded
// trace under the policies of package policies and prints what each came to.
package replayed

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	poolreplay "github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/placement"
)

// replayFlags are the flags of `bench/pool replay`.
type replayFlags struct {
	traces                                            []string
	format, machines, nodes, throughputs              string
	policies                                          []string
	energies, drop                                    []float64
	every, moveSeconds, moveJoules, sharedTo, stretch float64
	jobs, spare, users                                int
	seed                                              uint64
	report                                            string
	json, exchange, longestFirst                      bool
}

// The formats of traces, and the policies.
var (
	replayFormats  = []string{"gavel", "muri", "alibaba", "helios", "tandem"}
	replayPolicies = []string{"spread", "anywhere", "first-fit", "fair", "heats", "packed", "watched", "priority", "preemptive", "restarting", "deflated", "standby"}
)

// usage is what -help says before the flags.
const usage = `Play recorded jobs on machines that you describe, under one policy after the
other, with the code that the server decides with: what would this week have
taken, in time and energy? It comes out the same each time.

Formats of -trace:
  gavel      a trace of Gavel; -throughputs names its steps a second
  muri       a trace of Muri
  alibaba    the pods of Alibaba's trace of 2023; -nodes names its nodes
  helios     a demand curve of Helios (.csv or .csv.gz)
  tandem     studies of yours: 'tandem study export -format json', more with commas

Policies:
  spread     the machine with the most left free: what Kubernetes does by default
  anywhere   any machine with room, users in turns: workers that ask by themselves
  first-fit  the first machine with room
  fair       the same, users in turns by their dominant shares, as the server does
  heats      the machine with the best score of energy and speed, for each -energy;
             every -look seconds, what runs may move to a better one, and with
             -exchange also change places
  packed     several jobs on a GPU, by what they are said to use
  watched    the same after a minute alone
  priority, preemptive, restarting, deflated
             the highest priority first; the others may end lower jobs, that go on
             later (preemptive) or begin again (restarting); or every job does all
             but a share (-drop) of its work
  standby    first fit, and machines without jobs sleep: as many GPUs are awake as are
             wanted, and -spare more

Joules are computed from the trace and the file of machines: estimates. What is
left out of a trace or not known of it is said below the table. docs/replay.md
has an example, and the file of machines.
`

// Run plays what the arguments say and prints what came of it.
func Run(args []string, out io.Writer) error {
	var flags replayFlags
	set := flag.NewFlagSet("bench/pool replay", flag.ContinueOnError)
	set.SetOutput(out)
	set.Usage = func() {
		fmt.Fprint(out, usage+"\n")
		set.PrintDefaults()
	}
	flags.declare(set)
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	return playTrace(flags, out)
}

func (f *replayFlags) declare(set *flag.FlagSet) {
	f.policies, f.energies = []string{"spread", "heats"}, []float64{0, 0.5, 1}
	words := func(into *[]string) func(string) error {
		return func(text string) error {
			*into = strings.Split(text, ",")
			return nil
		}
	}
	numbers := func(into *[]float64) func(string) error {
		return func(text string) error {
			*into = nil
			for _, word := range strings.Split(text, ",") {
				value, err := strconv.ParseFloat(word, 64)
				if err != nil {
					return fmt.Errorf("%q is not a number", word)
				}
				*into = append(*into, value)
			}
			return nil
		}
	}
	set.Func("trace", "`file` with recorded jobs; for format tandem several, with commas between", words(&f.traces))
	set.StringVar(&f.format, "format", "", "format of the trace: "+strings.Join(replayFormats, ", "))
	set.StringVar(&f.machines, "machines", "", "YAML `file` that describes the machines; with format alibaba, the watts of its types")
	set.StringVar(&f.nodes, "nodes", "", "alibaba: `file` with the nodes of the trace")
	set.StringVar(&f.throughputs, "throughputs", "", "gavel: `file` with the steps a second of each job")
	set.Func("policy", "what to compare, with commas between: "+strings.Join(replayPolicies, ", ")+" (default spread,heats)", words(&f.policies))
	set.Func("energy", "heats: from 0 (fast) to 1 (little energy) (default 0,0.5,1)", numbers(&f.energies))
	set.Float64Var(&f.every, "look", 600, "heats: seconds between looks at what runs; 0 moves nothing")
	set.Float64Var(&f.moveSeconds, "move-seconds", 30, "seconds in which a job does no work when it goes to another machine or is ended to go on later")
	set.Float64Var(&f.moveJoules, "move-joules", 0, "joules that this takes")
	set.Float64Var(&f.sharedTo, "share", 1, "packed, watched: how much of the time a shared GPU may be said to be busy, all jobs added up")
	set.BoolVar(&f.longestFirst, "longest-first", false, "first-fit, packed: of what waits the longest first, by what the trace says")
	set.Func("drop", "deflated: shares of the work that are left out, of priority 0, 1, ..., with commas between", numbers(&f.drop))
	set.IntVar(&f.spare, "spare", 0, "standby: GPUs that are awake beyond those that are wanted")
	set.Float64Var(&f.stretch, "stretch", 1, "how much later jobs arrive than recorded, as a factor: 0.5 for twice the load")
	set.BoolVar(&f.exchange, "exchange", false, "heats: where all machines are busy, running jobs change places with others")
	set.IntVar(&f.users, "users", 0, "deal the jobs to so many users at random, in place of those of the trace")
	set.IntVar(&f.jobs, "jobs", 0, "play only the first so many jobs; 0 for all")
	set.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	set.StringVar(&f.report, "report", "", "HTML `file` to write, with utilization over time and what ran where")
	set.BoolVar(&f.json, "json", false, "print JSON")
}

// check refuses flags that say nothing that can be played.
func (f replayFlags) check() error {
	switch {
	case len(f.traces) == 0 || f.machines == "":
		return problem.New(problem.Invalid, "give the recorded jobs with -trace FILE and the machines with -machines FILE")
	case !slices.Contains(replayFormats, f.format):
		return problem.New(problem.Invalid, "-format %q: it must be one of %s", f.format, strings.Join(replayFormats, ", "))
	case len(f.traces) > 1 && f.format != "tandem":
		return problem.New(problem.Invalid, "-trace is given %d times: only studies of yours (-format tandem) may be put together", len(f.traces))
	case f.format == "gavel" && f.throughputs == "":
		return problem.New(problem.Invalid, "-format gavel needs -throughputs FILE, with the steps a second that Gavel measured")
	case f.format == "alibaba" && f.nodes == "":
		return problem.New(problem.Invalid, "-format alibaba needs -nodes FILE, with the nodes of the trace")
	case !(f.stretch > 0):
		return problem.New(problem.Invalid, "-stretch %g: it must be above 0, such as 0.5 for twice the load", f.stretch)
	case !(f.every >= 0) || !(f.moveSeconds >= 0) || !(f.moveJoules >= 0) || !(f.sharedTo > 0) || f.jobs < 0 || f.spare < 0 || f.users < 0:
		return problem.New(problem.Invalid, "-look %g, -move-seconds %g, -move-joules %g, -share %g, -jobs %d, -spare %d, -users %d: none may be negative, and -share must be above 0", f.every, f.moveSeconds, f.moveJoules, f.sharedTo, f.jobs, f.spare, f.users)
	case f.exchange && f.every == 0:
		return problem.New(problem.Invalid, "-exchange with -look 0: jobs change places when it is looked at them; say -look 600, or leave -exchange out")
	}
	for _, energy := range f.energies {
		if !(energy >= 0 && energy <= 1) {
			return problem.New(problem.Invalid, "-energy %g: it must be from 0 (fast) to 1 (little energy)", energy)
		}
	}
	return nil
}

// policiesFor are the policies that the flags name.
func (f replayFlags) policiesFor(jobs []poolreplay.Job) ([]poolreplay.Policy, error) {
	var list []poolreplay.Policy
	for _, name := range f.policies {
		switch name {
		case "spread":
			list = append(list, policies.Spread(f.seed))
		case "anywhere":
			list = append(list, policies.Anywhere(f.seed))
		case "heats":
			for _, energy := range f.energies {
				policy := policies.Heats(policies.Recorded(jobs), energy)
				if f.exchange {
					policy = policies.HeatsExchanging(policies.Recorded(jobs), energy, f.every, placement.Settings{})
				} else if f.every > 0 {
					policy = policies.HeatsMoving(policies.Recorded(jobs), energy, f.every, placement.Settings{})
				}
				list = append(list, policy)
			}
		case "fair":
			list = append(list, policies.Fair())
		case "packed":
			list = append(list, f.ordered(policies.Packed(packed.Settings{MostUtilization: f.sharedTo})))
		case "watched":
			list = append(list, policies.Watched(packed.Settings{MostUtilization: f.sharedTo}))
		case "first-fit", "priority", "preemptive", "restarting", "deflated", "standby":
			list = append(list, f.inOrder(name))
		default:
			return nil, problem.New(problem.Invalid, "-policy %q: it must be of %s", name, strings.Join(replayPolicies, ", "))
		}
	}
	return list, nil
}

// ordered is the policy with the order that the flags say.
func (f replayFlags) ordered(policy poolreplay.Policy) poolreplay.Policy {
	if f.longestFirst {
		return policies.LongestFirst(policy)
	}
	return policy
}

// inOrder is first fit with a rule about priorities, or sleep.
func (f replayFlags) inOrder(name string) poolreplay.Policy {
	policy := policies.FirstFit()
	policy.Name = name
	if name != "first-fit" && name != "standby" {
		policy.Order = poolreplay.ByPriority
	}
	switch name {
	case "preemptive":
		policy.Preemption = poolreplay.Resumes
	case "restarting":
		policy.Preemption = poolreplay.Repeats
	case "deflated":
		policy.Drop = f.drop
	case "first-fit":
		policy = f.ordered(policy)
	case "standby":
		policy.Knob, policy.Every = policies.Standby(f.spare), 60
	}
	return policy
}

// replayAnswer is the document of `bench/pool replay -json`.
type replayAnswer struct {
	// Estimate is always true: nothing was run.
	Estimate bool                 `json:"estimate"`
	Trace    string               `json:"trace"`
	Machines int                  `json:"machines"`
	Outcomes []poolreplay.Outcome `json:"outcomes"`
	Notes    []string             `json:"notes"`
}

func playTrace(flags replayFlags, out io.Writer) error {
	if err := flags.check(); err != nil {
		return err
	}
	read, machines, err := flags.read()
	if err != nil {
		return err
	}
	policies, err := flags.policiesFor(read.Jobs)
	if err != nil {
		return err
	}
	answer := replayAnswer{Estimate: true, Trace: strings.Join(flags.traces, ", "), Machines: len(machines.Cluster.Machines), Notes: read.Notes}
	if flags.users > 0 {
		read.Deal(flags.users, flags.seed)
		answer.Notes = read.Notes
	}
	settings := poolreplay.Settings{Slowdown: read.Slowdown, Quotas: machines.Quotas, Move: placement.Prediction{Seconds: flags.moveSeconds, Joules: flags.moveJoules}, Record: flags.report != ""}
	for _, policy := range policies {
		outcome, err := poolreplay.Play(machines.Cluster, read.Jobs, policy, settings)
		if err != nil {
			return problem.New(problem.Invalid, "%s: %w", answer.Trace, err)
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	if len(answer.Outcomes) > 1 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("Energy is counted for the same %s of all policies: machines whose jobs are done go on as their policy leaves them.", format.Seconds(poolreplay.Alike(answer.Outcomes))))
	}
	if read.Guessed && (slices.Contains(flags.policies, "packed") || slices.Contains(flags.policies, "watched")) {
		answer.Notes = append(answer.Notes, fmt.Sprintf("The trace does not say how busy jobs keep a GPU, so each counts as keeping it busy all the time: with -share %g, packed and watched put at most %d on one.", flags.sharedTo, max(1, int(flags.sharedTo))))
	}
	if flags.report != "" {
		var table strings.Builder
		if err := answer.print(&table, ""); err != nil {
			return err
		}
		if err := writeReport(flags.report, answer, table.String()); err != nil {
			return err
		}
	}
	if flags.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	}
	return answer.print(out, flags.report)
}

// writeTable aligns the columns.
func writeTable(out io.Writer, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return w.Flush()
}

func (a replayAnswer) print(out io.Writer, page string) error {
	fmt.Fprintf(out, "%s on %s, in simulated time. Joules are estimates.\n\n", format.Count(a.Outcomes[0].Jobs, "job"), format.Count(a.Machines, "machine"))
	var rows [][]string
	for i, one := range a.Outcomes {
		change := "-"
		if i > 0 {
			change = fmt.Sprintf("%+.1f%%", 100*(one.Total/a.Outcomes[0].Total-1))
		}
		rows = append(rows, []string{
			one.Policy, fmt.Sprintf("%.1f kWh", one.Total/3.6e6), change, format.Seconds(one.Completion.Mean), format.Seconds(one.Completion.P95),
			format.Seconds(one.Waiting.Mean), format.Seconds(one.Makespan), fmt.Sprintf("%.1f%%", 100*one.Allocated), fmt.Sprintf("%.1f%%", 100*one.Utilization),
			fmt.Sprint(one.Migrations), fmt.Sprint(one.Evictions), fmt.Sprint(one.OutOfMemory),
		})
	}
	if err := writeTable(out, []string{"POLICY", "ENERGY", "CHANGE", "COMPLETION", "P95", "WAITED", "MAKESPAN", "GIVEN", "AT WORK", "MOVES", "ENDED", "OUT OF MEMORY"}, rows); err != nil {
		return err
	}
	if err := a.printPriorities(out); err != nil {
		return err
	}
	if err := a.printUsers(out); err != nil {
		return err
	}
	for _, one := range a.Notes {
		fmt.Fprintf(out, "\n%s\n", format.Plain(one))
	}
	if page != "" {
		info, err := os.Stat(page)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nReport written to %s (%s). It needs no network.\n", page, format.Size(info.Size()))
	}
	return nil
}

// mostUsersPrinted is how many users a policy has lines for: those with the most
// GPU time. All are in the JSON.
const mostUsersPrinted = 10

// printUsers has what each user met with, where there are several.
func (a replayAnswer) printUsers(out io.Writer) error {
	var rows [][]string
	for _, one := range a.Outcomes {
		for _, of := range one.Users[:min(len(one.Users), mostUsersPrinted)] {
			rows = append(rows, []string{one.Policy, of.User, fmt.Sprint(of.Jobs), format.Seconds(of.Completion.Mean), format.Seconds(of.Waiting.Mean), fmt.Sprintf("%.1f", of.Slowdown.Mean), fmt.Sprintf("%.1f%%", 100*of.Share), fmt.Sprintf("%.2f", one.Fairness)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return writeTable(out, []string{"POLICY", "USER", "JOBS", "COMPLETION", "WAITED", "SLOWDOWN", "SHARE", "FAIRNESS"}, rows)
}

// printPriorities has what each priority met with, where there are several.
func (a replayAnswer) printPriorities(out io.Writer) error {
	var rows [][]string
	for _, one := range a.Outcomes {
		for _, of := range one.Priorities {
			rows = append(rows, []string{one.Policy, fmt.Sprint(of.Priority), fmt.Sprint(of.Jobs), format.Seconds(of.Completion.Mean), format.Seconds(of.Completion.P95), format.Seconds(of.Waiting.Mean)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return writeTable(out, []string{"POLICY", "PRIORITY", "JOBS", "COMPLETION", "P95", "WAITED"}, rows)
}
