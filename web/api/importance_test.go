package api_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestAnalysesArriveAsTheyWereMade asks for every kind of analysis over HTTP,
// and compares what arrives with what the service says.
func TestAnalysesArriveAsTheyWereMade(t *testing.T) {
	s := newStage(t)
	client, worker, ctx := s.client(auth.Admin), s.worker(), t.Context()
	if _, err := client.CreateStudy(ctx, []byte(strings.Replace(smallStudy, "trials: 4", "trials: 40", 1)), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	for {
		reply, err := worker.Lease(ctx, protocol.LeaseRequest{Worker: workerID})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Lease == nil {
			break
		}
		rate, _ := reply.Lease.Params["rate"].Number()
		s.train(worker, *reply.Lease, trial.Float(math.Abs(math.Log10(rate)+1)))
	}
	number := func(n int) *int { return &n }
	for _, query := range []protocol.ImportanceQuery{{}, {Rung: number(0)}, {Rung: number(1)}} {
		came, err := client.Importance(ctx, "small", query)
		made, wrong := s.studies.Importance(ctx, "small", query)
		if err != nil || wrong != nil || !reflect.DeepEqual(came, made) || len(came.Rungs) == 0 {
			t.Errorf("%+v: %+v came, %+v was made (%v, %v)", query, came, made, err, wrong)
		}
	}
	if _, err := client.Importance(ctx, "none", protocol.ImportanceQuery{}); !problem.Is(err, problem.NotFound) {
		t.Errorf("of no study: %v", err)
	}
}
