package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/access"
)

// tokens are the store's tokens, which are part of no change.
type tokens struct {
	mutex sync.RWMutex
	list  []access.Token
}

func (t *tokens) at(id string) int {
	return slices.IndexFunc(t.list, func(token access.Token) bool { return token.ID == id })
}

// InsertToken adds a token; an id that is taken is a conflict.
func (t *tokens) InsertToken(ctx context.Context, token access.Token) error {
	if err := alive(ctx); err != nil {
		return err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.at(token.ID) >= 0 {
		return record.TokenTaken(token.ID)
	}
	token.Created, token.Expires, token.Used = record.UTC(token.Created), record.UTCOrNil(token.Expires), record.UTCOrNil(token.Used)
	t.list = append(t.list, token)
	slices.SortStableFunc(t.list, func(a, b access.Token) int { return a.Created.Compare(b.Created) })
	return nil
}

// Token finds a token by id.
func (t *tokens) Token(ctx context.Context, id string) (access.Token, error) {
	if err := alive(ctx); err != nil {
		return access.Token{}, err
	}
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	place := t.at(id)
	if place < 0 {
		return access.Token{}, record.NoToken(id)
	}
	return unshared(t.list[place]), nil
}

// Tokens lists all tokens, the oldest first.
func (t *tokens) Tokens(ctx context.Context) ([]access.Token, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	list := slices.Clone(t.list)
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
func (t *tokens) BindToken(ctx context.Context, id, worker string) error {
	return t.change(ctx, id, func(token *access.Token) error {
		if token.Worker != "" && token.Worker != worker {
			return record.TokenBound(id, token.Worker)
		}
		token.Worker = worker
		return nil
	})
}

// UseToken notes when a token was last used.
func (t *tokens) UseToken(ctx context.Context, id string, at time.Time) error {
	return t.change(ctx, id, func(token *access.Token) error {
		if token.Used == nil || token.Used.Before(at) {
			token.Used = record.UTCOrNil(&at)
		}
		return nil
	})
}

func (t *tokens) change(ctx context.Context, id string, change func(*access.Token) error) error {
	if err := alive(ctx); err != nil {
		return err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	place := t.at(id)
	if place < 0 {
		return record.NoToken(id)
	}
	return change(&t.list[place])
}

// DeleteToken removes a token.
func (t *tokens) DeleteToken(ctx context.Context, id string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	place := t.at(id)
	if place < 0 {
		return record.NoToken(id)
	}
	t.list = slices.Delete(t.list, place, place+1)
	return nil
}
