package storetest

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

func tokenChecks() []check {
	return []check{
		{"a token is read as it was written", tokenRoundTrip},
		{"tokens come the oldest first", tokenOrder},
		{"a token belongs to one worker", tokenBinding},
		{"a token remembers its latest use", tokenUse},
	}
}

func sampleToken(id string, seconds int) access.Token {
	return access.Token{ID: id, Name: "o'brien ☃", Scope: access.Worker, Hash: sha256.Sum256([]byte(id)), Created: moment(seconds)}
}

func tokenRoundTrip(t *testing.T, f fixture) {
	ctx := t.Context()
	expiring, lasting := sampleToken("t1", 0), sampleToken("t2", 1)
	expiring.Expires, lasting.Scope, lasting.Name = pointer(moment(30)), access.Admin, ""
	expiring.Worker, expiring.Used, expiring.Subject = "rack ☃", pointer(moment(20)), "s1 ☃"
	for _, want := range []access.Token{expiring, lasting} {
		_, err := f.store.Token(ctx, want.ID)
		wantCode(t, "Token before it is there", err, problem.NotFound)
		if err := f.store.InsertToken(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := f.store.Token(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the token", got, want)
		if got.Expires != nil {
			*got.Expires, *got.Used = moment(59), moment(59) // must not reach into the store
		}
	}
	before := f.picture(t)
	wantCode(t, "InsertToken with an id that is taken", f.store.InsertToken(ctx, sampleToken("t1", 5)), problem.Conflict)
	wantCode(t, "DeleteToken of none", f.store.DeleteToken(ctx, "t3"), problem.NotFound)
	same(t, "the store behind refusals", f.picture(t), before)

	if err := f.store.DeleteToken(ctx, "t1"); err != nil {
		t.Fatal(err)
	}
	_, err := f.store.Token(ctx, "t1")
	wantCode(t, "Token after it was deleted", err, problem.NotFound)
	wantCode(t, "DeleteToken again", f.store.DeleteToken(ctx, "t1"), problem.NotFound)
	list, err := f.store.Tokens(ctx)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what is left", list, []access.Token{lasting})
}

func tokenBinding(t *testing.T, f fixture) {
	ctx, want := t.Context(), sampleToken("t1", 0)
	if err := f.store.InsertToken(ctx, want); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.store.BindToken(ctx, "t1", "rack 1"); err != nil {
			t.Fatal(err)
		}
	}
	// Of those who want one at the same time, one gets it: an enrolment is used once.
	if err := f.store.InsertToken(ctx, sampleToken("t3", 0)); err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan error, 4)
	for i := range cap(outcomes) {
		go func() { outcomes <- f.store.BindToken(ctx, "t3", fmt.Sprint("rack ", i)) }()
	}
	bound := 0
	for range cap(outcomes) {
		if err := <-outcomes; err == nil {
			bound++
		} else {
			wantCode(t, "BindToken beside others", err, problem.Conflict)
		}
	}
	if bound != 1 {
		t.Errorf("%d of those who wanted one token at once have it", bound)
	}
	wantCode(t, "BindToken of another's", f.store.BindToken(ctx, "t1", "rack 2"), problem.Conflict)
	wantCode(t, "BindToken of none", f.store.BindToken(ctx, "t2", "rack 1"), problem.NotFound)
	want.Worker = "rack 1"
	got, err := f.store.Token(ctx, "t1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the token", got, want)
}

func tokenUse(t *testing.T, f fixture) {
	ctx, want := t.Context(), sampleToken("t1", 0)
	if err := f.store.InsertToken(ctx, want); err != nil {
		t.Fatal(err)
	}
	for _, second := range []int{7, 9, 8} {
		if err := f.store.UseToken(ctx, "t1", moment(second)); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "UseToken of none", f.store.UseToken(ctx, "t2", moment(1)), problem.NotFound)
	want.Used = pointer(moment(9))
	got, err := f.store.Token(ctx, "t1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the token", got, want)
}

func tokenOrder(t *testing.T, f fixture) {
	for _, one := range []access.Token{sampleToken("c", 2), sampleToken("z", 1), sampleToken("a", 3), sampleToken("b", 2)} {
		if err := f.store.InsertToken(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	same(t, "the order", ids, []string{"z", "c", "b", "a"})
}
