package account

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// Links are the tokens that open one study each.
type Links struct{ Authenticator *auth.Authenticator }

// To returns the links to the study, the oldest first.
func (l Links) To(ctx context.Context, study string) ([]auth.Token, error) {
	tokens, err := l.Authenticator.Tokens(ctx)
	return slices.DeleteFunc(tokens, func(token auth.Token) bool {
		return token.Scope != auth.Link || token.Subject != study || token.Session()
	}), err
}

// OpenTo returns the links to the study that have not expired. It removes the
// others, so that nobody has to make room by hand.
func (l Links) OpenTo(ctx context.Context, study string) ([]auth.Token, error) {
	links, err := l.To(ctx, study)
	var open []auth.Token
	for _, link := range links {
		if !l.Authenticator.Expired(link) {
			open = append(open, link)
		} else if failure := l.Authenticator.Delete(ctx, link.ID); !problem.Is(failure, problem.NotFound) { // by another request
			err = errors.Join(err, failure)
		}
	}
	return open, err
}

// Drop removes the links to a study that was deleted: they open nothing any more.
func (l Links) Drop(ctx context.Context, study string) error {
	ctx = context.WithoutCancel(ctx)
	links, err := l.To(ctx, study)
	for _, link := range links {
		err = errors.Join(err, l.Authenticator.Delete(ctx, link.ID))
	}
	return err
}

// LinkPath returns the page that takes the secret, after the #, and leads to the study.
func LinkPath(study, secret string) string {
	return "/login?next=" + url.QueryEscape("/studies/"+study) + "#token=" + secret
}

// LinkView is the link as clients see it.
func LinkView(token auth.Token) protocol.LinkView {
	view := protocol.LinkView{ID: token.ID, Name: token.Name, Created: token.Created, Used: token.Used}
	if token.Expires != nil { // every link has an end
		view.Expires = *token.Expires
	}
	return view
}
