package limit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/auth"
)

// PerSecond bounds what clients may take in a second. A zero stands for the
// default, a negative number for no bound.
type PerSecond struct {
	// Requests is how many requests one token may make, 10,000 by default: a
	// token may be that of thousands of workers. One address may make twice as
	// many, as it may be a proxy's. Four times as many may come at once.
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
	// maxPrincipals and maxTrials bound what is remembered.
	maxPrincipals = 10_000
	maxTrials     = 10_000

	// The bytes of bodies that are in memory at once: of urgent calls, of other calls
	// with a token, and of calls by strangers. Each sender has a share.
	maxUrgent    = 128 << 20
	maxBodies    = 120 << 20
	maxStrangers = 8 << 20
	// The requests that stay open at once. Each sender and follower has a share.
	maxFollowers = 8192
	maxUploads   = 128
)

// Clients bounds what the clients of a server may take, and refuses what is too much.
// The refusals are exhausted or unavailable.
type Clients struct {
	limited                  func(bound string)
	tokens, addresses, wrong *Rates
	links                    *Rates
	points                   *Rates
	names                    *Names
	urgent, bodies           *Fair
	strangers                *Fair // without a token, or with a link
	uploads                  *Fair
	streams                  *Fair
	signIns                  *Failures
}

// NewClients returns Clients. now is the clock of sign-ins; rates use the wall clock.
// limited is called with the name of each bound that refuses something.
func NewClients(given PerSecond, now func() time.Time, limited func(bound string)) *Clients {
	requests, points := cmp.Or(given.Requests, defaultRequests), cmp.Or(given.Points, defaultPoints)
	rates := func(second float64, seconds, most int) *Rates {
		return NewRates(second, int(math.Ceil(max(second, 1)*float64(seconds))), most, time.Now)
	}
	return &Clients{
		limited: limited,
		tokens:  rates(requests, requestBurst, maxPrincipals), addresses: rates(2*requests, requestBurst, maxOrigins),
		wrong:  NewRates(wrongTokens, wrongBurst, maxOrigins, time.Now),
		points: rates(points, pointBurst, maxTrials), names: NewNames(maxNames, maxTrials),
		links:  NewRates(linkRequests, linkBurst, maxPrincipals, time.Now),
		urgent: NewFair(maxUrgent), bodies: NewFair(maxBodies), strangers: NewFair(maxStrangers), uploads: NewFair(maxUploads),
		streams: NewFair(maxFollowers), signIns: NewFailures(now),
	}
}

// refuse counts the bound that was met, and returns the refusal.
func (c *Clients) refuse(bound string, refusal error) error {
	c.limited(bound)
	return refusal
}

// TakeAddress counts a request of an address. One that has made too many stays open to
// tokens that are known: others may have the same address.
func (c *Clients) TakeAddress(remote string, known func() bool) error {
	if wait := c.addresses.Take(Origin(remote).String(), 1); wait > 0 && !known() {
		return c.refuse("address", answer.TooMuch(wait, "too many requests from this address"))
	}
	return nil
}

// TakeToken counts a request of a token; a token's sessions count as it does. A
// link has a bound of its own, too.
func (c *Clients) TakeToken(token auth.Token) error {
	principal := token.Principal()
	if token.Scope == auth.Link {
		if wait := c.links.Take(principal, 1); wait > 0 {
			return c.refuse("link", answer.TooMuch(wait, "too many requests with this link"))
		}
	}
	if wait := c.tokens.Take(principal, 1); wait > 0 {
		return c.refuse("token", answer.TooMuch(wait, "too many requests with this token"))
	}
	return nil
}

// TakeWrong counts a request with a token that opens nothing. It returns the refusal of
// the token, or that of the address.
func (c *Clients) TakeWrong(remote string, refusal error) error {
	if wait := c.wrong.Take(Origin(remote).String(), 1); wait > 0 {
		return c.refuse("wrong_token", answer.TooMuch(wait, "too many wrong tokens from this address"))
	}
	return refusal
}

// TakeReport counts the values that a trial reports. It counts by lease, so that a
// worker that has lost the trial takes nothing from the one that has it.
func (c *Clients) TakeReport(id trial.ID, report protocol.Report) error {
	key := fmt.Sprintf("%s/%d", id, report.LeaseEpoch)
	if wait := c.points.Take(key, len(report.Metrics)); wait > 0 {
		return c.refuse("points", answer.TooMuch(wait, "trial %s reports more values than are taken in a second: report less often, or fewer metrics", id))
	}
	if !c.names.Admit(key, maps.Keys(report.Metrics)) {
		return c.refuse("names", problem.WithFields("the report is not valid", []problem.Field{{Path: "metrics",
			Message: fmt.Sprintf("a trial may report at most %d different metrics: a name must not have a step or a time in it", maxNames)}}))
	}
	return nil
}

// TakeStream holds the place of an event stream until it ends. All tokens of a
// user count together, and so do all links to the studies of one owner: nobody has
// more places by having more of them.
func (c *Clients) TakeStream(token auth.Token, owner string) (give func(), err error) {
	key := "token:" + token.Principal()
	switch token.Scope {
	case auth.User:
		key = "user:" + token.Name
	case auth.Link:
		key = "links:" + owner
	case auth.Admin, auth.Viewer, auth.Worker, auth.Launcher, auth.Enrolment, auth.Device:
	}
	if !c.streams.Take(key, 1) {
		return nil, c.refuse("streams", problem.New(problem.Unavailable, "too many clients follow events: try again later"))
	}
	return func() { c.streams.Give(key, 1) }, nil
}

// TakeUpload holds the place of an upload until it ends. places returns how many its
// sender holds.
func (c *Clients) TakeUpload(sender string) (give func(), places func() int64, err error) {
	if !c.uploads.Take(sender, 1) {
		return nil, nil, c.refuse("uploads", problem.New(problem.Unavailable, "too many uploads at once: try again"))
	}
	return func() { c.uploads.Give(sender, 1) }, func() int64 { return c.uploads.HeldBy(sender) }, nil
}

// TakeBody holds the memory of a body that comes with the token. grow takes so many bytes
// in all, and give gives them back. sender holds the token; strangers count by address.
// Urgent calls have memory of their own.
func (c *Clients) TakeBody(token auth.Token, sender, remote string, urgent bool) (grow func(to int64) error, give func()) {
	of, held := c.bodies, int64(0)
	switch {
	case token.ID == "" || token.Scope == auth.Link:
		of, sender = c.strangers, Origin(remote).String()
	case urgent:
		of = c.urgent
	}
	grow = func(to int64) error {
		if !of.Take(sender, to-held) {
			return c.refuse("bodies", problem.New(problem.Unavailable, "too much is being sent to this server at once: try again"))
		}
		held = to
		return nil
	}
	return grow, func() { of.Give(sender, held) }
}

// TakeSignIn counts a sign-in that failed. It returns the refusal of the token, or that
// of the address. Right tokens are not counted: strangers at their address do not shut
// them out.
func (c *Clients) TakeSignIn(from string, refusal error) error {
	if !problem.Is(refusal, problem.Unauthorized) {
		return refusal
	}
	if wait := c.signIns.Wait(from); wait > 0 {
		return c.refuse("sign_in", answer.TooMuch(wait, "too many failed sign-ins from this address: wait for %v", wait.Round(time.Second)))
	}
	c.signIns.Failed(from)
	return refusal
}
