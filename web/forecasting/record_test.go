package forecasting_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/demand"
)

// fullStore is a store whose disk may be full.
type fullStore struct {
	*memory.Store
	full error
}

func (f *fullStore) Apply(ctx context.Context, change journal.Change) error {
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
		record := forecasting.NewRecord(store)
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
		if got, err := forecasting.NewRecord(store).Read(t.Context(), recordedMinute(0).At); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v: %v", got, want, err)
		}
	}
	record := forecasting.NewRecord(store)
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
	store.full = errors.New("the disk is full for longer than an entry has minutes")
	for number := range 25 {
		if err := record.Append(t.Context(), recordedMinute(8+number)); !errors.Is(err, store.full) {
			t.Errorf("with a full disk: %v", err)
		}
	}
	store.full = nil
	if err := record.Append(t.Context(), recordedMinute(33)); err != nil {
		t.Fatal(err)
	}
	if got, err := record.Read(t.Context(), recordedMinute(0).At); err != nil || len(got) != 34 {
		t.Errorf("%d minutes, those of the full disk among them: %v", len(got), err)
	}
}

func TestOldDemandIsLetGoOf(t *testing.T) {
	t.Parallel()
	store := memory.New()
	record := forecasting.NewRecord(store)
	for _, number := range []int{0, 10 * 24 * 60, 29 * 24 * 60} {
		if err := record.Append(t.Context(), recordedMinute(number)); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := store.PoolEntries(t.Context(), "demand")
	if err != nil || len(entries) != 2 || entries[0].Name != "2026-03-11T23:50" {
		t.Errorf("%+v: %v", entries, err)
	}
	got, err := record.Read(t.Context(), recordedMinute(40*24*60).At)
	if err != nil || len(got) != 1 {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestTheRecordedDemandIsWrittenInSmallParts: a minute costs the same at the end of an
// hour as at its begin, with as many owners as a minute may have.
func TestTheRecordedDemandIsWrittenInSmallParts(t *testing.T) {
	t.Parallel()
	store := memory.New()
	record := forecasting.NewRecord(store)
	owners := map[string]demand.Want{}
	for i := range demand.MaxOwners {
		owners[fmt.Sprintf("somebody-%03d", i)] = demand.Want{Running: 1.0 / 3, Waiting: float64(i) / 7}
	}
	for number := range 62 {
		one := recordedMinute(number)
		one.Owners = owners
		if err := record.Append(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := store.PoolEntries(t.Context(), "demand")
	if err != nil || len(entries) != 7 { // two minutes of a first one
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, one := range entries {
		if size := len(one.Document); size > 100<<10 {
			t.Errorf("%s has %d bytes", one.Name, size)
		}
	}
}

// TestDemandOfEarlierVersionsIsRead: they kept an hour in an entry; what follows goes
// behind it, in the same hour too.
func TestDemandOfEarlierVersionsIsRead(t *testing.T) {
	t.Parallel()
	store := memory.New()
	document, err := json.Marshal(map[string]any{"minutes": []demand.Minute{recordedMinute(2), recordedMinute(3)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Apply(t.Context(), journal.Change{Pool: []journal.PoolEntry{{Kind: "demand", Name: "2026-03-02T00", Document: document}}}); err != nil {
		t.Fatal(err)
	}
	record := forecasting.NewRecord(store)
	if _, err := record.Read(t.Context(), recordedMinute(4).At); err != nil {
		t.Fatal(err)
	}
	if err := record.Append(t.Context(), recordedMinute(4)); err != nil {
		t.Fatal(err)
	}
	want := []demand.Minute{recordedMinute(2), recordedMinute(3), recordedMinute(4)}
	if got, err := record.Read(t.Context(), recordedMinute(4).At); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	if err := record.Append(t.Context(), recordedMinute(29*24*60)); err != nil {
		t.Fatal(err)
	}
	if entries, err := store.PoolEntries(t.Context(), "demand"); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v: what is old goes", len(entries), err)
	}
}
