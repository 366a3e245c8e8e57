package launchcmd

import (
	"context"
	"errors"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// waits is how long a job may wait for the engine with one enrolment; halfway it gets
// another one.
const waits = 24 * time.Hour

// launch orders workers, each of which finds a token of its own. What the engine does not
// take is over once it is clear that it does not list it either.
func (l *loop) launch(ctx context.Context, order launcher.Order) error {
	var launches []string
	for i := range order.Count {
		launches = append(launches, order.Launch(i))
	}
	if err := l.enrol(ctx, launches, order.Shape.TimeLimit); err != nil {
		return err
	}
	err := l.engine.Launch(ctx, order)
	l.planner.Answered(time.Now(), order, err)
	return err
}

// enrol has the server make tokens for launches, and keeps them for their workers.
func (l *loop) enrol(ctx context.Context, launches []string, limit time.Duration) error {
	if l.enrolments == "" || len(launches) == 0 {
		return nil
	}
	made, err := l.client.Enrol(ctx, crew.EnrolmentRequest{Launches: launches, TTLSeconds: (waits + limit).Seconds()})
	for _, one := range made {
		err = errors.Join(err, l.enrolments.Keep(one.Launch, one.Token))
	}
	return err
}

// tend drops the tokens of launches that have registered or ended, and makes new ones for
// those that have waited for long.
func (l *loop) tend(ctx context.Context, jobs []launcher.Job, workers map[string]string) error {
	if l.enrolments == "" || l.dryRun {
		return nil
	}
	kept, failed := l.enrolments.Kept()
	now, byLaunch := time.Now(), map[string]launcher.Job{}
	for _, job := range jobs {
		byLaunch[job.Launch] = job
	}
	limits := map[string]time.Duration{}
	for _, shape := range l.planner.Shapes {
		limits[shape.Name] = shape.TimeLimit
	}
	for launch, at := range kept {
		job := byLaunch[launch]
		_, registered := workers[launch]
		switch {
		case registered, l.planner.Over(launch), now.Sub(at) > waits:
			failed = errors.Join(failed, l.enrolments.Drop(launch))
		case job.State == launcher.Pending && now.Sub(at) > waits/2:
			failed = errors.Join(failed, l.enrol(ctx, []string{launch}, limits[job.Shape]))
		}
	}
	return failed
}
