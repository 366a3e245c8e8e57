package show

import (
	"context"
	"fmt"
	"io"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// approximationOf is what the study's trials leave out; nil for a study that has
// nothing to do with that.
func approximationOf(ctx context.Context, client *rest.Client, view protocol.StudyView) (*protocol.StudyDeflation, error) {
	if set := view.Definition; set.Approximation == nil && set.ResponseSeconds == nil && set.Sprint == nil {
		return nil, nil
	}
	answer, err := client.Deflation(ctx, view.ID)
	return &answer, err
}

// printApproximation says what trials leave out, and how long they take.
func printApproximation(out io.Writer, d *protocol.StudyDeflation, metric string) {
	if d == nil {
		return
	}
	if d.Accepts != nil {
		fmt.Fprintf(out, "Priority %d: %s\n", d.Priority, format.Plain(d.Why))
		if d.Loss != nil {
			fmt.Fprintf(out, "       costs about %.2g of %s, at most %.2g (estimates)\n", *d.Loss, format.Plain(metric), *d.LossBound)
		}
		if d.LossMeasured != nil {
			fmt.Fprintf(out, "       cost %.2g, measured by %s with all data\n", *d.LossMeasured, format.Count(d.LossTrials, "repeated trial"))
		}
		if d.Deflated > 0 {
			fmt.Fprintf(out, "       %s left something out so far\n", format.Count(d.Deflated, "trial"))
		}
	}
	if d.Sprint != nil {
		if d.Sprint.Of > 0 {
			fmt.Fprintf(out, "Sprints: %.4g of %.4g J are left on the workers, by their owners' estimates\n", d.Sprint.Joules, d.Sprint.Of)
		} else {
			fmt.Fprintln(out, "Sprints: none, no worker that is heard of allows any (tandem worker --sprint-joules)")
		}
	}
	if d.SprintWhy != "" {
		fmt.Fprintf(out, "         %s\n", format.Plain(d.SprintWhy))
	}
	if d.LimitsWhy != "" {
		fmt.Fprintf(out, "Limits: %s\n", format.Plain(d.LimitsWhy))
	} else if d.Met != nil {
		fmt.Fprintf(out, "A trial takes %s in the mean, 95%% within %s (%s in the last hour)\n", format.Seconds(d.Met.Mean), format.Seconds(d.Met.Tail), format.Count(d.Met.Trials, "trial"))
	}
}

// DataLeftOut says what a trial has left out of its rung's data.
func DataLeftOut(d *trial.Deflation) string {
	text := fmt.Sprintf("Left out: %.3g%% of the rung's data", 100*d.Drop)
	if d.Loss != nil {
		text += fmt.Sprintf(", about %.2g of the first objective (an estimate)", *d.Loss)
	}
	return text
}
