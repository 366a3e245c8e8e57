package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Tokens lists the tokens; it takes an admin's.
func (c PoolCalls) Tokens(ctx context.Context) ([]protocol.TokenView, error) {
	return list[protocol.TokenView](ctx, c.caller, "tokens", path("tokens"))
}

// CreateToken makes a token. Its secret is in this answer only, which the
// server does not keep: so the call is not tried again by itself, and a token
// whose answer was lost has to be deleted.
func (c PoolCalls) CreateToken(ctx context.Context, ask protocol.TokenRequest) (protocol.IssuedToken, error) {
	return exchange[protocol.IssuedToken](ctx, c.caller, path("tokens"), ask, once)
}

// DeleteToken removes a token and its sessions.
func (c PoolCalls) DeleteToken(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("tokens", id)}, nil)
}

// Identity says whose token the client shows.
func (c PoolCalls) Identity(ctx context.Context) (protocol.Identity, error) {
	return get[protocol.Identity](ctx, c.caller, path("session"), "")
}

// SignOut ends the token, if it is a user's.
func (c AccessCalls) SignOut(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("session")}, nil)
}

// StartDeviceSignIn begins to sign in in a browser elsewhere; it takes no token.
func (c AccessCalls) StartDeviceSignIn(ctx context.Context) (protocol.DeviceSignIn, error) {
	return exchange[protocol.DeviceSignIn](ctx, c.caller, path("session", "device"), nil)
}

// FinishDeviceSignIn returns the token of who has signed in with the code, if somebody has.
func (c AccessCalls) FinishDeviceSignIn(ctx context.Context, code string) (protocol.DeviceToken, error) {
	return exchange[protocol.DeviceToken](ctx, c.caller, path("session", "device", "token"), protocol.DevicePoll{DeviceCode: code})
}

// Users returns the users who have tokens or have signed in; it takes an admin's token.
func (c AccessCalls) Users(ctx context.Context) ([]protocol.UserView, error) {
	return list[protocol.UserView](ctx, c.caller, "users", path("users"))
}

// RemoveUser ends all tokens and sessions of a user; it takes an admin's token.
func (c AccessCalls) RemoveUser(ctx context.Context, user string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("users", user)}, nil)
}
