package tandem

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"
)

// session is this process as a worker: registered, heard of, holding the leases of the
// trials that it runs.
type session struct {
	client *Client
	study  string
	id     string
	ended  chan struct{} // closed by close
	beats  sync.WaitGroup

	mu    sync.Mutex // never held over a call
	slots int
	held  map[string]*leased
}

type lease struct {
	TrialID    string         `json:"trial_id"`
	Study      string         `json:"study"`
	Number     int            `json:"number"`
	LeaseEpoch int64          `json:"lease_epoch"`
	Rung       int            `json:"rung"`
	Budget     budget         `json:"budget"`
	FirstEpoch int            `json:"first_epoch"`
	Params     map[string]any `json:"params"`
	Seed       uint64         `json:"seed"`
	Objectives []string       `json:"objectives"`
	Checkpoint *artifact      `json:"checkpoint"`
}

type budget struct {
	Epochs       int     `json:"epochs"`
	DataFraction float64 `json:"data_fraction"`
	Seconds      float64 `json:"seconds"`
	Joules       float64 `json:"joules"`
}

type artifact struct {
	Artifact string `json:"artifact"`
	Bytes    int64  `json:"bytes"`
}

type directive struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

type heldLease struct {
	TrialID    string `json:"trial_id"`
	LeaseEpoch int64  `json:"lease_epoch"`
}

// open registers this process.
func (c *Client) open(ctx context.Context, study string, slots int) (*session, error) {
	s := &session{client: c, study: study, id: "go-" + rand.Text(), ended: make(chan struct{}), slots: slots, held: map[string]*leased{}}
	every, err := s.register(ctx)
	if err != nil {
		return nil, err
	}
	s.beats.Go(func() { s.beat(every) })
	return s, nil
}

func (s *session) register(ctx context.Context) (time.Duration, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	s.mu.Lock()
	slots := s.slots
	s.mu.Unlock()
	registration := map[string]any{
		"id": s.id, "name": fmt.Sprintf("%.90s, process %d", host, os.Getpid()), "slots": slots,
		"machine": map[string]any{"host": host, "cores": runtime.NumCPU()},
	}
	var timing struct {
		Heartbeat float64 `json:"heartbeat_seconds"`
	}
	err = s.client.to.send(ctx, call{doing: "register as a worker", method: http.MethodPost, path: "/workers", document: registration}, &timing)
	return max(time.Duration(timing.Heartbeat*float64(time.Second)), 10*time.Millisecond), err
}

// reserve says that up to so many trials run at once.
func (s *session) reserve(ctx context.Context, slots int) error {
	s.mu.Lock()
	more := slots > s.slots
	s.slots = max(s.slots, slots)
	s.mu.Unlock()
	if !more {
		return nil
	}
	_, err := s.register(ctx)
	return err
}

// lease waits for a trial; nil means that there is none now, ErrStudyOver that there
// will be none.
func (s *session) lease(ctx context.Context, wait time.Duration) (*Trial, error) {
	var answer struct {
		Lease    *lease `json:"lease"`
		Finished bool   `json:"study_finished"`
	}
	ask := call{doing: "ask for a trial", method: http.MethodPost, path: "/leases", wait: wait,
		document: map[string]any{"worker": s.id, "study": s.study, "wait_seconds": wait.Seconds()}}
	err := s.client.to.send(ctx, ask, &answer)
	if IsCode(err, NotFound) { // the server was started anew, and does not know us any more
		if _, err = s.register(ctx); err == nil {
			err = s.client.to.send(ctx, ask, &answer)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Lease != nil:
		return s.accept(ctx, *answer.Lease)
	case answer.Finished:
		return nil, ErrStudyOver
	}
	return nil, nil
}

func (s *session) accept(ctx context.Context, given lease) (*Trial, error) {
	held := &leased{session: s, id: given.TrialID, epoch: given.LeaseEpoch, wanted: directive{Action: goOn}}
	held.ctx, held.cancel = context.WithCancelCause(ctx)
	folder, err := os.MkdirTemp("", "tandem-")
	held.folder = folder
	s.mu.Lock() // from here on a heartbeat may end it
	s.held[given.TrialID] = held
	s.mu.Unlock()
	if err == nil {
		if given.Checkpoint != nil {
			err = s.client.fetch(held.ctx, *given.Checkpoint, held.directory())
		} else {
			err = os.Mkdir(held.directory(), 0o700)
		}
	}
	if err != nil {
		unusable := ""
		if given.Checkpoint != nil && isDamaged(err) {
			unusable = given.Checkpoint.Artifact
		}
		held.giveBack("could not start it: "+err.Error(), unusable)
		return nil, err
	}
	return newTrial(held.ctx, given, held), nil
}

// release forgets a lease, and ends what runs under it.
func (s *session) release(one *leased, why error) {
	s.mu.Lock()
	if s.held[one.id] == one {
		delete(s.held, one.id)
	}
	s.mu.Unlock()
	one.cancel(why)
	if one.folder != "" {
		_ = os.RemoveAll(one.folder) //nolint:errcheck // what is left of a temporary folder harms nobody
	}
}

func (s *session) all() []*leased {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*leased, 0, len(s.held))
	for _, one := range s.held {
		list = append(list, one)
	}
	return list
}

func (s *session) beat(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), max(every, time.Second))
		if err := s.heartbeat(ctx); IsCode(err, NotFound) {
			_, _ = s.register(ctx) //nolint:errcheck // the next beat finds it out
		}
		cancel()
	}
}

// heartbeat keeps the leases, and hears which are lost and what is wanted.
func (s *session) heartbeat(ctx context.Context) error {
	running := s.all()
	leases := make([]heldLease, 0, len(running))
	for _, one := range running {
		leases = append(leases, heldLease{one.id, one.epoch})
	}
	var answer struct {
		Lost       []string             `json:"lost"`
		Directives map[string]directive `json:"directives"`
	}
	err := s.client.to.send(ctx, call{doing: "send a heartbeat", method: http.MethodPost, path: "/workers/" + s.id + "/heartbeat",
		document: map[string]any{"leases": leases}, patience: -1}, &answer)
	if err != nil {
		return err
	}
	lost := map[string]bool{}
	for _, id := range answer.Lost {
		lost[id] = true
	}
	for _, one := range running {
		if lost[one.id] {
			s.release(one, &Error{Code: LeaseLost, Doing: "keep trial " + one.id, Detail: "the server gave it to another worker"})
		} else if wanted, has := answer.Directives[one.id]; has {
			one.want(wanted)
		}
	}
	return nil
}

// close gives back what is held, and leaves: with its last worker, a study pauses.
func (s *session) close() {
	select {
	case <-s.ended:
		return
	default:
	}
	for _, one := range s.all() {
		one.giveBack("the process that ran it has ended", "")
	}
	close(s.ended)
	s.beats.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	leave := call{doing: "leave the server", method: http.MethodDelete, path: "/workers/" + url.PathEscape(s.id), patience: 2 * time.Second}
	_ = s.client.to.send(ctx, leave, nil) //nolint:errcheck // a server that is gone finds out by itself
}

// leased is the way from a trial to the server, for as long as its lease is held.
type leased struct {
	session *session
	id      string
	epoch   int64
	folder  string
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu     sync.Mutex
	wanted directive
}

func (l *leased) directory() string { return l.folder + "/checkpoint" }

func (l *leased) want(wanted directive) {
	l.mu.Lock()
	l.wanted = wanted
	l.mu.Unlock()
}

func (l *leased) directive(context.Context) (directive, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted, nil
}

func (l *leased) report(ctx context.Context, epoch int, metrics map[string]number, seconds time.Duration) (directive, error) {
	var answer directive
	err := l.post(ctx, fmt.Sprintf("report epoch %d", epoch), "reports", map[string]any{"epoch": epoch, "metrics": metrics, "seconds": seconds.Seconds()}, &answer)
	if err == nil {
		l.want(answer)
	}
	return answer, err
}

// finish ends the lease, and returns the trial's state.
func (l *leased) finish(ctx context.Context, outcome, reason, unusable string) (string, error) {
	document := map[string]any{"outcome": outcome, "reason": fmt.Sprintf("%.4000s", reason)}
	if unusable != "" {
		document["unusable_checkpoint"] = unusable
	}
	var answer struct {
		State string `json:"state"`
	}
	err := l.post(ctx, "finish the trial", "finish", document, &answer)
	l.session.release(l, context.Canceled)
	return answer.State, err
}

// giveBack returns the trial, to go on elsewhere; no word of it is needed.
func (l *leased) giveBack(reason, unusable string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), 5*time.Second)
	defer cancel()
	_, _ = l.finish(ctx, "interrupted", reason, unusable) //nolint:errcheck // else the lease runs out
}

func (l *leased) post(ctx context.Context, doing, part string, document map[string]any, into any) error {
	if err := context.Cause(l.ctx); IsCode(err, LeaseLost) {
		return err
	}
	document["lease_epoch"] = l.epoch
	err := l.session.client.to.send(ctx, call{doing: doing, method: http.MethodPost, path: "/trials/" + url.PathEscape(l.id) + "/" + part, document: document}, into)
	if IsCode(err, LeaseLost) {
		l.session.release(l, err)
	}
	return err
}
