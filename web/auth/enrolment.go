package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"math/big"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

// maxLaunched bounds the enrolments and workers of one token.
const maxLaunched = 10_000

// Enrol makes an enrolment for each launch of a launcher, with its secret. Those are
// valid for so long, and so are the workers' tokens that they are exchanged for; all
// end with the launcher's token. An earlier enrolment of a launch, not used yet, ends.
//
// The error is invalid for a request that is none, exhausted if the launcher has too many.
func (a *Authenticator) Enrol(ctx context.Context, launcher Token, launches []string, life time.Duration) (secrets []string, err error) {
	siblings, err := a.tidy(ctx, launcher.Principal())
	if err != nil {
		return nil, err
	}
	siblings = slices.DeleteFunc(siblings, func(token Token) bool { return !token.Launched() })
	if len(siblings)+len(launches) > maxLaunched {
		return nil, problem.New(problem.Exhausted, "%d enrolments and workers of this token are valid, and at most %d may be: wait until some end, or revoke the token", len(siblings), maxLaunched)
	}
	request := Request{Name: access.AnyUser, Scope: Enrolment, Parent: launcher.Principal(), Life: life}
	if launcher.Scope == User || launcher.Scope == Launcher {
		request.Name = launcher.Name
	}
	for _, launch := range launches {
		for _, one := range siblings {
			if one.Subject == launch && one.Scope == Enrolment && one.Worker == "" {
				if err := a.remove(ctx, one.ID); err != nil {
					return nil, err
				}
			}
		}
		request.Subject = launch
		secret, _, err := Issue(ctx, a.store, request)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Exchange makes the token of a worker for an enrolment, which is used up then. The nonce
// is a secret of the worker: with it an answer that was lost is had again, and nobody
// else has any. The error is forbidden if the enrolment was used with another nonce.
func (a *Authenticator) Exchange(ctx context.Context, enrolment Token, nonce Secret) (Secret, Token, error) {
	mac := hmac.New(sha512.New, []byte(nonce.Reveal()))
	mac.Write([]byte(enrolment.ID))
	drawn := new(big.Int).SetBytes(mac.Sum(nil)).Text(len(letters))
	id, secret := enrolment.Parent()+"."+drawn[:idLetters], drawn[len(drawn)-secretLetters:]
	switch err := a.store.BindToken(ctx, enrolment.ID, id); {
	case problem.Is(err, problem.Conflict):
		return "", Token{}, problem.New(problem.Forbidden, "the enrolment of the launch %s was used already: if its job has not started before, somebody else has used it; revoke the launcher's token then", enrolment.Subject)
	case problem.Is(err, problem.NotFound):
		return "", Token{}, errUnknown()
	case err != nil:
		return "", Token{}, err
	}
	token := Token{
		ID: id, Name: enrolment.Name, Scope: Worker, Subject: enrolment.Subject, Hash: sha256.Sum256([]byte(secret)),
		Created: a.now().UTC(), Expires: enrolment.Expires,
	}
	if err := a.store.InsertToken(ctx, token); problem.Is(err, problem.Conflict) {
		if token, err = a.store.Token(ctx, id); err != nil {
			return "", Token{}, err
		}
	} else if err != nil {
		return "", Token{}, err
	}
	return Secret(seal(string(Worker), id, secret)), token, nil
}

// EndLaunches removes the enrolments and the workers' tokens of launches, of those tokens
// that the caller may speak for.
func (a *Authenticator) EndLaunches(ctx context.Context, launches []string, speaksFor func(Token) bool) error {
	if len(launches) == 0 {
		return nil
	}
	over := map[string]bool{}
	for _, launch := range launches {
		over[launch] = true
	}
	tokens, err := a.store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token.Launched() && over[token.Subject] && speaksFor(token) {
			if err := a.remove(ctx, token.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Left ends the token of a worker that was launched and has taken leave.
func (a *Authenticator) Left(ctx context.Context, token Token) error {
	if !token.Launched() {
		return nil
	}
	return a.remove(ctx, token.ID)
}
