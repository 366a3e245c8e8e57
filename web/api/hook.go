package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/web/guard"
)

// Hooks tells receivers what happens in studies. Package web/hooks has it.
type Hooks interface {
	Create(ctx context.Context, ask hook.HookRequest) (hook.IssuedHook, error)
	Hooks(ctx context.Context) ([]hook.HookView, error)
	Delete(ctx context.Context, name string) error
	Test(ctx context.Context, name string) (hook.HookAnswer, error)
	// Check refuses a study that names hooks which the caller does not have.
	Check(ctx context.Context, def definition.Definition) error
	Of(ctx context.Context, study protocol.StudyView) []hook.HookDelivery
}

// HookRef names a hook in a path.
type HookRef struct {
	Hook string `path:"hook" maxLength:"200" doc:"the hook's name: alone for one of your own, as OWNER:NAME for a user's"`
}

// hookRoutes are the routes of hooks.
func (s hookAPI) hookRoutes() []route {
	const hooks = prefix + "/hooks"
	return []route{
		{"POST", hooks, guard.Owners, 201, guard.Secret, "create-hook", "Name a receiver of what happens in studies", handle(s.server, s.createHook), nil},
		{"GET", hooks, guard.Owners, 200, guard.Call, "list-hooks", "List the hooks, without their secrets", handle(s.server, s.listHooks), nil},
		{"DELETE", hooks + "/{hook}", guard.Owners, 204, guard.Call, "delete-hook", "Tell a hook nothing more", handle(s.server, remove[HookRef](s.hooks.Delete)), nil},
		{"POST", hooks + "/{hook}/test", guard.Owners, 200, guard.Secret, "test-hook", "Tell a hook an example, and say what it answers", handle(s.server, ofNamed[HookRef](s.hooks.Test)), nil},
		{"GET", studyPath + "/hooks", guard.Readers, 200, guard.Call, "get-study-hooks", "Say what became of telling hooks of the study", handle(s.server, s.studyHooks), nil},
	}
}

func (s hookAPI) createHook(ctx context.Context, input *Content[hook.HookRequest]) (*jsonAnswer[hook.IssuedHook], error) {
	made, err := s.hooks.Create(ctx, input.Body)
	if err == nil {
		s.ReportAudit(ctx, s.AuditMade(ctx, "hook "+made.Name, string(made.Kind)+" "+made.To))
	}
	return answered(made, err)
}

type hookList struct {
	Hooks []hook.HookView `json:"hooks"`
}

func (s hookAPI) listHooks(ctx context.Context, _ *nothing) (*jsonAnswer[hookList], error) {
	list, err := s.hooks.Hooks(ctx)
	return answered(hookList{Hooks: orEmpty(list)}, err)
}

type deliveryList struct {
	Hooks []hook.HookDelivery `json:"hooks"`
}

func (s hookAPI) studyHooks(ctx context.Context, input *StudyRef) (*jsonAnswer[deliveryList], error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	return answered(deliveryList{Hooks: orEmpty(s.hooks.Of(ctx, view))}, nil)
}

// noHooks are those of a server that tells nobody anything.
type noHooks struct{}

var errNoHooks = problem.New(problem.NotFound, "this server has no hooks")

func (noHooks) Create(context.Context, hook.HookRequest) (hook.IssuedHook, error) {
	return hook.IssuedHook{}, errNoHooks
}
func (noHooks) Hooks(context.Context) ([]hook.HookView, error) { return nil, nil }
func (noHooks) Delete(context.Context, string) error           { return errNoHooks }
func (noHooks) Test(context.Context, string) (hook.HookAnswer, error) {
	return hook.HookAnswer{}, errNoHooks
}
func (noHooks) Check(context.Context, definition.Definition) error                { return nil }
func (noHooks) Of(context.Context, protocol.StudyView) (list []hook.HookDelivery) { return nil }
