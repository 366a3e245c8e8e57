package rest

import (
	"context"
	"strconv"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Architecture says what a trial trains.
func (c *Client) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	var reply protocol.ArchitectureReply
	err := c.write(ctx, id, "architecture", report, &reply)
	return reply, err
}

// Inferences reports what real inferences of it took on the worker.
func (c *Client) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.Deployments, error) {
	var reply protocol.Deployments
	err := c.write(ctx, id, "inferences", report, &reply)
	return reply, err
}

// Deployments says how to run the trial's model on the study's devices.
func (c *Client) Deployments(ctx context.Context, study string, number int) (protocol.Deployments, error) {
	return get[protocol.Deployments](ctx, c, path("studies", study, "trials", strconv.Itoa(number), "deployments"), "")
}
