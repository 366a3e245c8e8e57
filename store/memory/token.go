package memory

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/web/auth"
)

func (s *Store) tokenAt(id string) int {
	return slices.IndexFunc(s.tokens, func(token auth.Token) bool { return token.ID == id })
}

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token auth.Token) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tokenAt(token.ID) >= 0 {
		return record.TokenTaken(token.ID)
	}
	token.Created, token.Expires = record.UTC(token.Created), record.UTCOrNil(token.Expires)
	s.tokens = append(s.tokens, token)
	slices.SortStableFunc(s.tokens, func(a, b auth.Token) int { return a.Created.Compare(b.Created) })
	return nil
}

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (auth.Token, error) {
	if err := alive(ctx); err != nil {
		return auth.Token{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	at := s.tokenAt(id)
	if at < 0 {
		return auth.Token{}, record.NoToken(id)
	}
	token := s.tokens[at]
	token.Expires = record.UTCOrNil(token.Expires)
	return token, nil
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]auth.Token, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	list := slices.Clone(s.tokens)
	for i := range list {
		list[i].Expires = record.UTCOrNil(list[i].Expires)
	}
	return list, nil
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
