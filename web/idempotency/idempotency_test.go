package idempotency_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/idempotency"
)

func TestKeysAreVisibleAndSingle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys  []string
		right bool
	}{
		{nil, true}, {[]string{"a-key"}, true}, {[]string{strings.Repeat("k", 128)}, true},
		{[]string{""}, false}, {[]string{"a key"}, false}, {[]string{"clé"}, false}, {[]string{"\xff"}, false},
		{[]string{strings.Repeat("k", 129)}, false}, {[]string{"one", "two"}, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header[idempotency.KeyHeader] = c.keys
		key, err := idempotency.KeyOf(r)
		if c.right != (err == nil) || err != nil && !problem.Is(err, problem.Invalid) || key != strings.Join(c.keys, "") && c.right {
			t.Errorf("%q: %q, %v", c.keys, key, err)
		}
	}
}

func TestHashesTellThePartsOfRequestsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, c := range [][3]string{{"/a", "", "b"}, {"/ab", "", ""}, {"/a", "b", ""}, {"/", "", "ab"}, {"/a", "", ""}} {
		r := httptest.NewRequest("POST", c[0]+"?"+c[1], nil)
		hash := idempotency.Hash(r, c[0], []byte(c[2]))
		if other, twice := seen[hash]; twice {
			t.Errorf("%q has the hash of %s", c, other)
		}
		seen[hash] = strings.Join(c[:], "|")
	}
}

func TestAttemptsOfOneCallComeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts, entered := idempotency.NewAttempts(), make(chan func(), 1)
		leave, err := attempts.Enter(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			second, _ := attempts.Enter(t.Context(), "key")
			entered <- second
		}()
		other, err := attempts.Enter(t.Context(), "another key")
		if err != nil {
			t.Fatal(err)
		}
		other()
		synctest.Wait()
		if len(entered) > 0 {
			t.Error("two attempts of one call are under way")
		}
		leave()
		(<-entered)()
	})
}
