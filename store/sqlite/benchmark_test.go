package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/store/storetest"
)

// BenchmarkApply makes the change of a step (a trial, a report, an event), by
// one writer and by several at a time, each on its own study.
func BenchmarkApply(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			store := open(b, filepath.Join(b.TempDir(), "tandem.db"))
			for writer := range writers {
				storetest.Apply(b, store, storetest.NewStudy(fmt.Sprintf("s%d", writer)))
			}
			before := store.Statistics()
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for writer := range writers {
				group.Go(func() {
					id := fmt.Sprintf("s%d", writer)
					for number := 0; next.Add(1) <= int64(b.N); number++ {
						if err := store.Apply(b.Context(), storetest.Step(id, number)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			after := store.Statistics()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
			b.ReportMetric(float64(after.Changes-before.Changes)/float64(after.Commits-before.Commits), "changes/commit")
		})
	}
}
