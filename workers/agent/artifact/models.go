package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// Models looks at the models that scripts save. The files are hostile until
// proven otherwise: an implementation reads them in a process that is locked in.
type Models interface {
	// Inspect reads the architecture out of an ONNX file.
	Inspect(ctx context.Context, file *os.File) (Architecture, error)
	// Run infers with the model in each setting. It returns what it has when an
	// error ends it early. Share is of the time that a setting usually gets.
	Run(ctx context.Context, file *os.File, cells []protocol.InferenceCell, share float64) ([]emu.Run, error)
	// Site is what this machine is made of; nil where that cannot be found out.
	Site() *emu.Site
}

// Architecture is what a model file says.
type Architecture struct {
	Key             string
	Graph           graph.Graph
	ActivationBytes int64
	StoredBytes     int64
	// Skeleton is the model without weights and names; nil where none can be made of
	// it, and NoSkeleton says why.
	Skeleton   []byte
	NoSkeleton string
}

const (
	// inspectPatience is how long a look at a model may take, and settingPatience how much
	// longer its inferences may for each setting: what runs them gives up earlier, and says why.
	inspectPatience = time.Minute
	settingPatience = 15 * time.Second
)

// ModelServer is what is asked and told of models.
type ModelServer interface {
	// Architecture says what a trial trains, Inferences what real inferences of it
	// took here.
	Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error)
	Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error)
}

// Emulation finds out what the model of one run means, beside the training. It is
// safe for concurrent use.
type Emulation struct {
	Models Models // nil: nobody looks at models
	Server ModelServer
	Lease  protocol.Lease
	// Worker is the id of the worker, Bench where it runs models until Leaving ends.
	Worker  string
	Bench   *Bench
	Leaving context.Context
	// Note adds a line to the trial's log, News reports whether a warning is new on
	// this worker, and Stalled is called when the server did not answer an attempt.
	Note    func(format string, args ...any)
	News    func(warning string) bool
	Stalled func(error)
	Logger  *slog.Logger

	mutex   sync.Mutex
	done    chan struct{} // closed when the server knows the architecture; nil without a model
	stop    context.CancelFunc
	working sync.WaitGroup
	// variants are the trained model in precisions, until the last one is there.
	variants []*variant
}

// Take takes the model that the script trains, and keeps it in the folder.
func (e *Emulation) Take(ctx context.Context, body io.Reader, folder string) error {
	if e.Models == nil {
		e.Note("the model is not looked at: this worker was started without that (--no-models)")
		return nil
	}
	file, err := receive(body, folder)
	if err != nil {
		return err
	}
	e.mutex.Lock()
	if e.done != nil {
		e.mutex.Unlock()
		return file.Close() // the same again: a run trains one model
	}
	done := make(chan struct{})
	ctx, stop := context.WithCancel(ctx)
	e.done, e.stop = done, stop
	e.mutex.Unlock()
	e.working.Go(func() {
		defer close(done)
		key, cells, err := e.tell(ctx, file, nil)
		if e.failed(ctx, err); len(cells) == 0 {
			file.Close()
			return
		}
		if !e.Bench.run(key, func() {
			defer file.Close()
			e.failed(e.Leaving, e.measure(e.Leaving, file, key, cells))
		}) {
			file.Close()
			e.Note("this trial does not have its model measured: it waits for that already, or %d others do", mostWaiting)
		}
	})
	return nil
}

// failed says why nothing was found out, unless it was to end.
func (e *Emulation) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	e.Note("the model could not be used: %v", err)
	if e.News(err.Error()) {
		e.Logger.Warn("a model could not be used; the same is not said again", "error", err)
	}
}

// receive keeps the body in a file without a name.
func receive(body io.Reader, folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "model-")
	if err != nil {
		return nil, fmt.Errorf("keep the model: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_, err = io.Copy(file, body)
	switch tooLarge := new(http.MaxBytesError); {
	case errors.As(err, &tooLarge):
		return nil, errors.Join(problem.New(problem.Exhausted, "the model has more than %d bytes", tooLarge.Limit), file.Close())
	case err != nil:
		return nil, errors.Join(problem.New(problem.Invalid, "read the model: %w", err), file.Close())
	}
	return file, nil
}

// tell finds out what the model is and tells the server, which says in what settings
// it shall be run here.
func (e *Emulation) tell(ctx context.Context, file *os.File, precision *trial.Precision) (key string, cells []protocol.InferenceCell, err error) {
	looking, cancel := context.WithTimeout(ctx, inspectPatience)
	defer cancel()
	found, err := e.Models.Inspect(looking, file)
	if err != nil {
		return "", nil, err
	}
	report := protocol.ArchitectureReport{
		LeaseEpoch: e.Lease.LeaseEpoch, Key: found.Key, Graph: emu.Anonymous(found.Graph),
		ActivationBytes: found.ActivationBytes, StoredBytes: found.StoredBytes, Skeleton: found.Skeleton, Site: e.Models.Site(), Precision: precision,
	}
	var reply protocol.ArchitectureReply
	err = retry.Do(ctx, retry.CallPatience, e.Stalled, func(ctx context.Context) (err error) {
		reply, err = e.Server.Architecture(ctx, e.Lease.Trial, report)
		if problem.Is(err, problem.Exhausted) { // nor will it be taken later
			err = problem.New(problem.Invalid, "the server does not take its %d operators: %w", len(report.Graph.Operators), err)
		}
		return err
	})
	for _, one := range reply.Deployments {
		e.Note("on %s an inference of a batch of %d takes %.3g ms (%s)", one.Device, one.Configuration.BatchSize, 1e3*one.LatencySeconds.Value, one.Method)
	}
	if reply.Unmeasured != "" {
		e.Note("the model is not measured: %s", reply.Unmeasured)
	}
	if found.NoSkeleton != "" {
		e.Note("no board can measure the model: %s", found.NoSkeleton)
	}
	return found.Key, reply.Run, err
}

// measure runs the model, and tells the server what that took: by several execution
// providers in turns, as precisions are.
func (e *Emulation) measure(ctx context.Context, file *os.File, key string, cells []protocol.InferenceCell) error {
	if cells[0].Provider != cells[len(cells)-1].Provider {
		return e.takeTurns(ctx, []*variant{{file: file, key: key}}, cells)
	}
	runs, failed := e.run(ctx, file, cells, 1)
	return errors.Join(failed, e.inferred(ctx, key, runs, failed))
}

// run is what the model takes here, in a share of the usual time.
func (e *Emulation) run(ctx context.Context, file *os.File, cells []protocol.InferenceCell, share float64) ([]emu.Run, error) {
	running, stop := context.WithTimeout(ctx, inspectPatience+time.Duration(len(cells))*settingPatience)
	defer stop()
	return e.Models.Run(running, file, cells, share)
}

// inferred tells the server what inferences took here, and what failed.
func (e *Emulation) inferred(ctx context.Context, key string, runs []emu.Run, failed error) error {
	report := protocol.InferenceReport{LeaseEpoch: e.Lease.LeaseEpoch, Worker: e.Worker, Key: key, Runs: runs}
	if failed != nil {
		report.Failure = script.Truncate(failed.Error(), 4096)
	}
	away := func(err error) {
		e.Logger.Warn("the server does not answer; it is told again what the model takes", "error", err)
	}
	return retry.Do(ctx, retry.CallPatience, away, func(ctx context.Context) error {
		_, err := e.Server.Inferences(ctx, e.Lease.Trial, report)
		return err
	})
}

// End stops a look at the model when the command has ended. What is measured goes on.
func (e *Emulation) End() {
	e.mutex.Lock()
	stop, left := e.stop, e.variants
	e.variants = nil
	e.mutex.Unlock()
	closed(left) //nolint:errcheck // files without a name
	if stop != nil {
		stop()
	}
	e.working.Wait()
}

// Await waits until the server knows what the model is, as the report that follows may
// need it. No report waits for the model to be measured.
func (e *Emulation) Await(ctx context.Context) {
	e.mutex.Lock()
	done := e.done
	e.mutex.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
