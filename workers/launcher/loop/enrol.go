package loop

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
func (l *Loop) launch(ctx context.Context, order launcher.Order) error {
	var launches []string
	for i := range order.Count {
		launches = append(launches, order.Launch(i))
	}
	if err := l.enrol(ctx, launches, order.Shape.TimeLimit); err != nil {
		return err
	}
	err := l.Engine.Launch(ctx, order)
	l.Planner.Answered(time.Now(), order, err)
	return err
}

// enrol has the server make tokens for launches, and keeps them for their workers.
func (l *Loop) enrol(ctx context.Context, launches []string, limit time.Duration) error {
	if l.Enrolments == "" || len(launches) == 0 {
		return nil
	}
	made, err := l.Server.Enrol(ctx, crew.EnrolmentRequest{Launches: launches, TTLSeconds: (waits + limit).Seconds()})
	for _, one := range made {
		err = errors.Join(err, l.Enrolments.Keep(one.Launch, one.Token))
	}
	return err
}

// tend drops the tokens of launches that have registered or ended, and makes new ones for
// those that have waited for long.
func (l *Loop) tend(ctx context.Context, jobs []launcher.Job, workers map[string]string) error {
	if l.Enrolments == "" || l.DryRun {
		return nil
	}
	kept, failed := l.Enrolments.Kept()
	now, byLaunch := time.Now(), map[string]launcher.Job{}
	for _, job := range jobs {
		byLaunch[job.Launch] = job
	}
	limits := map[string]time.Duration{}
	for _, shape := range l.Planner.Shapes {
		limits[shape.Name] = shape.TimeLimit
	}
	for launch, at := range kept {
		_, over := l.Planner.Ended(launch)
		job := byLaunch[launch]
		_, registered := workers[launch]
		switch {
		case registered, over, now.Sub(at) > waits:
			failed = errors.Join(failed, l.Enrolments.Drop(launch), l.carry(ctx, launch))
		case job.State == launcher.Pending && now.Sub(at) > waits/2:
			failed = errors.Join(failed, l.enrol(ctx, []string{launch}, limits[job.Shape]), l.carry(ctx, launch))
		}
	}
	return failed
}

// carrier is an engine whose workers do not see the folder of the enrolments.
type carrier interface {
	// Carry brings the enrolment of a launch to its worker, or takes it away, as it is in
	// the folder.
	Carry(ctx context.Context, launch string) error
}

func (l *Loop) carry(ctx context.Context, launch string) error {
	if engine, is := l.Engine.(carrier); is {
		return engine.Carry(ctx, launch)
	}
	return nil
}
