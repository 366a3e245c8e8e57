package study_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/backend"
)

// BenchmarkAskBoard asks for a board where nothing is left to measure, beside so many studies
// and backends on as many devices: again, and after something changed.
func BenchmarkAskBoard(b *testing.B) {
	for _, studies := range []int{1, 100, 1000} {
		for _, backends := range []int{1, 20} {
			b.Run(fmt.Sprintf("studies=%d/backends=%d", studies, backends), func(b *testing.B) {
				w := newWorld(b, 1)
				worker := w.box(false)
				for i := range studies {
					name := fmt.Sprintf("study-%d", i)
					w.create("name: example", "name: "+name+"\ninference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 4}}")
					trainedOf(b, w, worker, name, int64(i)+1, func() {})
				}
				for i := range backends {
					if _, err := w.service.SetBackend(w.ctx, fmt.Sprintf("backend-%d", i), backend.BackendOffer{Device: fmt.Sprintf("board/device-%d", i), PricePerHour: 1}); err != nil {
						b.Fatal(err)
					}
				}
				ask := askFor("board", "board/device-0")
				for range 2000 {
					reply, err := w.service.AskBoard(w.ctx, ask)
					if err != nil {
						b.Fatal(err)
					}
					if reply.Order == nil {
						break
					}
					if _, err := w.service.ReportBoard(w.ctx, measured(ask, reply.Order, 0.001)); err != nil {
						b.Fatal(err)
					}
				}
				one := func(b *testing.B) {
					if reply, err := w.service.AskBoard(w.ctx, ask); err != nil || reply.Order != nil {
						b.Fatal(reply, err)
					}
				}
				b.Run("idle", func(b *testing.B) {
					for b.Loop() {
						one(b)
					}
				})
				b.Run("look", func(b *testing.B) {
					for b.Loop() {
						ask.Site.MemoryBytes++ // which changes what is there
						one(b)
					}
				})
			})
		}
	}
}
