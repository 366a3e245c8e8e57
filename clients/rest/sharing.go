package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Quotas returns the quotas that the token may see, with what the users' trials
// have of the workers.
func (c PoolCalls) Quotas(ctx context.Context) ([]protocol.QuotaView, error) {
	return list[protocol.QuotaView](ctx, c.caller, "quotas", path("quotas"))
}

// SetQuota bounds what the user has of the workers; it takes an admin's token.
func (c PoolCalls) SetQuota(ctx context.Context, user string, quota protocol.Quota) (protocol.QuotaView, error) {
	return exchange[protocol.QuotaView](ctx, c.caller, path("quotas", user), quota, func(r *request) { r.method = http.MethodPut })
}

// RemoveQuota lets the user have what there is; it takes an admin's token.
func (c PoolCalls) RemoveQuota(ctx context.Context, user string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("quotas", user)}, nil)
}

// Reservations returns those that hold or will.
func (c PoolCalls) Reservations(ctx context.Context) ([]protocol.Reservation, error) {
	return list[protocol.Reservation](ctx, c.caller, "reservations", path("reservations"))
}

// Reserve keeps a worker or some GPUs for somebody; it takes an admin's token.
func (c PoolCalls) Reserve(ctx context.Context, ask protocol.ReservationRequest) (protocol.Reservation, error) {
	return exchange[protocol.Reservation](ctx, c.caller, path("reservations"), ask)
}

// Unreserve ends a reservation before its time; it takes an admin's token.
func (c PoolCalls) Unreserve(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("reservations", id)}, nil)
}

// Drain gives the worker with the id or name no more trials.
func (c PoolCalls) Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error) {
	return exchange[protocol.Drained](ctx, c.caller, path("workers", worker, "drain"), ask)
}

// Undrain gives it trials again.
func (c PoolCalls) Undrain(ctx context.Context, worker string) (protocol.Drained, error) {
	return fetch[protocol.Drained](ctx, c.caller, request{method: http.MethodDelete, path: path("workers", worker, "drain")})
}

// Groups returns the groups of users that the token may see.
func (c PoolCalls) Groups(ctx context.Context) ([]protocol.UserGroup, error) {
	return list[protocol.UserGroup](ctx, c.caller, "groups", path("groups"))
}

// SetGroup makes or replaces a group; it takes an admin's token.
func (c PoolCalls) SetGroup(ctx context.Context, name string, ask protocol.UserGroupRequest) (protocol.UserGroup, error) {
	return exchange[protocol.UserGroup](ctx, c.caller, path("groups", name), ask, func(r *request) { r.method = http.MethodPut })
}

// RemoveGroup removes a group; it takes an admin's token.
func (c PoolCalls) RemoveGroup(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("groups", name)}, nil)
}

// ShareStudy shares the study with these groups, and no others.
func (c StudyCalls) ShareStudy(ctx context.Context, study string, groups ...string) (protocol.Sharing, error) {
	with := protocol.Sharing{Groups: append([]string{}, groups...)}
	return exchange[protocol.Sharing](ctx, c.caller, path("studies", study, "groups"), with, func(r *request) { r.method = http.MethodPut })
}

// TransferStudy gives the study to another user.
func (c AccessCalls) TransferStudy(ctx context.Context, study string, to protocol.Ownership) (protocol.StudyView, error) {
	return exchange[protocol.StudyView](ctx, c.caller, path("studies", study, "owner"), to, func(r *request) { r.method = http.MethodPut })
}
