package launchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// loop looks at server and engine, and does what the planner says.
type loop struct {
	client *rest.Client
	engine launcher.Engine
	// enrolments are the tokens of launches; empty: their workers have another.
	enrolments engine.Enrolments
	planner    *launcher.Planner
	// kept is where the planner's memory is; nil: nothing is kept, as nothing is done.
	kept *engine.MemoryFile
	// name is the launcher's, of the engine of that name, and it looks so often.
	name, of string
	every    time.Duration
	dryRun   bool
	out      io.Writer
	// said is what was said last of each job or subject: only news are said.
	said map[string]string
}

// run works until the context ends. What does not answer is asked again.
func (l *loop) run(ctx context.Context) error {
	l.say("start", "looking every %v; Ctrl-C ends this and leaves the workers", l.every)
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		err := l.tick(ctx)
		code := term.ExitCode(ctx, err)
		if ctx.Err() == nil && err != nil {
			l.say("trouble", "%v; trying again", err)
			if code == term.ExitUsage {
				return err
			}
		} else {
			delete(l.said, "trouble")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// say tells something unless it was the last thing that was told of the subject.
func (l *loop) say(subject, text string, arguments ...any) {
	said := format.Plain(fmt.Sprintf(text, arguments...))
	if l.said[subject] != said {
		l.said[subject] = said
		fmt.Fprintf(l.out, "%s  %s\n", time.Now().Format(time.TimeOnly), said)
	}
}

// tick looks once and acts. What is about to be done is kept before, and what became of
// it is kept before the server is told.
func (l *loop) tick(ctx context.Context) error {
	seen, workers, err := l.look(ctx)
	if err != nil {
		return errors.Join(err, l.report(ctx, nil, err))
	}
	l.tellJobs(seen.Jobs)
	plan := l.planner.Plan(time.Now(), seen)
	if err := l.keep(); err != nil {
		return err
	}
	failed := errors.Join(l.tellServer(ctx, seen.Jobs, workers), l.tend(ctx, seen.Jobs, workers))
	notes := map[string]bool{}
	for _, note := range plan.Notes {
		l.say("note "+note.Says, "%s", note.Says)
		notes["note "+note.Says] = true
	}
	maps.DeleteFunc(l.said, func(subject, _ string) bool { return len(subject) > 5 && subject[:5] == "note " && !notes[subject] })
	for _, order := range plan.Orders {
		failed = errors.Join(failed, l.place(ctx, order))
	}
	failed = errors.Join(failed, l.takeBack(ctx, plan))
	if err := l.keep(); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, l.report(ctx, plan.Notes, nil))
}

// place gives an order to the engine. If it fails, other shapes may be had.
func (l *loop) place(ctx context.Context, order launcher.Order) error {
	what := fmt.Sprintf("%s of the shape %s", format.Count(order.Count, "worker"), order.Shape.Name)
	if l.dryRun {
		l.say(order.ID, "would start %s", what)
		return nil
	}
	if err := l.launch(ctx, order); err != nil {
		return fmt.Errorf("%s could not be started: %w", what, err)
	}
	l.say(order.ID, "started %s (order %s)", what, order.ID)
	return nil
}

// takeBack cancels what is not wanted.
func (l *loop) takeBack(ctx context.Context, plan launcher.Plan) error {
	if len(plan.Cancel) == 0 {
		return nil
	}
	if l.dryRun {
		l.say("cancel", "would take back %s that is not wanted any more", format.Count(len(plan.Cancel), "worker"))
		return nil
	}
	if err := l.engine.Cancel(ctx, plan.Cancel); err != nil {
		return err
	}
	l.say(plan.Cancel[0], "took back %s: not wanted any more", format.Count(len(plan.Cancel), "worker"))
	return nil
}

// keep writes down what must not be forgotten.
func (l *loop) keep() error {
	if l.kept == nil {
		return nil
	}
	return l.kept.Write(l.planner.Memory)
}

// report tells the server all that is known, and hears what is asked for.
func (l *loop) report(ctx context.Context, notes []crew.LaunchNote, trouble error) error {
	if l.kept == nil || l.planner.Memory == nil {
		return nil
	}
	now := time.Now()
	report := l.planner.Report(now, notes, trouble)
	report.Engine, report.EverySeconds = l.of, l.every.Seconds()
	reply, err := l.client.ReportLauncher(ctx, l.name, report)
	if err != nil {
		return fmt.Errorf("the server was not told what is started: %w", err)
	}
	l.planner.Told(report.Over)
	for _, shape := range reply.TryAgain {
		l.planner.TryAgain(now, shape)
		l.say("again "+shape, "somebody asked to try the shape %s again", shape)
	}
	return l.keep()
}

// look is what there is at the moment, with the ids of the workers by their launches.
func (l *loop) look(ctx context.Context) (seen launcher.Seen, ids map[string]string, err error) {
	wanted, err := l.client.PoolWanted(ctx)
	if err != nil {
		return seen, nil, err
	}
	for _, one := range wanted.Studies {
		seen.Wants = append(seen.Wants, launcher.Want{Study: one.Study, StudyID: one.StudyID, Trials: one.Trials, GPUs: one.GPUs, Cores: one.Cores, MemoryGiB: float64(one.MemoryBytes) / (1 << 30)})
	}
	ids = map[string]string{}
	seen.Workers = []launcher.Worker{{Slots: wanted.Free}}
	for _, one := range wanted.Workers {
		ids[one.Launch] = one.ID
		if one.Slots > 0 {
			seen.Workers = append(seen.Workers, launcher.Worker{Launch: one.Launch, Trials: one.Trials, Slots: one.Slots})
		}
	}
	seen.Jobs, err = l.engine.List(ctx)
	return seen, ids, err
}

// tellServer says which workers are gone that did not take leave: their trials go on
// elsewhere at once, not only when the leases run out. The engine was asked after the
// server, so one that has just left is not known any more.
func (l *loop) tellServer(ctx context.Context, jobs []launcher.Job, workers map[string]string) (failed error) {
	for _, job := range jobs {
		worker, known := workers[job.Launch]
		if job.State != launcher.Ended || !known || l.dryRun || l.said["gone "+job.Launch] != "" {
			continue
		}
		held, err := l.client.Gone(ctx, worker, protocol.Gone{Launch: job.Launch, Cause: job.Cause, Why: job.Why[:min(len(job.Why), mostOfWhy)]})
		switch {
		case problem.Is(err, problem.NotFound): // it left, or is another user's
			l.said["gone "+job.Launch] = "not ours"
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("worker %s is gone, and the server was not told: %w", job.ID, err))
		default:
			l.say("gone "+job.Launch, "worker %s is gone: %s; %s", job.ID, job.Why, waiting(len(held.Trials)))
		}
	}
	return failed
}

const mostOfWhy = 512 // as the server takes

func waiting(trials int) string {
	if trials == 0 {
		return "it had no trial"
	}
	return format.Count(trials, "trial") + " of it waits for others"
}

// tellJobs says what became of the jobs: why they wait, together for those that wait
// for the same, and how those ended that did not in order.
func (l *loop) tellJobs(jobs []launcher.Job) {
	waiting := map[string]int{}
	for _, job := range jobs {
		switch {
		case job.State == launcher.Pending:
			waiting[job.Shape+": "+job.Why]++
		case job.State == launcher.Ended && (job.Failed() || job.Blameless()):
			l.say("job "+job.ID, "worker %s of the shape %s: %s", job.ID, job.Shape, job.Why)
		}
	}
	text := ""
	for _, why := range slices.Sorted(maps.Keys(waiting)) {
		text += fmt.Sprintf("; %s of the shape %s", format.Count(waiting[why], "worker"), why)
	}
	if text != "" {
		l.say("waiting", "%s", text[2:])
	}
}
