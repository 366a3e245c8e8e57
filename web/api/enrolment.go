package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
)

// enrolmentRoutes are the routes by which workers that a launcher starts get their tokens.
func (s accessAPI) enrolmentRoutes() []route {
	const path = prefix + "/enrolments"
	return []route{
		{"POST", path, guard.Starters, 201, guard.Secret, "create-enrolments", "Make a token for the worker of each launch, to be used once", handle(s.server, s.createEnrolments), nil},
		{"POST", path + "/exchange", guard.Enrolments, 201, guard.Secret, "exchange-enrolment", "Get a worker's token for an enrolment, which is used up then", handle(s.server, s.exchangeEnrolment), nil},
	}
}

var launchName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (s accessAPI) createEnrolments(ctx context.Context, input *Content[crew.EnrolmentRequest]) (*jsonAnswer[crew.Enrolments], error) {
	launches, answer := input.Body.Launches, crew.Enrolments{}
	for i, launch := range launches {
		if !launchName.MatchString(launch) {
			return nil, problem.WithFields("the enrolments are not valid", []problem.Field{{Path: fmt.Sprintf("launches[%d]", i), Value: launch, Message: "must be 1 to 64 letters, digits, dots, dashes and underscores"}})
		}
	}
	life := time.Duration(math.Ceil(input.Body.TTLSeconds * float64(time.Second)))
	secrets, err := s.Authenticator.Enrol(ctx, guard.TokenOf(ctx), launches, life)
	for i, secret := range secrets {
		answer.Enrolments = append(answer.Enrolments, crew.Enrolment{Launch: launches[i], Token: secret})
	}
	if err == nil {
		err = s.AuditMade(ctx, fmt.Sprintf("%d enrolments", len(launches)), "launches "+launches[0]+" to "+launches[len(launches)-1])
	}
	return answered(answer, err) // those that nobody was told of expire
}

func (s accessAPI) exchangeEnrolment(ctx context.Context, input *Content[crew.EnrolmentExchange]) (*jsonAnswer[crew.LaunchedToken], error) {
	secret, token, err := s.Authenticator.Exchange(ctx, guard.TokenOf(ctx), auth.Secret(input.Body.Nonce))
	if err != nil {
		return nil, err
	}
	if err := s.AuditMade(ctx, "token "+token.ID, guard.HolderOf(token)+", launch "+token.Subject); err != nil {
		return nil, errors.Join(err, s.tokens.DeleteToken(ctx, token.ID))
	}
	return answered(crew.LaunchedToken{Launch: token.Subject, Token: secret.Reveal(), Expires: token.Expires}, nil)
}

// endLaunches ends the tokens of launches, as far as the caller speaks for them.
func (s accessAPI) endLaunches(ctx context.Context, launches ...string) error {
	caller := access.CallerOf(ctx)
	return s.Authenticator.EndLaunches(ctx, launches, func(token auth.Token) bool { return caller.Holds(guard.CallerOf(token).Holder) })
}
