// Package loop is what a launcher does at each look: it asks the server what is wanted and
// the engine what there is, keeps what it is about to do, does it, and tells the server.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Server is what a launcher asks and tells its server. rest.Client is one.
type Server interface {
	PoolWanted(ctx context.Context) (crew.PoolWanted, error)
	Enrol(ctx context.Context, ask crew.EnrolmentRequest) ([]crew.Enrolment, error)
	Gone(ctx context.Context, worker string, told protocol.Gone) (protocol.GoneReply, error)
	ReportLauncher(ctx context.Context, launcher string, report crew.LauncherReport) (crew.LauncherReply, error)
}

// Loop looks at server and engine, and does what the planner says.
type Loop struct {
	Server Server
	Engine launcher.Engine
	// Enrolments are the tokens of launches; empty: their workers have another.
	Enrolments engine.Enrolments
	Planner    *launcher.Planner
	// Kept is where the planner's memory is; nil: nothing is kept, as nothing is done.
	Kept *engine.MemoryFile
	// Name is the launcher's, Of the name of its engine. It looks so often; 0: once.
	Name, Of string
	Every    time.Duration
	DryRun   bool
	Out      io.Writer
	// wanted is how many trials each study wanted at the last look.
	wanted map[string]int
	// said is what was said last of each job or subject: only news are said.
	said map[string]string
}

// Say tells something unless it was the last thing that was told of the subject.
func (l *Loop) Say(subject, text string, arguments ...any) {
	said := format.Plain(fmt.Sprintf(text, arguments...))
	if l.said == nil {
		l.said = map[string]string{}
	}
	if l.said[subject] != said {
		l.said[subject] = said
		fmt.Fprintf(l.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), said)
	}
}

// Forget lets what was said last of a subject be said again.
func (l *Loop) Forget(subject string) { delete(l.said, subject) }

// Tick looks once and acts. What is about to be done is kept before, and what became of
// it is kept before the server is told.
func (l *Loop) Tick(ctx context.Context) error {
	seen, workers, err := l.look(ctx)
	if err != nil {
		return errors.Join(err, l.report(ctx, nil, err))
	}
	l.tellJobs(seen.Jobs)
	plan := l.Planner.Plan(time.Now(), seen)
	if err := l.keep(); err != nil {
		return err
	}
	failed := errors.Join(l.tellServer(ctx, workers), l.tend(ctx, seen.Jobs, workers))
	notes := map[string]bool{}
	for _, note := range plan.Notes {
		l.Say("note "+note.Says, "%s", note.Says)
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

// asks is how often the server alone is asked between two looks.
const asks = 500 * time.Millisecond

// Wait returns when it is time for the next look: after Every, or as soon as a study wants
// more trials than at the last one. The engine is not asked: that costs its site something.
func (l *Loop) Wait(ctx context.Context) {
	next := time.After(l.Every)
	for {
		select {
		case <-ctx.Done():
			return
		case <-next:
			return
		case <-time.After(asks):
		}
		now, err := l.Server.PoolWanted(ctx)
		if err == nil && slices.ContainsFunc(now.Studies, func(one crew.WantedStudy) bool { return one.Trials > l.wanted[one.StudyID] }) {
			return
		} // the next look says what is wrong
	}
}

// place gives an order to the engine. If it fails, other shapes may be had.
func (l *Loop) place(ctx context.Context, order launcher.Order) error {
	what := fmt.Sprintf("%s of the shape %s", format.Count(order.Count, "worker"), order.Shape.Name)
	if l.DryRun {
		l.Say(order.ID, "would start %s", what)
		return nil
	}
	if err := l.launch(ctx, order); err != nil {
		return fmt.Errorf("%s could not be started: %w", what, err)
	}
	l.Say(order.ID, "started %s (order %s)", what, order.ID)
	return nil
}

// takeBack cancels what is not wanted.
func (l *Loop) takeBack(ctx context.Context, plan launcher.Plan) error {
	if len(plan.Cancel) == 0 {
		return nil
	}
	if l.DryRun {
		l.Say("cancel", "would take back %s that is not wanted any more", format.Count(len(plan.Cancel), "worker"))
		return nil
	}
	if err := l.Engine.Cancel(ctx, plan.Cancel); err != nil {
		return err
	}
	l.Say(plan.Cancel[0], "took back %s: not wanted any more", format.Count(len(plan.Cancel), "worker"))
	return nil
}

// keep writes down what must not be forgotten.
func (l *Loop) keep() error {
	if l.Kept == nil {
		return nil
	}
	return l.Kept.Write(l.Planner.Memory)
}

// report tells the server all that is known, and hears what is asked for.
func (l *Loop) report(ctx context.Context, notes []crew.LaunchNote, trouble error) error {
	if l.Kept == nil || l.Planner.Memory == nil {
		return nil
	}
	now := time.Now()
	report := l.Planner.Report(now, notes, trouble)
	report.Engine, report.EverySeconds = l.Of, l.Every.Seconds()
	reply, err := l.Server.ReportLauncher(ctx, l.Name, report)
	if err != nil {
		return fmt.Errorf("the server was not told what is started: %w", err)
	}
	l.Planner.Told(report.Over)
	for _, shape := range reply.TryAgain {
		l.Planner.TryAgain(now, shape)
		l.Say("again "+shape, "somebody asked to try the shape %s again", shape)
	}
	return l.keep()
}

// look is what there is at the moment, with the ids of the workers by their launches.
func (l *Loop) look(ctx context.Context) (seen launcher.Seen, ids map[string]string, err error) {
	wanted, err := l.Server.PoolWanted(ctx)
	if err != nil {
		return seen, nil, err
	}
	if wanted.User != "" {
		l.Say("user", "its workers run the trials of user %s alone; with a token of --name '*' those of all", wanted.User)
	}
	l.wanted = map[string]int{}
	for _, one := range wanted.Studies {
		l.wanted[one.StudyID] = one.Trials
		seen.Wants = append(seen.Wants, launcher.Want{Study: one.Study, StudyID: one.StudyID, Trials: one.Trials, GPUs: one.GPUs, Cores: one.Cores, MemoryGiB: float64(one.MemoryBytes) / (1 << 30), Recipient: one.Recipient, Selector: one.Selector})
	}
	ids = map[string]string{}
	seen.Workers = []launcher.Worker{{Slots: wanted.Free}}
	for _, one := range wanted.Workers {
		ids[one.Launch] = one.ID
		if one.Slots > 0 {
			seen.Workers = append(seen.Workers, launcher.Worker{Launch: one.Launch, Trials: one.Trials, Slots: one.Slots})
		}
	}
	seen.Jobs, err = l.Engine.List(ctx)
	return seen, ids, err
}

// tellServer says which workers are gone that did not take leave: their trials go on
// elsewhere at once, not only when the leases run out. The engine was asked after the
// server, so one that has just left is not known any more.
func (l *Loop) tellServer(ctx context.Context, workers map[string]string) (failed error) {
	for _, launch := range slices.Sorted(maps.Keys(workers)) {
		job, over := l.Planner.Ended(launch)
		if !over || l.DryRun || l.said["gone "+launch] != "" {
			continue
		}
		worker := workers[launch]
		held, err := l.Server.Gone(ctx, worker, protocol.Gone{Launch: job.Launch, Cause: cmp.Or(job.Cause, protocol.Crashed), Why: job.Why[:min(len(job.Why), mostOfWhy)]})
		switch {
		case problem.Is(err, problem.NotFound): // it left, or is another user's
			l.said["gone "+job.Launch] = "not ours"
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("worker %s is gone, and the server was not told: %w", job.ID, err))
		default:
			l.Say("gone "+job.Launch, "worker %s is gone: %s; %s", job.ID, job.Why, waiting(len(held.Trials)))
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
func (l *Loop) tellJobs(jobs []launcher.Job) {
	waiting := map[string]int{}
	for _, job := range jobs {
		switch {
		case job.State == launcher.Pending:
			waiting[job.Shape+": "+job.Why]++
		case job.State == launcher.Ended && (job.Failed() || job.Blameless()):
			l.Say("job "+job.ID, "worker %s of the shape %s: %s", job.ID, job.Shape, job.Why)
		}
	}
	text := ""
	for _, why := range slices.Sorted(maps.Keys(waiting)) {
		text += fmt.Sprintf("; %s of the shape %s", format.Count(waiting[why], "worker"), why)
	}
	if text != "" {
		l.Say("waiting", "%s", text[2:])
	}
}
