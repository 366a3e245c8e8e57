package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// CreateLink makes a link that opens the study to whoever has it. Its secret is
// in this answer only, which the server does not keep: so the call is not tried
// again by itself, and a link whose answer was lost has to be deleted.
func (c StudyCalls) CreateLink(ctx context.Context, study string, ask protocol.LinkRequest) (protocol.IssuedLink, error) {
	return exchange[protocol.IssuedLink](ctx, c.caller, path("studies", study, "links"), ask, once)
}

// Links lists the links to a study.
func (c StudyCalls) Links(ctx context.Context, study string) ([]protocol.LinkView, error) {
	return list[protocol.LinkView](ctx, c.caller, "links", path("studies", study, "links"))
}

// DeleteLink revokes a link to a study, with its sessions.
func (c StudyCalls) DeleteLink(ctx context.Context, study, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("studies", study, "links", id)}, nil)
}
