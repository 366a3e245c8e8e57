package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/web/export"
	"github.com/tandem-tune/tandem/web/openapi"
)

// keepSamples stores samples as an artifact, then has the trial refer to it.
func (s artifactAPI) keepSamples(ctx context.Context, input *leaseInput[protocol.SampleBatch]) (*nothing, error) {
	data := input.Body.Data
	read, err := series.Decode(data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	if _, err := s.artifacts.Put(ctx, name, bytes.NewReader(data), int64(len(data))); err != nil {
		return nil, err
	}
	return nil, s.studies.KeepSamples(ctx, input.Trial, trial.Samples{LeaseEpoch: input.Body.LeaseEpoch, Artifact: name, Bytes: int64(len(data)), Seconds: read.Total()})
}

type samplesInput struct {
	TrialRef
	Format string `query:"format" enum:"json,csv,openmetrics" default:"json" doc:"json: columns of each lease; csv: a line a sample, with the system configuration; openmetrics: gauges with times"`
}

// describeSamples describes the formats.
func describeSamples(operation *huma.Operation, registry huma.Registry) {
	operation.Description = "At most 1,024 samples a lease: beyond that, neighbours are merged into longer ones. A trial under a second has none, and one of a worker with --no-profile."
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	operation.Responses["200"] = &huma.Response{Description: "The samples", Content: map[string]*huma.MediaType{
		"application/json": {Schema: openapi.SchemaOf[protocol.TrialSamples](registry)}, "text/csv": text, "application/openmetrics-text": text,
	}}
}

func (s artifactAPI) samples(ctx context.Context, input *samplesInput) (*textAnswer, error) {
	detail, err := s.studies.TrialDetail(ctx, input.Study, input.Number)
	if err != nil {
		return nil, err
	}
	all := export.Sampled{Study: input.Study, Detail: detail, TrialSamples: protocol.TrialSamples{Leases: []protocol.LeaseSamples{}}}
	for _, one := range detail.Trial.Samples {
		read, err := s.readSamples(one)
		if err != nil {
			return nil, err
		}
		all.Leases = append(all.Leases, protocol.LeaseSamples{LeaseEpoch: one.LeaseEpoch, Rung: one.Rung, Worker: one.Worker, Series: read})
	}
	var body bytes.Buffer
	kind := "application/json"
	switch input.Format {
	case "csv":
		kind, err = "text/csv; charset=utf-8", export.SamplesCSV(all, &body)
	case "openmetrics":
		kind, err = "application/openmetrics-text; version=1.0.0; charset=utf-8", export.OpenMetrics(all, &body)
	default:
		err = json.NewEncoder(&body).Encode(all.TrialSamples)
	}
	return &textAnswer{ContentType: kind, Body: body.Bytes()}, err
}

func (s artifactAPI) readSamples(of trial.Samples) (series.Series, error) {
	stored, _, err := s.artifacts.Open(of.Artifact)
	if err != nil {
		return series.Series{}, err
	}
	defer stored.Close()
	packed, err := io.ReadAll(stored)
	if err != nil {
		return series.Series{}, err
	}
	return series.Decode(packed)
}
