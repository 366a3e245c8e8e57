package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/guard"
)

// launcherRoutes are the routes of launchers and of what they start.
func (s launcherAPI) launcherRoutes() []route {
	const path = poolPath + "/launchers/{launcher}"
	return []route{
		{"PUT", path, guard.Starters, 200, guard.Call, "report-launcher", "Say what a launcher has asked its engine for, and what became of it", handle(s.server, s.report), nil},
		{"GET", poolPath + "/launches", guard.Readers, 200, guard.Call, "get-pool-launches", "Say which workers launchers start, why they wait, and how they ended", handle(s.server, s.launches), nil},
		{"POST", path + "/try-again", guard.Owners, 200, guard.Call, "try-launcher-again", "Have a launcher not wait for the end of a shape's hold", handle(s.server, s.tryAgain), nil},
	}
}

// LauncherRef names a launcher in a path.
type LauncherRef struct {
	Launcher string `path:"launcher" maxLength:"64" doc:"as it names itself in a report, and by its id otherwise"`
}

type reportInput struct {
	LauncherRef
	Content[crew.LauncherReport]
}

func (s launcherAPI) report(ctx context.Context, input *reportInput) (*jsonAnswer[crew.LauncherReply], error) {
	for i, launch := range input.Body.Over {
		if !launchName.MatchString(launch) {
			return nil, problem.WithFields("the report is not valid", []problem.Field{{Path: fmt.Sprintf("over[%d]", i), Value: launch, Message: "must be 1 to 64 letters, digits, dots, dashes and underscores"}})
		}
	}
	if err := accessAPI(s).endLaunches(ctx, input.Body.Over...); err != nil {
		return nil, err // it tells them again
	}
	return answered(s.server.launches.Report(access.CallerOf(ctx), input.Launcher, input.Body.LauncherState, s.Now()), nil)
}

// launches are those that the caller may see. What is said of studies that it does not
// see is left out.
func (s launcherAPI) launches(ctx context.Context, _ *nothing) (*jsonAnswer[crew.Launches], error) {
	list := s.server.launches.Launchers(access.CallerOf(ctx), s.Now())
	for i, one := range list {
		list[i] = s.visible(ctx, one)
	}
	return answered(crew.Launches{Launchers: list}, nil)
}

func (s launcherAPI) visible(ctx context.Context, one crew.Launcher) crew.Launcher {
	one.Notes = slices.DeleteFunc(orEmpty(slices.Clone(one.Notes)), func(note crew.LaunchNote) bool {
		if note.StudyID == "" {
			return false
		}
		_, err := s.studies.Study(ctx, note.StudyID)
		return err != nil
	})
	return one
}

type tryAgainInput struct {
	LauncherRef
	Content[crew.TryAgain]
}

func (s launcherAPI) tryAgain(ctx context.Context, input *tryAgainInput) (*jsonAnswer[crew.Launcher], error) {
	one, err := s.server.launches.TryAgain(access.CallerOf(ctx), input.Launcher, input.Body.Shape, s.Now())
	if err != nil {
		return nil, err
	}
	return answered(s.visible(ctx, one), nil)
}
