package edgecmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/batching"
)

func (a batchAnswer) print(out io.Writer) error {
	fmt.Fprintf(out, "Load: %s; objective: %s", a.Load, a.Objective)
	if a.Bound > 0 {
		fmt.Fprintf(out, ", 99th percentile within %s", shownMilliseconds(a.Bound))
	}
	fmt.Fprintf(out, "\nMost any policy sustains: %.6g samples/s\n", a.Capacity)
	if len(a.Pooled) > 0 {
		fmt.Fprintf(out, "Batches %s were measured slower than larger ones; they were averaged with their neighbours.\n", strings.Trim(fmt.Sprint(a.Pooled), "[]"))
	}
	var err error
	if a.Query != nil {
		err = printSplit(out, *a.Query)
	} else {
		err = a.printChoice(out)
	}
	fmt.Fprintln(out, "All times are estimates, simulated from the curve.")
	return err
}

func shownMilliseconds(seconds float64) string { return fmt.Sprintf("%.4g ms", seconds*1000) }

func shownEstimate(estimate batching.Estimate) string {
	if estimate.HalfWidth == 0 {
		return shownMilliseconds(estimate.Value)
	}
	return fmt.Sprintf("%s ± %.2g", shownMilliseconds(estimate.Value), estimate.HalfWidth*1000)
}

// printChoice is the policy for single samples, and what it is compared with.
func (a batchAnswer) printChoice(out io.Writer) error {
	policy := a.Choice.Result.Policy
	wait := fmt.Sprintf("wait_seconds=%.4g", policy.WaitSeconds)
	if policy.UntilFull {
		wait = "wait until the batch is full"
	}
	fmt.Fprintf(out, "Chosen: max_batch=%d %s (%s; policies compared: %d)\n", policy.MaxBatch, wait, policy, a.Choice.Tried)
	fmt.Fprintf(out, "Why: %s\n", a.Choice.Why)
	heading := []string{"POLICY", "MEAN", "P50", "P90", "P99", "P99.9", "BUSY", "MEAN BATCH", "SUSTAINS UP TO"}
	joules := a.Choice.Result.JoulesPerSample > 0
	if joules {
		heading = append(heading, "JOULES/SAMPLE")
	}
	var rows [][]string
	for _, one := range a.Compared {
		row := []string{one.Name, "overloaded", "-", "-", "-", "-", "-", "-", fmt.Sprintf("%.5g/s", one.SustainsPerSecond)}
		if !one.Overloaded {
			row = []string{one.Name, shownEstimate(one.Mean), shownMilliseconds(one.P50.Value), shownMilliseconds(one.P90.Value), shownEstimate(one.P99), shownMilliseconds(one.P999.Value),
				fmt.Sprintf("%.0f%%", one.Utilization*100), fmt.Sprintf("%.3g", one.MeanBatch), fmt.Sprintf("%.5g/s", one.SustainsPerSecond)}
		}
		if joules {
			row = append(row, fmt.Sprintf("%.4g", one.JoulesPerSample))
		}
		rows = append(rows, row)
	}
	return term.Table(out, heading, rows)
}

// printSplit is the division of a query.
func printSplit(out io.Writer, choice batching.SplitChoice) error {
	fmt.Fprintf(out, "Chosen: split each query into %s\n", choice.Best)
	if choice.Best.KeepsUp {
		fmt.Fprintf(out, "The shortest period for such queries is %s.\n", shownMilliseconds(choice.ShortestPeriod))
	} else {
		fmt.Fprintf(out, "No split keeps up: such a query takes at least %s.\n", shownMilliseconds(choice.ShortestPeriod))
	}
	heading := []string{"SPLIT", "MEAN OF SAMPLES", "P99 OF SAMPLES", "LAST SAMPLE", "KEEPS UP"}
	joules := choice.Best.JoulesPerSample > 0
	if joules {
		heading = append(heading, "JOULES/SAMPLE")
	}
	var rows [][]string
	for i, split := range []batching.Split{choice.Best, choice.Single, choice.Whole} {
		row := []string{[]string{"chosen: ", "one by one: ", "largest batches: "}[i] + split.String(), shownMilliseconds(split.Mean), shownMilliseconds(split.P99), shownMilliseconds(split.Last), "yes"}
		if !split.KeepsUp {
			row[4] = "no"
		}
		if joules {
			row = append(row, fmt.Sprintf("%.4g", split.JoulesPerSample))
		}
		rows = append(rows, row)
	}
	return term.Table(out, heading, rows)
}
