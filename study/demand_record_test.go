package study_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/workers/demand"
)

// fullStore is a store whose disk may be full.
type fullStore struct {
	*memory.Store
	full error
}

func (f *fullStore) Apply(ctx context.Context, change study.Change) error {
	if f.full != nil {
		return f.full
	}
	return f.Store.Apply(ctx, change)
}

func recordedMinute(number int) demand.Minute {
	return demand.Minute{
		At: time.Date(2026, 3, 1, 23, 58, 0, 0, time.UTC).Add(time.Duration(number) * time.Minute), Want: demand.Want{Running: float64(number), Waiting: 1}, Capacity: 8, Powered: 12,
		Owners: map[string]demand.Want{"": {Running: float64(number)}, "alice": {Waiting: 1}}, Told: []float64{0.5, 2.25},
		Knob: &demand.Knob{Served: 1.5, Missed: 0.25, Debt: 3.75},
	}
}

func TestRecordedDemandIsInTheStore(t *testing.T) {
	t.Parallel()
	store := &fullStore{Store: memory.New()}
	var want []demand.Minute
	for run := range 3 { // over midnight, behind a restart each
		record := study.NewDemandRecord(store)
		if _, err := record.Read(t.Context(), recordedMinute(0).At); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			one := recordedMinute(2*run + i)
			want = append(want, one)
			if err := record.Append(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := study.NewDemandRecord(store).Read(t.Context(), recordedMinute(0).At); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v: %v", got, want, err)
		}
	}
	record := study.NewDemandRecord(store)
	if _, err := record.Read(t.Context(), recordedMinute(0).At); err != nil {
		t.Fatal(err)
	}
	store.full = errors.New("the disk is full")
	if err := record.Append(t.Context(), recordedMinute(6)); !errors.Is(err, store.full) {
		t.Errorf("with a full disk: %v", err)
	}
	store.full = nil
	if err := record.Append(t.Context(), recordedMinute(7)); err != nil {
		t.Fatal(err)
	}
	if got, err := record.Read(t.Context(), recordedMinute(0).At); err != nil || len(got) != 8 {
		t.Errorf("%d minutes, the one of the full disk among them: %v", len(got), err)
	}
}

func TestOldDemandIsLetGoOf(t *testing.T) {
	t.Parallel()
	store := memory.New()
	record := study.NewDemandRecord(store)
	for _, number := range []int{0, 10 * 24 * 60, 29 * 24 * 60} {
		if err := record.Append(t.Context(), recordedMinute(number)); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := store.PoolEntries(t.Context(), "demand")
	if err != nil || len(entries) != 2 || entries[0].Name != "2026-03-11T23" {
		t.Errorf("%+v: %v", entries, err)
	}
	got, err := record.Read(t.Context(), recordedMinute(40*24*60).At)
	if err != nil || len(got) != 1 {
		t.Errorf("%+v: %v", got, err)
	}
}
