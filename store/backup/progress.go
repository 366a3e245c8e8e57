package backup

import "context"

// Progress is told how far a call has come: what it is doing, and how many bytes
// of how many are done. Total is 0 where that is not known. It is called from the
// goroutine of the call, after each piece that was read.
type Progress func(doing string, done, total int64)

type progressKey struct{}

// WithProgress returns a context with which [Source.Write], [Restore] and [Verify]
// tell how far they are.
func WithProgress(ctx context.Context, tell Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, &meter{tell: tell})
}

// meter counts what a call has moved.
type meter struct {
	tell        Progress
	doing       string
	done, total int64
}

// meterOf is the context's meter; nil where nobody wants to know.
func meterOf(ctx context.Context) *meter {
	found, _ := ctx.Value(progressKey{}).(*meter)
	return found
}

// begin starts a part of the call.
func (m *meter) begin(doing string, total int64) {
	if m != nil {
		m.doing, m.done, m.total = doing, 0, total
		m.tell(m.doing, m.done, m.total)
	}
}

// moved adds bytes.
func (m *meter) moved(bytes int) {
	if m != nil && bytes > 0 {
		m.done += int64(bytes)
		m.tell(m.doing, m.done, m.total)
	}
}
