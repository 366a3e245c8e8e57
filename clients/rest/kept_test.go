package rest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestARefusalThatKeepsLeasesIsToldApart: also when the patience of the call is over.
func TestARefusalThatKeepsLeasesIsToldApart(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"": false, "lost": false, "kept": true} {
		for _, patience := range []time.Duration{-1, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				s := &server{t: t, answer: always(http.StatusServiceUnavailable, "", "Tandem-Leases", header)}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := s.client(func(o *rest.Options) { o.Patience = patience }).Heartbeat(ctx, "worker", protocol.Heartbeat{})
				if errors.As(err, new(protocol.Kept)) != want || !problem.Is(err, problem.Unavailable) {
					t.Errorf("%q with a patience of %v: %v", header, patience, err)
				}
			})
		}
	}
}
