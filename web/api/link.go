package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/account"
	"github.com/tandem-tune/tandem/web/auth"
)

// A link is a token with the scope link: whoever has it reads one study. The
// handlers below ask for the study first, so that only who sees it as its own
// makes, lists and revokes links to it.

func (s accessAPI) createLink(ctx context.Context, input *studyInput[protocol.LinkRequest]) (*jsonAnswer[protocol.IssuedLink], error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	present, err := s.links().OpenTo(ctx, view.ID)
	if err != nil {
		return nil, err
	}
	if len(present) >= protocol.MaxLinks {
		return nil, problem.New(problem.Conflict, "study %s has %d links, and there may be no more: revoke one first", view.Name, len(present))
	}
	secret, token, err := auth.Issue(ctx, s.tokens, auth.Request{
		Name: input.Body.Name, Scope: auth.Link, Subject: view.ID, Life: time.Duration(input.Body.TTLSeconds * float64(time.Second)),
	})
	if err != nil {
		return nil, err
	}
	if err := s.AuditMade(ctx, "link "+token.ID, "study "+view.Owner+":"+view.Name); err != nil {
		return nil, errors.Join(err, s.tokens.DeleteToken(ctx, token.ID))
	}
	return answered(protocol.IssuedLink{LinkView: account.LinkView(token), Path: account.LinkPath(view.ID, secret), Token: secret}, nil)
}

type linkList struct {
	Links []protocol.LinkView `json:"links"`
}

func (s accessAPI) listLinks(ctx context.Context, input *StudyRef) (*jsonAnswer[linkList], error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	links, err := s.links().To(ctx, view.ID)
	views := []protocol.LinkView{}
	for _, link := range links {
		views = append(views, account.LinkView(link))
	}
	return answered(linkList{Links: views}, err)
}

type linkRef struct {
	StudyRef
	Link string `path:"link" maxLength:"64" doc:"the link's id, as the list shows it"`
}

func (s accessAPI) deleteLink(ctx context.Context, input *linkRef) (*nothing, error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	links, err := s.links().To(ctx, view.ID)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(links, func(link auth.Token) bool { return link.ID == input.Link }) {
		return nil, problem.New(problem.NotFound, "study %s has no link %q", view.Name, input.Link)
	}
	return nil, s.Authenticator.Delete(ctx, input.Link)
}

func (s accessAPI) links() account.Links { return account.Links{Authenticator: s.Authenticator} }
