package sqlite_test

import (
	"os"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

func logBytes(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// write makes changes of 64 KiB from one number up to another.
func write(t *testing.T, store *sqlite.Store, from, to int) {
	t.Helper()
	for number := from; number < to; number++ {
		storetest.Apply(t, store, large("s1", number))
	}
}

// 400 changes are 26 MB of data. The log begins anew at 1,000 pages of 4 KiB.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	write(t, store, 0, 400)
	if bytes := logBytes(t, path); bytes > 8<<20 {
		t.Errorf("the log has %d bytes", bytes)
	}
	if done := store.Statistics().Checkpoints; done < 3 {
		t.Errorf("%d checkpoints", done)
	}
}

func TestLogStaysShortUnderReaders(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := store.Events(t.Context(), "s1", 0, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	write(t, store, 0, 550) // 37 MB
	close(done)
	reading.Wait()
	// It waits for the readers at 16 MiB, and if they are slow at 20 and 25.
	if bytes := logBytes(t, path); bytes > 30<<20 {
		t.Errorf("the log has %d bytes", bytes)
	}
}

// A backup reads one state for long: the log grows meanwhile, and begins anew
// afterwards.
func TestLogBeginsAnewBehindALongReader(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	write(t, store, 0, 10)
	reader := raw(t, path)
	execute(t, reader, "BEGIN")
	var count int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM event").Scan(&count); err != nil {
		t.Fatal(err)
	}
	write(t, store, 10, 210)
	grown := logBytes(t, path)
	if grown < 12<<20 {
		t.Fatalf("the log has %d bytes, and cannot hold what the reader must not see yet", grown)
	}
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM event").Scan(&count); err != nil || count != 10 {
		t.Errorf("the reader sees %d events, want 10: %v", count, err)
	}
	execute(t, reader, "ROLLBACK")
	write(t, store, 210, 610)
	if bytes := logBytes(t, path); bytes > grown+8<<20 {
		t.Errorf("the log went on growing, from %d to %d bytes", grown, bytes)
	}
}
