package show

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// linesEvery is how often a line is printed where there is no terminal and
// nothing new happened.
const linesEvery = 15 * time.Second

// watchEvery is how often progress is asked for, and shown on a terminal.
const watchEvery = time.Second

// Watch shows a study's progress until it is over, and returns its last view.
func Watch(ctx context.Context, client *rest.Client, study string, out io.Writer) (protocol.StudyView, error) {
	display, failures := newDisplay(out), 0
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		view, err := client.Study(ctx, study)
		if err != nil {
			display.End()
			return view, err
		}
		if count := view.Progress.Trials[trial.Failed]; count > failures {
			failures = count
			display.failed(newestFailure(ctx, client, view.ID))
		}
		display.show(view)
		if view.Status.Over() {
			display.End()
			return view, nil
		}
		select {
		case <-ctx.Done():
			display.End()
			return view, ctx.Err()
		case <-ticker.C:
		}
	}
}

// display prints progress: one line that changes on a terminal, a line for
// each news elsewhere.
type display struct {
	term.Line
	news    string
	printed time.Time
	// waits is why the study waited at the last look, told is what of that was said.
	waits, told string
	// failures are the reasons of failed trials that were said.
	failures []string
}

func newDisplay(out io.Writer) *display {
	return &display{Line: term.NewLine(out)}
}

func (d *display) show(view protocol.StudyView) {
	d.tell(whyIdle(view))
	progress := progressLine(view)
	if d.Redraws() {
		if part, known := partDone(view.Progress); known {
			progress = term.Bar(part) + " " + progress
		}
		d.Draw(progress)
		return
	}
	news := fmt.Sprint(view.Status, Best(view))
	if news == d.news && time.Since(d.printed) < linesEvery {
		return
	}
	d.news, d.printed = news, time.Now()
	fmt.Fprintln(d.Out, progress)
}

// tell says once why nothing of the study runs, if that is so at two looks: between
// two trials it is nothing to tell.
func (d *display) tell(waits string) {
	if waits != "" && waits == d.waits && waits != d.told {
		d.Clear()
		fmt.Fprintln(d.Out, "Waits: "+waits)
		d.told = waits
	}
	d.waits = waits
}

// failed says why a trial failed or was lost: each reason once, and a few of them, since a script
// that names its parameters in an error never says the same twice.
func (d *display) failed(t *protocol.RankedTrial) {
	const most = 3
	if t == nil || len(d.failures) == most || slices.Contains(d.failures, t.Reason) {
		return
	}
	d.failures = append(d.failures, t.Reason)
	d.Clear()
	fmt.Fprintln(d.Out, Failure(*t))
	if len(d.failures) == most {
		fmt.Fprintln(d.Out, "What further trials fail of stands on the study's page.")
	}
}

// whyIdle is why a study runs nothing; empty: it runs something, or nothing is in
// its way.
func whyIdle(view protocol.StudyView) string {
	for state, count := range view.Progress.Trials {
		if count > 0 && state.Held() {
			return ""
		}
	}
	var reasons []string
	for _, wait := range view.Waits {
		reasons = append(reasons, format.Plain(wait.Reason))
	}
	return strings.Join(reasons, "; ")
}

// partDone is the part of the study's time that is behind it, an estimate.
func partDone(p protocol.Progress) (part float64, known bool) {
	if p.RemainingSeconds == nil || p.ElapsedSeconds+*p.RemainingSeconds <= 0 {
		return 0, false
	}
	return p.ElapsedSeconds / (p.ElapsedSeconds + *p.RemainingSeconds), true
}

// progressLine is a study's state in one line, the most important first.
func progressLine(view protocol.StudyView) string {
	p := view.Progress
	parts := []string{fmt.Sprintf("%s  %s", format.Seconds(p.ElapsedSeconds), Best(view))}
	if view.Status != protocol.StudyRunning {
		parts[0] = string(view.Status) + "  " + parts[0]
	}
	trials := format.States(p.Trials, p.Retried)
	if p.MaxTrials > 0 {
		trials += fmt.Sprintf(" (%d of %d started)", p.Created, p.MaxTrials)
	}
	parts = append(parts, trials, fmt.Sprintf("%s, %.1f data passes", format.Count(p.Epochs, "epoch"), p.DataPasses))
	if p.Energy.Method != "" {
		parts = append(parts, format.Energy(p.Energy))
	}
	if p.RemainingSeconds != nil {
		parts = append(parts, "about "+format.Seconds(*p.RemainingSeconds)+" left")
	}
	return strings.Join(parts, " | ")
}
