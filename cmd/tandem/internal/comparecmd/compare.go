// Package comparecmd is "tandem study compare": what several studies of one metric found,
// what that took, and which differences are more than chance.
package comparecmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// comparison is the answer.
type comparison struct {
	Metric    string               `json:"metric"`
	Direction definition.Direction `json:"direction"`
	Target    *target              `json:"target,omitempty"`
	Studies   []compared           `json:"studies"`
	// Differences are those of the others to the first study.
	Differences []difference `json:"differences"`
	Notes       []string     `json:"notes"`
}

// target is the value that each study is to have reached.
type target struct {
	Value trial.Float `json:"value"`
	From  string      `json:"from"`
}

// compared is one study.
type compared struct {
	Study    string               `json:"study"`
	ID       string               `json:"id"`
	Status   protocol.StudyStatus `json:"status"`
	Best     *protocol.Best       `json:"best,omitempty"`
	Measured int                  `json:"measured"`
	Failed   int                  `json:"failed"`
	spent
	// Reached is when it first had the target; nil: it has not.
	Reached *reached `json:"reached,omitempty"`

	// repeats are the values of the best trial's repeats, without that trial's own.
	repeats []float64
}

// spent is what a study took, of its own clock and of energy.
type spent struct {
	Seconds trial.Float  `json:"seconds"`
	Energy  trial.Energy `json:"energy"`
}

// reached is what had been spent when a trial had the target.
type reached struct {
	Trial int `json:"trial"`
	spent
}

// difference is how much larger a study's best value is than the first study's.
type difference struct {
	Study string      `json:"study"`
	To    string      `json:"to"`
	Value trial.Float `json:"value"`
	// Low and High bound it with 95% for all differences at once; nil where nothing is
	// known of chance.
	Low   *trial.Float `json:"low,omitempty"`
	High  *trial.Float `json:"high,omitempty"`
	Pairs int          `json:"pairs,omitempty"`
	// Verdict is better, worse, "no difference" or unknown.
	Verdict string `json:"verdict"`
	Said    string `json:"said"`
}

// Command is "tandem study compare".
func Command(flags *term.Flags) *cobra.Command {
	wanted := math.NaN()
	command := &cobra.Command{
		Use:   "compare STUDY STUDY ...",
		Short: "Compare studies of one metric: what they found, and what it took",
		Long: `Compare studies of one metric: the best value of each, its trials, time and energy, and
what it had spent when a trial first reached the target.

The target is --target, else that of the studies' objective if they have the same one, else
95% of the best value of all. Whether the others differ from the first study is told by the
repeats of their best trials (search.repeats) only, with a 95% interval for all differences
at once. If it includes zero, there is no difference. Without repeats nothing is known.`,
		Example: `  tandem study compare lenet-bohb lenet-random
  tandem study compare lenet-bohb lenet-random lenet-grid --target 0.9
  tandem study compare lenet-bohb lenet-random --json | jq '.differences[].verdict'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return term.Misuse("compare takes the names or the ids of two studies or more, such as 'tandem study compare lenet-bohb lenet-random'")
			}
			return nil
		},
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			var histories []history
			for _, ref := range args {
				one, err := read(ctx, client, ref)
				if err != nil {
					return err
				}
				histories = append(histories, one)
			}
			if err := alike(histories); err != nil {
				return err
			}
			return term.PrintAnswer(out, flags.JSON, compare(histories, wanted), print)
		}),
	}
	command.Flags().Float64Var(&wanted, "target", math.NaN(), "the value that each study is to have reached")
	command.Flags().Lookup("target").DefValue = "0" // shows none
	return command
}

// alike refuses studies that do not compare.
func alike(histories []history) error {
	first := histories[0]
	for i, one := range histories {
		name, objectives := format.Plain(one.label), one.Study.Definition.Objectives
		if len(objectives) != 1 {
			return term.Misuse("study %s has %d objectives: compare takes studies of one", name, len(objectives))
		}
		if a, b := objectives[0], first.Study.Definition.Objectives[0]; a.Label() != b.Label() || a.Direction != b.Direction || a.Expression != b.Expression {
			return term.Misuse("the studies do not compare: %s has the objective %s %s, %s has %s %s", format.Plain(first.label), b.Direction, format.Plain(b.Label()), name, a.Direction, format.Plain(a.Label()))
		}
		for _, other := range histories[:i] {
			if other.Study.ID == one.Study.ID {
				return term.Misuse("study %s is named twice", name)
			}
		}
	}
	return nil
}

// compare makes the answer; wanted is the target, NaN where none was given.
func compare(histories []history, wanted float64) comparison {
	objective := histories[0].Study.Definition.Objectives[0]
	answer := comparison{Metric: objective.Label(), Direction: objective.Direction, Differences: []difference{}, Notes: []string{}}
	answer.Target = aim(histories, wanted)
	for _, one := range histories {
		answer.Studies = append(answer.Studies, one.compared(answer.Target))
	}
	first := answer.Studies[0]
	for _, one := range answer.Studies[1:] {
		answer.Differences = append(answer.Differences, one.against(first, answer, len(histories)-1))
	}
	answer.note(histories)
	return answer
}

// note says how far the numbers can be trusted.
func (c *comparison) note(histories []history) {
	c.Notes = append(c.Notes, "each study ran once: how much of a difference in time or energy is chance cannot be told")
	for i, one := range c.Studies {
		if first := c.Studies[0]; first.Best != nil && one.Best != nil && first.Best.Budget != one.Best.Budget {
			c.Notes = append(c.Notes, fmt.Sprintf("the best of %s had another budget than that of %s (%s, not %s)", one.Study, first.Study, format.Budget(one.Best.Budget), format.Budget(first.Best.Budget)))
		}
		if one.Best != nil && one.Best.Violation > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("the best of %s misses the study's constraints", one.Study))
		}
		if !one.Status.Over() {
			c.Notes = append(c.Notes, fmt.Sprintf("%s is %s: its numbers are those of now", one.Study, one.Status))
		}
		if away := float64(histories[i].counted() - one.Seconds); one.Reached != nil && away > 1 {
			c.Notes = append(c.Notes, fmt.Sprintf("the time of %s to the target may be up to %s shorter: no server ran for so long, then or later", one.Study, format.Seconds(away)))
		}
	}
}

// aim is the target: the one that is wanted, the one that all studies have, or 95% of the
// best value; nil where none has a value.
func aim(histories []history, wanted float64) *target {
	if !math.IsNaN(wanted) {
		return &target{trial.Float(wanted), "--target"}
	}
	objective := histories[0].Study.Definition.Objectives[0]
	if objective.Target != nil && !slices.ContainsFunc(histories, func(h history) bool {
		own := h.Study.Definition.Objectives[0].Target
		return own == nil || *own != *objective.Target
	}) {
		return &target{trial.Float(*objective.Target), "the studies' own"}
	}
	best := math.NaN()
	for _, one := range histories {
		if found := one.Study.Progress.Best; found != nil && found.Violation == 0 && (math.IsNaN(best) || better(objective.Direction, float64(found.Value), best)) {
			best = float64(found.Value)
		}
	}
	if math.IsNaN(best) {
		return nil
	}
	short := 0.05 * math.Abs(best)
	if objective.Direction == definition.Maximize {
		short = -short
	}
	return &target{trial.Float(best + short), fmt.Sprintf("within 5%% of %s, the best value of all", format.Number(trial.Float(best)))}
}

func better(direction definition.Direction, a, b float64) bool {
	if direction == definition.Maximize {
		return a > b
	}
	return a < b
}

// against compares the best of the study with that of the first one.
func (c compared) against(first compared, of comparison, comparisons int) difference {
	d := difference{Study: c.Study, To: first.Study, Verdict: "unknown"}
	lead := fmt.Sprintf("%s against %s: ", c.Study, first.Study)
	for _, one := range []compared{c, first} {
		if one.Best == nil {
			d.Value, d.Said = trial.Float(math.NaN()), lead+"not compared, as no trial of "+one.Study+" was measured"
			return d
		}
	}
	tested := regression.Compare(c.repeats, first.repeats, comparisons, 1)
	d.Value = c.Best.Value - first.Best.Value
	switch {
	case tested.Pairs < 2:
		d.Said = fmt.Sprintf("%s%s %+.4g; whether that is chance is unknown: it takes two repeats of the best trial of each (search.repeats)", lead, of.Metric, float64(d.Value))
		return d
	case constant(c.repeats) || constant(first.repeats):
		d.Said = fmt.Sprintf("%s%s %+.4g; whether that is chance is unknown: repeats of one best trial all came to the same value, as if the command did not use its seed", lead, of.Metric, float64(d.Value))
		return d
	}
	if slices.Equal(c.repeats[:tested.Pairs], first.repeats[:tested.Pairs]) {
		d.Value, d.Pairs, d.Verdict = 0, tested.Pairs, "no difference"
		d.Said = fmt.Sprintf("%sno difference in %s: %d repeats of each came to the same values", lead, of.Metric, tested.Pairs)
		return d
	}
	low, high := trial.Float(tested.Low), trial.Float(tested.High)
	d.Value, d.Low, d.High, d.Pairs = trial.Float(tested.Difference), &low, &high, tested.Pairs
	interval := fmt.Sprintf("%+.4g (95%% interval %+.4g to %+.4g, from %d repeats of each)", tested.Difference, tested.Low, tested.High, tested.Pairs)
	switch {
	case !tested.Separated():
		d.Verdict, d.Said = "no difference", fmt.Sprintf("%sno difference in %s: %s", lead, of.Metric, interval)
		return d
	case better(of.Direction, tested.Difference, 0):
		d.Verdict = "better"
	default:
		d.Verdict = "worse"
	}
	d.Said = fmt.Sprintf("%s%s, %s %s", lead, d.Verdict, of.Metric, interval)
	return d
}

// constant reports whether all values are the same one.
func constant(values []float64) bool { return slices.Min(values) == slices.Max(values) }
