package api

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/limit"
)

// Limits bound what clients may take in a second. A zero stands for the
// default, a negative number for no bound.
type Limits struct {
	// Requests is how many requests one token may make, 10,000 by default: a
	// token may be that of thousands of workers. One address may make twice as
	// many, as there may be a proxy behind it. Four times as many may come at
	// once.
	Requests float64
	// Points is how many measured values one trial may report, 1,000 by
	// default; ten times as many may come at once.
	Points float64
}

const (
	defaultRequests = 10_000
	defaultPoints   = 1_000
	// requestBurst and pointBurst are how many seconds' worth may come at once.
	requestBurst = 4
	pointBurst   = 10

	// wrongTokens is how many requests a second may come from one address with
	// tokens that open nothing, and wrongBurst how many at once. A right token
	// is not shut out by wrong ones of its neighbours.
	wrongTokens = 10
	wrongBurst  = 600

	// linkRequests is how many requests a second one link may make, and linkBurst
	// how many at once: people look at a study, no fleet works with it.
	linkRequests = 50
	linkBurst    = 500

	// maxNames is how many different metrics a trial may report under a lease.
	maxNames = 1_000
	// maxPrincipals, maxOrigins and maxTrials bound what is remembered.
	maxPrincipals = 10_000
	maxOrigins    = 10_000
	maxTrials     = 10_000

	// The bytes of bodies that are in memory at once: of heartbeats, reports and
	// finishes, of what is sent with a token otherwise, and of what strangers send.
	// Who sends has a share of each.
	maxUrgent    = 128 << 20
	maxBodies    = 120 << 20
	maxStrangers = 8 << 20
	// smallBody is what a body may take before it is counted, so that a short one
	// is never refused for others: connections are bounded, and take more anyway.
	smallBody = 1 << 10
)

// limits are the bounds on what clients may take, with what was taken.
type limits struct {
	tokens, addresses, wrong *limit.Rates
	links                    *limit.Rates
	points                   *limit.Rates
	names                    *limit.Names
	urgent, bodies           *limit.Fair
	strangers                *limit.Fair // without a token, or with a link
	uploads                  *limit.Fair
	streams                  *limit.Fair
	signIns                  *limit.Failures
}

// newLimits returns the limits. now is the clock of sign-ins; what is counted by
// the second goes by time itself.
func newLimits(given Limits, now func() time.Time) limits {
	requests, points := cmp.Or(given.Requests, defaultRequests), cmp.Or(given.Points, defaultPoints)
	rates := func(second float64, seconds, most int) *limit.Rates {
		return limit.NewRates(second, int(math.Ceil(max(second, 1)*float64(seconds))), most, time.Now)
	}
	return limits{
		tokens: rates(requests, requestBurst, maxPrincipals), addresses: rates(2*requests, requestBurst, maxOrigins),
		wrong:  limit.NewRates(wrongTokens, wrongBurst, maxOrigins, time.Now),
		points: rates(points, pointBurst, maxTrials), names: limit.NewNames(maxNames, maxTrials),
		links:  limit.NewRates(linkRequests, linkBurst, maxPrincipals, time.Now),
		urgent: limit.NewFair(maxUrgent), bodies: limit.NewFair(maxBodies), strangers: limit.NewFair(maxStrangers), uploads: limit.NewFair(maxUploads),
		streams: limit.NewFair(maxFollowers), signIns: limit.NewFailures(now),
	}
}

// tooMuch refuses what would be all right later.
func tooMuch(wait time.Duration, format string, args ...any) error {
	return withStatus{problem: problem.New(problem.Exhausted, format, args...), status: http.StatusTooManyRequests, after: wait}
}

// limited tells the monitor which bound was met, and returns the refusal.
func (s *server) limited(bound string, refusal error) error {
	s.monitor.Limited(bound)
	return refusal
}

// takeAddress counts a request of an address. One that has made too many is still
// open to tokens that are known: others may have the same address.
func (s *server) takeAddress(r *http.Request) error {
	wait := s.limits.addresses.Take(limit.Origin(r.RemoteAddr).String(), 1)
	if wait <= 0 {
		return nil
	}
	if _, known := s.recognize(r); known {
		return nil
	}
	return s.limited("address", tooMuch(wait, "too many requests from this address"))
}

// takeToken counts a request of a token; a token's sessions count as it does. A
// link has a bound of its own besides.
func (s *server) takeToken(token auth.Token) error {
	principal := token.Principal()
	if token.Scope == auth.Link {
		if wait := s.limits.links.Take(principal, 1); wait > 0 {
			return s.limited("link", tooMuch(wait, "too many requests with this link"))
		}
	}
	if wait := s.limits.tokens.Take(principal, 1); wait > 0 {
		return s.limited("token", tooMuch(wait, "too many requests with this token"))
	}
	return nil
}

// takeWrong counts a request with a token that opens nothing, and returns what
// it is answered.
func (s *server) takeWrong(r *http.Request, refusal error) error {
	if !problem.Is(refusal, problem.Unauthorized) || r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
		return refusal
	}
	if wait := s.limits.wrong.Take(limit.Origin(r.RemoteAddr).String(), 1); wait > 0 {
		return s.limited("wrong_token", tooMuch(wait, "too many wrong tokens from this address"))
	}
	return refusal
}

// takeReport counts what a trial reports. It is counted by lease, so that a
// worker that has lost the trial takes nothing from the one that has it.
func (s *server) takeReport(id trial.ID, report protocol.Report) error {
	key := fmt.Sprintf("%s/%d", id, report.LeaseEpoch)
	if wait := s.limits.points.Take(key, len(report.Metrics)); wait > 0 {
		return s.limited("points", tooMuch(wait, "trial %s reports more values than are taken in a second: report less often, or fewer metrics", id))
	}
	if !s.limits.names.Admit(key, maps.Keys(report.Metrics)) {
		return s.limited("names", problem.WithFields("the report is not valid", []problem.Field{{Path: "metrics",
			Message: fmt.Sprintf("a trial may report at most %d different metrics: a name must not have a step or a time in it", maxNames)}}))
	}
	return nil
}

// takeStream holds the place of an event stream until it ends. All tokens of a
// user count together, and so do all links to the studies of one owner: nobody has
// more places by having more of them.
func (s *server) takeStream(token auth.Token, owner string) (give func(), err error) {
	key := "token:" + token.Principal()
	switch token.Scope {
	case auth.User:
		key = "user:" + token.Name
	case auth.Link:
		key = "links:" + owner
	case auth.Admin, auth.Viewer, auth.Worker:
	}
	if !s.limits.streams.Take(key, 1) {
		return nil, s.limited("streams", problem.New(problem.Unavailable, "too many clients follow events: try again later"))
	}
	return func() { s.limits.streams.Give(key, 1) }, nil
}

// takeUpload holds the place of an upload until it ends. places is how many its
// sender holds.
func (s *server) takeUpload(token auth.Token) (give func(), places func() int64, err error) {
	key := callerOf(token).Holder
	if !s.limits.uploads.Take(key, 1) {
		return nil, nil, s.limited("uploads", problem.New(problem.Unavailable, "too many uploads at once: try again"))
	}
	return func() { s.limits.uploads.Give(key, 1) }, func() int64 { return s.limits.uploads.HeldBy(key) }, nil
}

// room is the memory that one request's body takes, as it comes.
type room struct {
	of   *limit.Fair
	key  string
	held int64
}

// roomFor is where the memory of the request's body is taken from, and by whom.
func (s *server) roomFor(r *http.Request, found route) *room {
	token := tokenOf(r.Context())
	switch {
	case token.ID == "" || token.Scope == auth.Link:
		return &room{of: s.limits.strangers, key: limit.Origin(r.RemoteAddr).String()}
	case found.urgent():
		return &room{of: s.limits.urgent, key: callerOf(token).Holder}
	}
	return &room{of: s.limits.bodies, key: callerOf(token).Holder}
}

// grow takes so much in all, and reports whether there was room for it.
func (m *room) grow(to int64) bool {
	if !m.of.Take(m.key, to-m.held) {
		return false
	}
	m.held = to
	return true
}

// give gives everything back.
func (m *room) give() {
	if m.held > 0 {
		m.of.Give(m.key, m.held)
	}
}

// takeSignIn counts a sign-in that failed, and returns what it is answered. A right
// token is not asked for: what strangers at its address do does not shut it out.
func (s *server) takeSignIn(from string, refusal error) error {
	if !problem.Is(refusal, problem.Unauthorized) {
		return refusal
	}
	if wait := s.limits.signIns.Wait(from); wait > 0 {
		return s.limited("sign_in", tooMuch(wait, "too many failed sign-ins from this address: wait for %v", wait.Round(time.Second)))
	}
	s.limits.signIns.Failed(from)
	return refusal
}
