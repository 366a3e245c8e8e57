package api

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
)

func (s accessAPI) createToken(ctx context.Context, input *Content[protocol.TokenRequest]) (*jsonAnswer[protocol.IssuedToken], error) {
	ttl := time.Duration(math.Ceil(input.Body.TTLSeconds * float64(time.Second))) // 0 only if 0 was asked for
	secret, token, err := auth.Issue(ctx, s.tokens, auth.Request{
		Name: input.Body.Name, Scope: auth.Scope(input.Body.Scope), Worker: input.Body.Worker, Life: ttl,
	})
	if err != nil {
		return nil, err
	}
	if err := s.AuditMade(ctx, "token "+token.ID, guard.HolderOf(token)); err != nil {
		return nil, errors.Join(err, s.tokens.DeleteToken(ctx, token.ID))
	}
	return answered(protocol.IssuedToken{TokenView: viewOf(token), Token: secret}, nil)
}

type tokenList struct {
	Tokens []protocol.TokenView `json:"tokens"`
}

func (s accessAPI) listTokens(ctx context.Context, _ *nothing) (*jsonAnswer[tokenList], error) {
	tokens, err := s.Authenticator.Tokens(ctx)
	views := []protocol.TokenView{}
	for _, token := range tokens {
		if token.Parent() == "" {
			views = append(views, viewOf(token))
		}
	}
	return answered(tokenList{Tokens: views}, err)
}

type tokenRef struct {
	Token string `path:"token" maxLength:"64" doc:"the token's id, as the list shows it"`
}

func viewOf(token auth.Token) protocol.TokenView {
	return protocol.TokenView{
		ID: token.ID, Name: token.Name, Scope: string(token.Scope), Worker: token.Worker, Study: token.Subject,
		Created: token.Created, Expires: token.Expires, Used: token.Used,
	}
}
