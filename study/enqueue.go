package study

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
)

// Enqueue makes the study try configurations before anything its search
// proposes: all of them, or none if one does not fit. They count toward
// stop.trials. A study that is over, or has no trial left for them, is a
// conflict.
func (s *Service) Enqueue(ctx context.Context, ref string, request protocol.EnqueueRequest) (protocol.EnqueueReply, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return protocol.EnqueueReply{}, err
	}
	defer r.leave()
	name := r.study.Definition.Name
	if r.study.Status.Over() {
		return protocol.EnqueueReply{}, problem.New(problem.Conflict,
			"study %s is %s: nothing can be enqueued; create a study with the configurations as search.initial", name, r.study.Status)
	}
	tx := s.begin(r)
	for i, configuration := range request.Configurations {
		if _, err := tx.search(search.Event{Kind: search.Enqueued, Configuration: configuration}); err != nil {
			tx.abandon()
			return protocol.EnqueueReply{}, inRequest(err, i)
		}
	}
	reply := protocol.EnqueueReply{Study: name, Enqueued: len(request.Configurations)}
	if queue, ok := r.method.(search.Queue); ok {
		reply.Waiting = queue.Waiting()
	}
	if err := commit(ctx, s, tx, &reply); err != nil {
		return protocol.EnqueueReply{}, err
	}
	return reply, nil
}

// inRequest says which configuration of the request an error is about.
func inRequest(err error, i int) error {
	var told *problem.Error
	if !errors.As(err, &told) || len(told.Fields) == 0 {
		return err
	}
	faults := make([]problem.Field, len(told.Fields))
	for at, fault := range told.Fields {
		fault.Path = fmt.Sprintf("configurations[%d]%s", i, strings.TrimPrefix(fault.Path, "params"))
		faults[at] = fault
	}
	return problem.WithFields("the configurations do not fit the study's space", faults)
}
