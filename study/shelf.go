package study

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// shelveAfter is how long a study that is over stays in memory unused.
const shelveAfter = 10 * time.Minute

// shelve drops from memory what the store has too, of a study that is over and
// that nobody asked for lately; only what lists show is kept. The next who asks
// for more has it loaded again.
func (r *session) shelve(now time.Time) {
	if r.stale || !r.study.Status.Over() || now.Sub(r.used) < shelveAfter {
		return
	}
	view := r.view(now)
	r.summary = &view
	r.trials, r.queue, r.method, r.stale = nil, nil, nil, true
}

// shelveAll shelves every study that is due.
func (s *Service) shelveAll(now time.Time) {
	for _, r := range s.loaded() {
		r.mutex.Lock()
		r.shelve(now)
		r.mutex.Unlock()
	}
}

// glance is the study as lists show it. It does not count as a use, so a page
// that lists studies keeps none of them in memory.
func (s *Service) glance(ctx context.Context, id string) (protocol.StudyView, error) {
	r, err := s.session(ctx, id)
	if err != nil {
		return protocol.StudyView{}, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for {
		if r.stale && r.summary != nil {
			return *r.summary, nil
		}
		if err := s.refresh(ctx, r); err != nil {
			return protocol.StudyView{}, err
		}
		now := s.options.Now()
		view := r.view(now)
		if r.wait() == nil {
			r.shelve(now)
			return view, nil
		}
	}
}
