package study

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// idempotencyKey is the context key of an idempotent request.
type idempotencyKey struct{}

type idempotency struct{ key, request string }

// WithIdempotency makes the use case called with the context store its answer
// under the key, in the same transaction as its change. request is a hash of
// the whole request.
func WithIdempotency(ctx context.Context, key, request string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, idempotency{key, request})
}

// unkeyed leaves the key for a later transaction of the same call: what is
// committed with this context is not the call's answer.
func unkeyed(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, nil)
}

// Receipt returns the answer of an earlier call with the key, if there is one.
// A key that was used for another request is key_reused.
func (s *Service) Receipt(ctx context.Context, key, request string) (json.RawMessage, bool, error) {
	receipt, err := s.store.Receipt(ctx, key)
	switch {
	case problem.Is(err, problem.NotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case receipt.Request != request:
		return nil, false, problem.New(problem.KeyReused,
			"this Idempotency-Key was used for another request: use a new key for every new request")
	}
	return receipt.Answer, true, nil
}

// receiptOf is how the answer is kept under the call's key; nil without a key.
func receiptOf(ctx context.Context, answer any, at time.Time) (*Receipt, error) {
	key, keyed := ctx.Value(idempotencyKey{}).(idempotency)
	if !keyed {
		return nil, nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, problem.New(problem.Internal, "encode the answer: %w", err)
	}
	return &Receipt{Key: key.key, Request: key.request, Answer: body, At: at}, nil
}

// apply stores a change of what belongs to no study, with the answer under the call's
// key. ours is false where another request with the same key was faster: the answer is
// replaced by the one that was stored. The answer is a pointer.
func apply(ctx context.Context, s *Service, change Change, answer any) (ours bool, err error) {
	if change.Receipt, err = receiptOf(ctx, answer, s.options.Now()); err != nil {
		return false, err
	}
	// A client that hangs up must not leave us guessing whether the write happened.
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		return false, overtaken(ctx, s, err, answer)
	}
	return true, nil
}

// overtaken looks whether a refused write has lost to another request with the
// same key: if so, the answer is replaced by the one that was stored.
func overtaken(ctx context.Context, s *Service, refused error, answer any) error {
	key, keyed := ctx.Value(idempotencyKey{}).(idempotency)
	if !keyed || !problem.Is(refused, problem.Conflict) {
		return refused
	}
	stored, found, err := s.Receipt(ctx, key.key, key.request)
	switch {
	case problem.Is(err, problem.KeyReused):
		return err
	case err != nil || !found:
		return refused
	}
	reflect.ValueOf(answer).Elem().SetZero() // else what theirs lacks would stay of ours
	return json.Unmarshal(stored, answer)
}
