package demandlog_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/store/demandlog"
	"github.com/tandem-tune/tandem/workers/demand"
)

var start = time.Date(2026, 3, 1, 23, 58, 0, 0, time.UTC)

func minute(number int) demand.Minute {
	return demand.Minute{
		At: start.Add(time.Duration(number) * time.Minute), Want: demand.Want{Running: float64(number), Waiting: 1}, Capacity: 8,
		Owners: map[string]demand.Want{"": {Running: float64(number)}, "alice": {Waiting: 1}}, Told: []float64{0.5, 2.25},
	}
}

func open(t *testing.T, folder string) *demandlog.Log {
	t.Helper()
	log, err := demandlog.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func TestARestartLosesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "demand")
	var want []demand.Minute
	for run := range 3 { // over midnight
		log := open(t, folder)
		for i := range 2 {
			want = append(want, minute(2*run+i))
			if err := log.Append(want[len(want)-1]); err != nil {
				t.Fatal(err)
			}
		}
		got, broken, err := open(t, folder).Read(start)
		if err != nil || broken != 0 || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v, %d broken: %v", got, want, broken, err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 2 {
		t.Errorf("%v: %v", files, err)
	}
}

func TestALineThatIsBrokenIsAGap(t *testing.T) {
	folder := t.TempDir()
	log := open(t, folder)
	for i := range 2 {
		if err := log.Append(minute(i)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "2026-03-01.jsonl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content[:len(content)-20], 0o600); err != nil { // the power was lost
		t.Fatal(err)
	}
	after := open(t, folder)
	late := minute(1)
	late.Running = 7
	if err := after.Append(late); err != nil {
		t.Fatal(err)
	}
	got, broken, err := after.Read(start)
	if err != nil || broken != 1 || !reflect.DeepEqual(got, []demand.Minute{minute(0), late}) {
		t.Errorf("%+v, %d broken: %v", got, broken, err)
	}
}

func TestOldFilesAreDeletedAndOthersLeftAlone(t *testing.T) {
	folder := t.TempDir()
	log := open(t, folder)
	for _, number := range []int{0, 10 * 24 * 60, 29 * 24 * 60} {
		if err := log.Append(minute(number)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, broken, err := log.Read(start.AddDate(0, 0, 30))
	if err != nil || broken != 0 || len(got) != 2 || !got[0].At.Equal(minute(10*24*60).At) {
		t.Errorf("%+v, %d broken: %v", got, broken, err)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 3 {
		t.Errorf("%v: %v", files, err)
	}
}
