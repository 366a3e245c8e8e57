package storetest

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func modelChecks() []check {
	return []check{{"any run of calls is answered as the model answers it", modelAgrees}}
}

// modelAgrees plays random calls on the store and on the model: both give the
// same answers, in the same words, and show the same afterwards.
func modelAgrees(t *testing.T, f fixture) {
	rapid.Check(t, func(r *rapid.T) {
		m, ctx := model.New(), r.Context()
		for _, one := range f.clear(r) {
			m.Architectures[one.Key] = one
		}
		agree := func(call string, got, want error) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Fatalf("%s: the store says %v, the model %v", call, got, want)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"apply": func(r *rapid.T) {
				change := world{m}.change(r)
				after, want := m.Apply(change)
				agree("Apply", f.store.Apply(ctx, change), want)
				m = after
			},
			"log": func(r *rapid.T) {
				id, offset := world{m}.someTrial(r), rapid.Int64Range(0, 8).Draw(r, "offset")
				epoch := likely(r, "lease", []trial.LeaseEpoch{m.Trials[id].LeaseEpoch}, []trial.LeaseEpoch{0, 1, 2})
				text := rapid.StringMatching(`[a-z\n]{0,6}`).Draw(r, "text")
				agree("AppendLog", f.store.AppendLog(ctx, id, epoch, offset, text), m.Write(id, epoch, offset, text))
			},
			"token": func(r *rapid.T) {
				token := sampleToken(rapid.SampledFrom([]string{"t1", "t2"}).Draw(r, "token"), secondOf(r))
				switch rapid.IntRange(0, 3).Draw(r, "do") {
				case 0:
					agree("InsertToken", f.store.InsertToken(ctx, token), m.InsertToken(token))
				case 1:
					worker := rapid.SampledFrom([]string{"rack-1", "rack-2"}).Draw(r, "worker")
					agree("BindToken", f.store.BindToken(ctx, token.ID, worker), m.BindToken(token.ID, worker))
				case 2:
					agree("UseToken", f.store.UseToken(ctx, token.ID, token.Created), m.UseToken(token.ID, token.Created))
				default:
					agree("DeleteToken", f.store.DeleteToken(ctx, token.ID), m.DeleteToken(token.ID))
				}
			},
			"purge": func(r *rapid.T) {
				before := moment(secondOf(r))
				got, err := f.store.PurgeReceipts(ctx, before)
				agree("PurgeReceipts", err, nil)
				if want := m.Purge(before); got != want {
					r.Fatalf("purged %d receipts, want %d", got, want)
				}
			},
			"": func(r *rapid.T) {
				if got, want := f.picture(r), text(r, m.Picture()); got != want {
					r.Fatalf("the store is\n%s\nwant\n%s", got, want)
				}
			},
		})
	})
}

// clear empties the store, but for architectures, which never go: it returns
// those.
func (f fixture) clear(r *rapid.T) []emu.Architecture {
	ctx := context.WithoutCancel(r.Context())
	p, err := model.Take(ctx, f.store)
	var gone []journal.PoolEntry
	for kind, entries := range p.Pool {
		for _, one := range entries {
			gone = append(gone, journal.PoolEntry{Kind: kind, Name: one.Name})
		}
	}
	for i := 0; err == nil && i < len(p.Studies); i++ {
		err = f.store.Apply(ctx, journal.Change{Delete: p.Studies[i].ID})
	}
	if err == nil {
		err = f.store.Apply(ctx, journal.Change{Forget: pointer(""), Pool: gone})
	}
	for i := 0; err == nil && i < len(p.Tokens); i++ {
		err = f.store.DeleteToken(ctx, p.Tokens[i].ID)
	}
	if err == nil {
		_, err = f.store.PurgeReceipts(ctx, moment(59))
	}
	if err != nil {
		r.Fatalf("empty the store: %v", err)
	}
	return p.Architectures
}
