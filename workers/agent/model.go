package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// Models looks at the models that scripts save. The files are hostile until
// proven otherwise: an implementation reads them in a process that is locked in.
type Models interface {
	// Inspect reads the architecture out of an ONNX file.
	Inspect(ctx context.Context, file *os.File) (Architecture, error)
	// Run infers with the model in each setting. It returns what it has when an
	// error ends it early.
	Run(ctx context.Context, file *os.File, cells []protocol.InferenceCell) ([]emu.Run, error)
	// Site is what this machine is made of; nil where that cannot be found out.
	Site() *emu.Site
}

// Architecture is what a model file says.
type Architecture struct {
	Key             string
	Graph           graph.Graph
	ActivationBytes int64
	StoredBytes     int64
}

const (
	// inspectPatience is how long a look at a model may take, and emulationPatience
	// how long a report waits for all that is to be found out.
	inspectPatience   = time.Minute
	emulationPatience = 2 * time.Minute
)

// putModel takes the model that the script trains. What it means is found out
// beside the training.
func (r *run) putModel(body io.Reader) error {
	if r.agent.options.Models == nil {
		r.log.note("the model is not looked at: this worker was started without that (--no-models)")
		return nil
	}
	file, err := r.receive(body)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	if r.emulation != nil {
		r.mutex.Unlock()
		return file.Close() // the same again: a run trains one model
	}
	done := make(chan struct{})
	ctx, stop := context.WithCancel(r.ctx)
	r.emulation, r.stopEmulation = done, stop
	r.mutex.Unlock()
	r.emulating.Go(func() {
		defer close(done)
		defer file.Close()
		if err := r.emulate(ctx, file); err != nil && ctx.Err() == nil {
			r.log.note("the model was not emulated: %v", err)
			if r.agent.news(err.Error()) {
				r.logger.Warn("the model was not emulated; the same is not said again", "error", err)
			}
		}
	})
	return nil
}

// receive keeps the body in a file without a name.
func (r *run) receive(body io.Reader) (*os.File, error) {
	file, err := os.CreateTemp(r.place.Directory, "model-")
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

// emulate finds out what the model is, tells the server, and runs what that asks
// for.
func (r *run) emulate(ctx context.Context, file *os.File) error {
	looking, cancel := context.WithTimeout(ctx, inspectPatience)
	defer cancel()
	models, server := r.agent.options.Models, r.agent.options.Server
	found, err := models.Inspect(looking, file)
	if err != nil {
		return err
	}
	report := protocol.ArchitectureReport{
		LeaseEpoch: r.lease.LeaseEpoch, Key: found.Key, Graph: emu.Anonymous(found.Graph),
		ActivationBytes: found.ActivationBytes, StoredBytes: found.StoredBytes, Site: models.Site(),
	}
	var reply protocol.ArchitectureReply
	err = retry.Do(ctx, retry.CallPatience, r.stalled, func(ctx context.Context) (err error) {
		reply, err = server.Architecture(ctx, r.lease.Trial, report)
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range reply.Deployments {
		r.log.note("on %s an inference of a batch of %d takes %.3g ms (%s)", one.Device, one.Configuration.BatchSize, 1e3*one.LatencySeconds.Value, one.Method)
	}
	if len(reply.Run) == 0 {
		return nil
	}
	running, stop := context.WithTimeout(ctx, emulationPatience)
	defer stop()
	runs, failed := models.Run(running, file, reply.Run)
	inferences := protocol.InferenceReport{LeaseEpoch: r.lease.LeaseEpoch, Key: found.Key, Runs: runs}
	if failed != nil {
		inferences.Failure = script.Truncate(failed.Error(), 4096)
	}
	err = retry.Do(ctx, retry.CallPatience, r.stalled, func(ctx context.Context) error {
		_, err := server.Inferences(ctx, r.lease.Trial, inferences)
		return err
	})
	return errors.Join(failed, err)
}

// endEmulation stops what is still going on when the command has ended.
func (r *run) endEmulation() {
	r.mutex.Lock()
	stop := r.stopEmulation
	r.mutex.Unlock()
	if stop != nil {
		stop()
	}
	r.emulating.Wait()
}

// awaitEmulation waits until what is known of the model is known to the server,
// as the report that follows may need it.
func (r *run) awaitEmulation() {
	r.mutex.Lock()
	done := r.emulation
	r.mutex.Unlock()
	if done == nil {
		return
	}
	timer := time.NewTimer(emulationPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-r.ctx.Done():
	case <-timer.C:
		r.logger.Warn("the emulation of the model takes long: the report does not wait for it any longer")
	}
}
