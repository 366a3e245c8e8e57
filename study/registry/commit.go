package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
)

// Look returns what a query sees in the study, once all of that is durable.
func Look[T any](ctx context.Context, s *Registry, ref string, see func(*session.Session) (T, error)) (T, error) {
	for {
		var nothing T
		r, err := s.Locked(ctx, ref)
		if err != nil {
			return nothing, err
		}
		seen, err := see(r)
		refused := r.Wait()
		r.Unlock()
		if refused == nil {
			return seen, err
		}
	}
}

// Commit hands the transaction to the store and shows it in memory at once, so
// that the next use case of the study goes on from it and both share the wait
// for the disk; the session's lock is let go for that time. When it returns,
// the change is durable or refused. A refused change takes those behind it
// along: each is written only behind the event it was decided on.
//
// answer points to what the caller will be told, nil for nothing; if another request with the same
// Idempotency-Key won the race, it is replaced by the answer that one stored.
func (s *Registry) Commit(ctx context.Context, tx *session.Transaction, answer any) error {
	if answer == nil {
		answer = new(struct{})
	}
	var err error
	if tx.Change.Receipt, err = receiptOf(ctx, answer, tx.Now); err != nil {
		tx.Abandon()
		return err
	}
	if err := failpoint.Here(failpoint.StudyDecided); err != nil {
		tx.Abandon()
		return err
	}
	if err := tx.Write(ctx); err != nil {
		return s.overtaken(ctx, err, answer)
	}
	for _, follow := range tx.After {
		follow()
	}
	if tx.Ended {
		s.mutex.Lock()
		s.ended[tx.Study.Status]++
		s.mutex.Unlock()
	}
	s.Notify()
	return nil
}

// idempotencyKey is the context key of an idempotent request.
type idempotencyKey struct{}

type idempotency struct{ key, request string }

// WithIdempotency makes the use case called with the context store its answer
// under the key, in the same transaction as its change. request is a hash of
// the whole request.
func WithIdempotency(ctx context.Context, key, request string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, idempotency{key, request})
}

// Unkeyed leaves the key for a later transaction of the same call: what is
// committed with this context is not the call's answer.
func Unkeyed(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, nil)
}

// Receipt returns the answer of an earlier call with the key, if there is one.
// A key that was used for another request is key_reused.
func (s *Registry) Receipt(ctx context.Context, key, request string) (json.RawMessage, bool, error) {
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
func receiptOf(ctx context.Context, answer any, at time.Time) (*journal.Receipt, error) {
	key, keyed := ctx.Value(idempotencyKey{}).(idempotency)
	if !keyed {
		return nil, nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, problem.New(problem.Internal, "encode the answer: %w", err)
	}
	return &journal.Receipt{Key: key.key, Request: key.request, Answer: body, At: at}, nil
}

// Apply stores a change of what belongs to no study, with the answer under the call's
// key. ours is false where another request with the same key was faster: the answer is
// replaced by the one that was stored. The answer is a pointer.
func (s *Registry) Apply(ctx context.Context, change journal.Change, answer any) (ours bool, err error) {
	if change.Receipt, err = receiptOf(ctx, answer, s.options.Now()); err != nil {
		return false, err
	}
	// A client that hangs up must not leave us guessing whether the write happened.
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		return false, s.overtaken(ctx, err, answer)
	}
	return true, nil
}

// overtaken looks whether a refused write has lost to another request with the
// same key: if so, the answer is replaced by the one that was stored.
func (s *Registry) overtaken(ctx context.Context, refused error, answer any) error {
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

// Update makes the change of a study that decide gathers, and returns the answer. An error of
// decide is passed on.
func Update[T any](ctx context.Context, s *Registry, ref string, decide func(*session.Transaction) (T, error)) (answer T, err error) {
	r, err := s.Locked(ctx, ref)
	if err != nil {
		return answer, err
	}
	defer r.Leave()
	tx := r.Begin()
	decided, err := decide(tx)
	if err != nil {
		tx.Abandon()
		return answer, err
	}
	if err := s.Commit(ctx, tx, &decided); err != nil {
		return answer, err
	}
	return decided, nil
}

// Change runs one change of a study's status.
func (s *Registry) Change(ctx context.Context, ref string, decide func(*session.Transaction, journal.Study) error) (protocol.StudyView, error) {
	return Update(ctx, s, ref, func(tx *session.Transaction) (view protocol.StudyView, err error) {
		if err = decide(tx, tx.Session.Study); err == nil {
			view = tx.View()
		}
		return view, err
	})
}

// ChangeDue makes a change to each study for which it is due, while it is. what says what
// is done to it.
func (s *Registry) ChangeDue(ctx context.Context, what string, due func(*session.Session) bool, decide func(*session.Transaction, journal.Study) error) error {
	var studies []string
	for r := range s.Each() {
		if due(r) {
			studies = append(studies, r.ID)
		}
	}
	var failures []error
	for _, id := range studies {
		_, err := s.Change(ctx, id, func(tx *session.Transaction, current journal.Study) error {
			if !due(tx.Session) {
				return nil
			}
			return decide(tx, current)
		})
		if err != nil && !problem.Is(err, problem.NotFound) { // deleted since
			failures = append(failures, fmt.Errorf("%s study %s: %w", what, id, err))
		}
	}
	return errors.Join(failures...)
}
