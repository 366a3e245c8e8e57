package study

import (
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// directive is what a holder of the trial has to do now: what the study wants of
// it, unless it has to make way.
func (s *Service) directive(r *session.Session, t trial.Trial) protocol.Directive {
	directive := r.Directive(t)
	if directive.Action != protocol.Continue {
		return directive
	}
	if reason := s.allocator.PauseReason(t.ID, t.LeaseEpoch, t.Worker); reason != "" {
		return protocol.Directive{Action: protocol.Pause, Reason: reason}
	}
	return directive
}
