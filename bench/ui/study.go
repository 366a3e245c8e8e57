package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const studyName = "ten-thousand"

// studyFile has three rungs, of 1, 3 and 9 epochs, and more trials than are made,
// so that it never ends.
const studyFile = `
name: ten-thousand
description: many trials, to look at
command: [nothing]
objective: {metric: accuracy, direction: maximize}
space:
  learning_rate: {type: float, low: 1e-5, high: 1, log: true}
  batch_size:    {type: ordinal, values: [16, 32, 64, 128, 256]}
  optimizer:     {type: categorical, values: [sgd, adam, rmsprop]}
  momentum:      {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
  dropout:       {type: float, low: 0, high: 0.6}
  width:         {kind: model, type: int, low: 8, high: 512, log: true}
  depth:         {kind: model, type: int, low: 1, high: 12}
  weight_decay:  {type: float, low: 1e-7, high: 1e-2, log: true}
budget: {policy: epochs, epochs: {min: 1, max: 9}, eta: 3}
search: {method: %s, seed: 7, brackets: 1}
stop: {trials: 1000000}
`

// made is the study as it was made.
type made struct {
	id      string
	results int
}

// makeStudy lets clients that train nothing work on a study until it has so many
// trials.
func makeStudy(ctx context.Context, client *rest.Client, o options) (made, error) {
	view, err := client.CreateStudy(ctx, fmt.Appendf(nil, studyFile, o.method), "application/yaml")
	if err != nil {
		return made{}, err
	}
	var results atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, o.clients)
	for i := range o.clients {
		group.Go(func() {
			failures[i] = work(ctx, client, fmt.Sprintf("bench-maker-%02d", i), view.ID, func(lease *protocol.Lease) bool {
				results.Add(1)
				return lease.Number < o.trials
			})
		})
	}
	group.Wait()
	return made{id: view.ID, results: int(results.Load())}, errors.Join(failures...)
}

// work leases, reports and finishes trials as the worker until more says no.
func work(ctx context.Context, client *rest.Client, worker, study string, more func(*protocol.Lease) bool) error {
	if _, err := client.Register(ctx, protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		reply, err := client.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: study, WaitSeconds: 10})
		if err != nil {
			return err
		}
		lease := reply.Lease
		if lease == nil {
			return errors.New("the study has nothing to lease")
		}
		for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
			if err := report(ctx, client, lease, epoch); err != nil {
				return err
			}
		}
		if err := finish(ctx, client, lease); err != nil {
			return err
		}
		if !more(lease) {
			return nil
		}
	}
	return ctx.Err()
}

func report(ctx context.Context, client *rest.Client, lease *protocol.Lease, epoch int) error {
	_, err := client.Report(ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 1.5, Energy: &trial.Energy{Joules: 12, Method: "estimate: 7.5 W for each busy core"},
		Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch), "loss": 1 - accuracy(lease, epoch)},
	})
	return err
}

func finish(ctx context.Context, client *rest.Client, lease *protocol.Lease) error {
	_, err := client.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return err
}

// accuracy is best at a learning rate of 0.01 and grows with the epochs.
func accuracy(lease *protocol.Lease, epoch int) trial.Float {
	rate, _ := lease.Params["learning_rate"].Number()
	dropout, _ := lease.Params["dropout"].Number()
	away := math.Log10(rate) + 2
	return trial.Float((0.95 - 0.08*away*away - 0.1*dropout*dropout) * (1 - 0.5*math.Exp(-float64(epoch)/3)))
}
