package board_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/board"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// server answers the first questions with an error, and has no orders.
type server struct {
	code   problem.Code
	errors int
	asked  int
}

func (s *server) AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error) {
	if s.asked++; s.asked <= s.errors {
		return emu.BoardReply{}, problem.New(s.code, "another agent asks as board %s already", ask.Board)
	}
	<-ctx.Done()
	return emu.BoardReply{}, ctx.Err()
}

func (s *server) ReportBoard(context.Context, emu.BoardRuns) (protocol.ArchitecturesImported, error) {
	return protocol.ArchitecturesImported{}, nil
}

// An agent that was started anew waits until the server misses the one before; one that is
// refused on and on ends, as it does at once for another reason.
func TestARefusedAgentWaitsAWhile(t *testing.T) {
	for name, test := range map[string]struct {
		server server
		ends   problem.Code
		asked  int
	}{
		"the one before has ended": {server{problem.Conflict, 6, 0}, "", 7},
		"the other one stays":      {server{problem.Conflict, 1000, 0}, problem.Conflict, 10},
		"a wrong token":            {server{problem.Forbidden, 1000, 0}, problem.Forbidden, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := board.Agent{Server: &test.server, Board: "kitchen", Logger: slog.New(slog.DiscardHandler)}.Run(ctx)
				if (err == nil) != (test.ends == "") || err != nil && !problem.Is(err, test.ends) || test.server.asked != test.asked {
					t.Errorf("it ends with %v after %d questions, want %q after %d", err, test.server.asked, test.ends, test.asked)
				}
			})
		})
	}
}
