package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/study/hook"
)

// CreateHook names a receiver of what happens in studies. A webhook's secret is in this
// answer only, so the call is not tried again by itself.
func (c HookCalls) CreateHook(ctx context.Context, ask hook.HookRequest) (hook.IssuedHook, error) {
	return exchange[hook.IssuedHook](ctx, c.caller, path("hooks"), ask, once)
}

// Hooks lists the hooks, without their secrets.
func (c HookCalls) Hooks(ctx context.Context) ([]hook.HookView, error) {
	return list[hook.HookView](ctx, c.caller, "hooks", path("hooks"))
}

// DeleteHook has a hook told nothing more.
func (c HookCalls) DeleteHook(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("hooks", name)}, nil)
}

// TestHook has a hook told an example, and returns what it answers.
func (c HookCalls) TestHook(ctx context.Context, name string) (hook.HookAnswer, error) {
	return exchange[hook.HookAnswer](ctx, c.caller, path("hooks", name, "test"), struct{}{}, once)
}

// StudyHooks returns what became of telling hooks of the study.
func (c HookCalls) StudyHooks(ctx context.Context, study string) ([]hook.HookDelivery, error) {
	return list[hook.HookDelivery](ctx, c.caller, "hooks", path("studies", study, "hooks"))
}
