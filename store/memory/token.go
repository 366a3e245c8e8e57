package memory

import (
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/access"
)

func (s *Store) tokenAt(id string) int {
	return slices.IndexFunc(s.tokens, func(token access.Token) bool { return token.ID == id })
}

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token access.Token) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tokenAt(token.ID) >= 0 {
		return record.TokenTaken(token.ID)
	}
	token.Created, token.Expires, token.Used = record.UTC(token.Created), record.UTCOrNil(token.Expires), record.UTCOrNil(token.Used)
	s.tokens = append(s.tokens, token)
	slices.SortStableFunc(s.tokens, func(a, b access.Token) int { return a.Created.Compare(b.Created) })
	return nil
}

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (access.Token, error) {
	if err := alive(ctx); err != nil {
		return access.Token{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	at := s.tokenAt(id)
	if at < 0 {
		return access.Token{}, record.NoToken(id)
	}
	return unshared(s.tokens[at]), nil
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]access.Token, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	list := slices.Clone(s.tokens)
	for i := range list {
		list[i] = unshared(list[i])
	}
	return list, nil
}

// unshared shares nothing with the token.
func unshared(token access.Token) access.Token {
	token.Expires, token.Used = record.UTCOrNil(token.Expires), record.UTCOrNil(token.Used)
	return token
}

// BindToken makes a token the machine's that belongs to none.
func (s *Store) BindToken(ctx context.Context, id, worker string) error {
	return s.changeToken(ctx, id, func(token *access.Token) error {
		if token.Worker != "" && token.Worker != worker {
			return record.TokenBound(id, token.Worker)
		}
		token.Worker = worker
		return nil
	})
}

// UseToken notes when a token was last used.
func (s *Store) UseToken(ctx context.Context, id string, at time.Time) error {
	return s.changeToken(ctx, id, func(token *access.Token) error {
		if token.Used == nil || token.Used.Before(at) {
			token.Used = record.UTCOrNil(&at)
		}
		return nil
	})
}

func (s *Store) changeToken(ctx context.Context, id string, change func(*access.Token) error) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := s.tokenAt(id)
	if at < 0 {
		return record.NoToken(id)
	}
	return change(&s.tokens[at])
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := s.tokenAt(id)
	if at < 0 {
		return record.NoToken(id)
	}
	s.tokens = slices.Delete(s.tokens, at, at+1)
	return nil
}
