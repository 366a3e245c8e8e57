package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/trouble"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
)

// keeper is a store of any kind.
type keeper interface {
	study.Store
	journal.LogStore
	auth.Store
}

// stores are those that every promise holds for. Each is opened in a bubble.
var stores = map[string]func(t *testing.T) (opened keeper, closed func() error){
	"memory": func(*testing.T) (keeper, func() error) { return memory.New(), func() error { return nil } },
	"sqlite": func(t *testing.T) (keeper, func() error) {
		opened, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tandem.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return opened, opened.Close
	},
}

// rig is a whole server in simulated time, behind a network without sockets.
type rig struct {
	t       *testing.T
	ctx     context.Context
	store   keeper
	token   string
	network trouble.Network
	server  *http.Server
	ticking sync.WaitGroup
	cancel  context.CancelFunc
	clients []*crossing
	down    func() error
}

// crossing is a client's way to the server.
type crossing struct {
	*rest.Client
	base    *http.Transport
	trouble *trouble.Transport
}

const rigAddress = "127.0.0.1:80" // a name that the server answers to

// onRig runs a test in a bubble with a server on the store.
func onRig(t *testing.T, open func(*testing.T) (keeper, func() error), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t}
		r.ctx, r.cancel = context.WithCancel(t.Context())
		r.store, r.down = open(t)
		artifacts, err := artifact.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if r.token, _, err = auth.Issue(r.ctx, r.store, auth.Request{Name: "test", Scope: auth.Admin}); err != nil {
			t.Fatal(err)
		}
		studies := study.New(r.store, r.store, study.Options{Now: time.Now, Random: sequence(1), LeaseSeconds: 3600, HeartbeatSeconds: 10})
		r.server = api.NewHTTPServer("", api.New(api.Config{
			Studies: useCases(studies), Artifacts: artifacts,
			Config: guard.Config{Tokens: r.store, Now: time.Now, Logger: slog.New(slog.DiscardHandler), UI: http.NotFoundHandler()},
		}), slog.New(slog.DiscardHandler))
		listener := r.network.Listen(rigAddress)
		r.ticking.Go(func() { _ = r.server.Serve(listener) }) // until it is closed
		r.ticking.Go(func() {
			for r.ctx.Err() == nil {
				if err := studies.Tick(r.ctx); err != nil && r.ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
		defer r.close()
		test(r)
	})
}

// sequence are the same random numbers for every server.
func sequence(seed uint64) func() uint64 {
	random, mutex := rand.New(rand.NewPCG(seed, 2)), sync.Mutex{}
	return func() uint64 {
		mutex.Lock()
		defer mutex.Unlock()
		return random.Uint64()
	}
}

func (r *rig) close() {
	for _, client := range r.clients {
		client.trouble.Close()
		client.base.CloseIdleConnections()
	}
	r.cancel()
	if err := r.server.Close(); err != nil {
		r.t.Error(err)
	}
	r.ticking.Wait()
	if err := r.down(); err != nil {
		r.t.Error(err)
	}
}

// client crosses a network with the trouble.
func (r *rig) client(seed uint64, odds trouble.Odds) *crossing {
	base := r.network.Transport()
	c := &crossing{base: base, trouble: trouble.NewTransport(base, seed, odds)}
	var err error
	c.Client, err = rest.New(rest.Options{URL: "http://" + rigAddress, Token: r.token, HTTPClient: &http.Client{Transport: c.trouble}, Patience: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	r.clients = append(r.clients, c)
	return c
}

// train is a worker's life: it trains what it is given until the study is over.
// Every call is one logical operation, tried until it is answered.
func (c *crossing) train(ctx context.Context, worker string) error {
	if _, err := c.Register(ctx, protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1}); err != nil {
		return err
	}
	for {
		reply, err := c.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: "troubled", WaitSeconds: 5})
		if err != nil || reply.StudyFinished {
			return err
		}
		if reply.Lease != nil {
			if err := c.trainLease(ctx, worker, *reply.Lease); err != nil {
				return fmt.Errorf("trial %d: %w", reply.Lease.Number, err)
			}
		}
	}
}

func (c *crossing) trainLease(ctx context.Context, worker string, lease protocol.Lease) error {
	x, _ := lease.Params["x"].Number()
	text := ""
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		time.Sleep(time.Second)
		line := fmt.Sprintf("epoch %d\n", epoch)
		report := protocol.Report{
			LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 1,
			Metrics: map[string]trial.Float{"loss": trial.Float((x - 0.3) * (x - 0.3) / float64(epoch))},
		}
		if _, err := c.Report(ctx, lease.Trial, report); err != nil {
			return err
		}
		if err := c.AppendLog(ctx, lease.Trial, protocol.LogChunk{LeaseEpoch: lease.LeaseEpoch, Offset: int64(len(text)), Text: line}); err != nil {
			return err
		}
		text += line
		state := fmt.Sprintf("the state of trial %d after epoch %d", lease.Number, epoch)
		sum := sha256.Sum256([]byte(state))
		hash := hex.EncodeToString(sum[:])
		if err := c.PutArtifact(ctx, hash, int64(len(state)), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(state)), nil }); err != nil {
			return err
		}
		if err := c.CommitCheckpoint(ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Artifact: hash, Bytes: int64(len(state))}); err != nil {
			return err
		}
		if _, err := c.Heartbeat(ctx, worker, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}); err != nil {
			return err
		}
	}
	_, err := c.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return err
}

const troubledStudy = `
name: troubled
command: [train]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 1, max: 4}, eta: 2}
search: {method: bohb, seed: 3}
stop: {trials: 6}
`

// picture is all that is stored of the study, without the times.
func (r *rig) picture() string {
	r.t.Helper()
	var drawn strings.Builder
	note := func(what string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			r.t.Fatal(err)
		}
		fmt.Fprintf(&drawn, "%s %s\n", what, text)
	}
	stored, err := r.store.Study(r.ctx, "troubled")
	if err != nil {
		r.t.Fatal(err)
	}
	note("study", []any{stored.ID, stored.Status, stored.Reason})
	trials, err := r.store.Trials(r.ctx, stored.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range trials {
		one.Created, one.Started, one.Finished = time.Time{}, nil, nil
		for i := range one.Results {
			one.Results[i].At = nil
		}
		note("trial", one)
		reports, err := r.store.Reports(r.ctx, one.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, report := range reports {
			report.At = time.Time{}
			note("report", report)
		}
		log, err := r.store.Log(r.ctx, one.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		note("log", log)
	}
	events, err := r.store.Events(r.ctx, stored.ID, 0, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, event := range events {
		line := []any{event.Sequence, event.Kind, event.Trial, event.State, event.Worker, event.Reason}
		if event.Kind == journal.Searched {
			line = append(line, event.Data)
		}
		note("event", line)
	}
	return drawn.String()
}

// troubled trains the study with one worker and returns what is stored then.
func troubled(t *testing.T, open func(*testing.T) (keeper, func() error), seed uint64, odds trouble.Odds, met map[trouble.Kind]int) (drawn string) {
	onRig(t, open, func(r *rig) {
		client := r.client(seed, odds)
		if _, err := client.CreateStudy(r.ctx, []byte(troubledStudy), "application/yaml"); err != nil {
			t.Fatal(err)
		}
		if err := client.train(r.ctx, "worker-one"); err != nil {
			t.Fatal(err)
		}
		client.trouble.Wait() // replays that come when all is over
		for kind, count := range client.trouble.Counts() {
			met[kind] += count
		}
		drawn = r.picture()
	})
	return drawn
}

// TestTroubleChangesNothing trains a study behind a network that loses, doubles,
// delays and replays requests, and loses answers when the server has acted:
// what is stored in the end is what an undisturbed worker leaves.
func TestTroubleChangesNothing(t *testing.T) {
	seeds := map[string]int{"memory": effort.ByDay(t, 4, 160), "sqlite": 2}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			met := map[trouble.Kind]int{}
			want := troubled(t, open, 0, trouble.Odds{}, map[trouble.Kind]int{})
			if !strings.Contains(want, `"completed"`) || strings.Count(want, "\nreport ") < 12 {
				t.Fatalf("the undisturbed study is\n%s", want)
			}
			for seed := range seeds[name] {
				if got := troubled(t, open, uint64(seed), trouble.Everything(20*time.Second), met); got != want {
					t.Errorf("seed %d: trouble left\n%s", seed, difference(want, got))
				}
			}
			for kind := range met {
				if met[kind] < 5 {
					t.Errorf("only %d requests were %s: %v", met[kind], kind, met)
				}
			}
			if len(met) != 7 {
				t.Errorf("the trouble was only %v", met)
			}
		})
	}
}

// TestTroubleOfManyWorkersCostsNoResult lets four workers share a grid, so that
// what is trained does not depend on who is first.
func TestTroubleOfManyWorkersCostsNoResult(t *testing.T) {
	const grid = `
name: troubled
command: [train]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 4, max: 4}}
search: {method: grid, grid_points: 12, promotion: none, seed: 3}
stop: {trials: 12}
`
	results := func(seed uint64, odds trouble.Odds) (got map[string]trial.Float) {
		onRig(t, stores["memory"], func(r *rig) {
			if _, err := r.client(seed, odds).CreateStudy(r.ctx, []byte(grid), "application/yaml"); err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range 4 {
				client := r.client(100*seed+uint64(i), odds)
				group.Go(func() {
					err := client.train(r.ctx, fmt.Sprintf("worker-%d", i))
					if err != nil && !problem.Is(err, problem.LeaseLost) {
						t.Error(err)
					}
				})
			}
			group.Wait()
			for _, client := range r.clients {
				client.trouble.Wait()
			}
			stored, err := r.store.Study(r.ctx, "troubled")
			if err != nil {
				t.Fatal(err)
			}
			trials, err := r.store.Trials(r.ctx, stored.ID)
			if err != nil {
				t.Fatal(err)
			}
			got = map[string]trial.Float{}
			for _, one := range trials {
				x, _ := one.Configuration["x"].Number()
				value, measured := one.Value(0)
				if !measured || one.Epochs != 4 || one.Failures != 0 || one.Losses != 0 {
					t.Errorf("seed %d: trial %d has %d epochs, %d failures, %d losses, and is %s", seed, one.Number, one.Epochs, one.Failures, one.Losses, one.State)
				}
				got[fmt.Sprint(x)] = value
			}
		})
		return got
	}
	want := results(0, trouble.Odds{})
	if len(want) != 12 {
		t.Fatalf("the undisturbed results are %v", want)
	}
	for seed := range uint64(effort.ByDay(t, 2, 80)) {
		if got := results(seed, trouble.Everything(20*time.Second)); !maps.Equal(got, want) {
			t.Errorf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

// difference shows the first line in which two texts differ.
func difference(want, got string) string {
	wanted, given := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wanted), len(given)) {
		if wanted[i] != given[i] {
			return fmt.Sprintf("line %d\n%s\nwant\n%s", i, given[i], wanted[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(given), len(wanted))
}
