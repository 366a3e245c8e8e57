package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
)

// What is sent of a ground truth at once: in bytes half of what a server takes,
// in records what it takes.
const (
	maxImportBytes   = 512 << 10
	maxImportRecords = 2000
)

// GroundTruth returns what runs taught on a type of machine, or on all types if
// it is empty.
func (c PoolCalls) GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error) {
	return get[protocol.GroundTruth](ctx, c.caller, path("ground-truth"), ofMachine(machine).Encode())
}

// GroundTruthMachines sums up what is known of each type of machine.
func (c PoolCalls) GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error) {
	return list[protocol.GroundTruthMachine](ctx, c.caller, "machines", path("ground-truth", "machines"))
}

// ImportGroundTruth sends what another server exported, in as many requests as
// it takes. Each is taken whole or not at all; after an error the reply says
// what became of those before. To send all of it again is harmless.
func (c PoolCalls) ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error) {
	var all protocol.GroundTruthImported
	for first := 0; ; {
		count, err := portion(sent.Records[first:])
		if err != nil {
			return all, err
		}
		part := protocol.GroundTruth{Version: sent.Version, Records: append([]similarity.Record{}, sent.Records[first:first+count]...)}
		reply, err := exchange[protocol.GroundTruthImported](ctx, c.caller, path("ground-truth"), part)
		if err != nil {
			return all, behind(err, first)
		}
		all.Imported += reply.Imported
		all.Skipped += reply.Skipped
		if first += count; first == len(sent.Records) {
			return all, nil
		}
	}
}

// portion is how many of the records fit into a request; at least one.
func portion(records []similarity.Record) (int, error) {
	bytes := 0
	for i, record := range records[:min(len(records), maxImportRecords)] {
		text, err := json.Marshal(record)
		if err != nil {
			return 0, problem.New(problem.Invalid, "encode record %s: %w", record.ID, err)
		}
		if bytes += len(text); bytes > maxImportBytes && i > 0 {
			return i, nil
		}
	}
	return min(len(records), maxImportRecords), nil
}

// behind gives the records in an error their places in the whole, of which the
// request began with the first one.
func behind(err error, first int) error {
	var told *problem.Error
	if first == 0 || !errors.As(err, &told) {
		return err
	}
	moved := *told
	moved.Fields = slices.Clone(told.Fields)
	for i, fault := range moved.Fields {
		place, rest, _ := strings.Cut(strings.TrimPrefix(fault.Path, "records["), "]")
		if at, err := strconv.Atoi(place); err == nil && strings.HasPrefix(fault.Path, "records[") {
			moved.Fields[i].Path = fmt.Sprintf("records[%d]%s", first+at, rest)
		}
	}
	return &moved
}

// ForgetGroundTruth removes what runs taught on a type of machine; on all types
// if it is empty.
func (c PoolCalls) ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error) {
	values := ofMachine(machine)
	if machine == "" {
		values.Set("all", "true")
	}
	return fetch[protocol.GroundTruthForgotten](ctx, c.caller, request{method: http.MethodDelete, path: path("ground-truth"), query: values.Encode()})
}

func ofMachine(machine string) url.Values {
	values := url.Values{}
	if machine != "" {
		values.Set("machine", machine)
	}
	return values
}
