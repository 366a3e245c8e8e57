package storetest

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/journal"
)

func receiptChecks() []check {
	return []check{
		{"a receipt's answer comes back to the letter", receiptRoundTrip},
		{"receipts are purged by their age", receiptPurge},
	}
}

func receiptRoundTrip(t *testing.T, f fixture) {
	answered, silent := sampleReceipt("key-1"), sampleReceipt("key-2")
	silent.Answer = nil // of a call that answers nothing
	for _, want := range []journal.Receipt{answered, silent} {
		_, err := f.store.Receipt(t.Context(), want.Key)
		wantCode(t, "Receipt before the call", err, problem.NotFound)
		f.apply(t, journal.Change{Receipt: &want})
		got, err := f.store.Receipt(t.Context(), want.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got.Key != want.Key || got.Request != want.Request || string(got.Answer) != string(want.Answer) || !got.At.Equal(want.At) {
			t.Errorf("the receipt is %+v, want %+v", got, want)
		}
	}
	again := sampleReceipt("key-1")
	again.Request = "another"
	f.refuse(t, journal.Change{Receipt: &again}, problem.Conflict)
}

func receiptPurge(t *testing.T, f fixture) {
	for i, key := range model.Keys() {
		one := sampleReceipt(key)
		one.At = moment(9 + i)
		f.apply(t, journal.Change{Receipt: &one})
	}
	for _, one := range []struct {
		name         string
		before       time.Time
		purged, left int
	}{
		{"none is older", moment(9), 0, 3},
		{"one is a nanosecond older", moment(9).Add(1), 1, 2},
		{"again", moment(9).Add(1), 0, 2},
		{"all, by another clock's zone", moment(12).In(time.FixedZone("", -3600)), 2, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			purged, err := f.store.PurgeReceipts(t.Context(), one.before)
			if err != nil || purged != one.purged {
				t.Errorf("purged %d, %v; want %d", purged, err, one.purged)
			}
			p, err := model.Take(t.Context(), f.store)
			if err != nil || len(p.Receipts) != one.left {
				t.Errorf("%d receipts are left, %v; want %d", len(p.Receipts), err, one.left)
			}
		})
	}
	f.apply(t, journal.Change{Receipt: pointer(sampleReceipt("key-1"))}) // a purged key is free again
}
