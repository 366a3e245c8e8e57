package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// moment is a time with nanoseconds, which a careless store loses.
func moment(seconds int) time.Time {
	return time.Date(2026, time.March, 29, 0, 59, seconds, 123_456_789, time.UTC)
}

func pointer[T any](value T) *T { return &value }

// studyFile has every kind of section, so that all of a definition is stored.
const studyFile = `
description: "quotes ' and \", a line\nbreak, ünïcode ☃ and a tab\t"
command: [python, train.py]
directory: examples
environment: {DATA: "a'b"}
epoch_timeout_seconds: 2.5
objective: {metric: accuracy, direction: maximize, target: 0.9}
space:
  rate:      {type: float, low: 1e-4, high: 1e-1, log: true}
  layers:    {kind: model, type: int, low: 1, high: 9, step: 2}
  optimizer: {values: [sgd, adam, 1, 2.0, true]}
  momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
forbidden:
  - {layers: [1, 3], optimizer: adam}
system: {cpu_threads: 2}
budget: {policy: multi, epochs: {min: 1, max: 27}, data_fraction: {min: 0.1, max: 1}, eta: 3}
search: {method: bohb, seed: 9007199254740991}
stop: {trials: 60, seconds: 3600, target_reached: true}
retry: {failures: 2}
priority: -3
`

// full is a definition in which every section is used.
func full(t testing.TB, name string) definition.Definition {
	t.Helper()
	parsed, err := studyfile.Parse([]byte("name: "+name+"\n"+studyFile), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// sampleStudy is a running study with little in it.
func sampleStudy(id, name string) journal.Study {
	return journal.Study{
		ID: id, Definition: definition.Definition{Name: name}, Status: protocol.StudyRunning, Reason: "created by o'brien",
		Created: moment(0), Elapsed: 90*time.Minute + 1, Since: pointer(moment(1)),
	}
}

func trialID(studyID string, number int) trial.ID {
	return trial.ID(fmt.Sprintf("%s-%d", studyID, number))
}

// sampleTrial is a trial under lease 1 in which every field is set.
func sampleTrial(studyID string, number int, state trial.State) trial.Trial {
	return trial.Trial{
		ID: trialID(studyID, number), Study: studyID, Number: number, Origin: "model", Seed: math.MaxUint64,
		Configuration: space.Configuration{
			"rate": space.Float(1), "layers": space.Int(1), "optimizer": space.String("sgd 'x'"), "nesterov": space.Bool(true),
		},
		State: state, LeaseEpoch: 1, Worker: "worker ☃", Holder: "user:o'brien", Rung: 1, Budget: budget.Budget{Epochs: 3, DataFraction: 0.215443},
		Checkpoint: &trial.Checkpoint{Epoch: 1, Artifact: "ab12", Bytes: math.MaxInt64},
		Results:    []trial.Result{{Budget: budget.Budget{Epochs: 1, DataFraction: 0.1}, Values: []trial.Float{trial.Float(math.NaN())}, At: pointer(moment(3))}},
		Epochs:     1, LastEpoch: 1, Last: map[string]trial.Float{"loss": trial.Float(math.Inf(1))},
		Seconds: 1.5, Energy: trial.Energy{Joules: 3.25, Method: "rapl"},
		Failures: 1, Losses: 2, Explained: 1, Attestation: &trial.Attestation{State: trial.KeyRefused, LeaseEpoch: 1, Since: moment(3), Code: "revoked", Kept: true, Released: 2, Refused: 1}, LostOn: []string{"w1", "w2"}, Reason: "because",
		Created: moment(2), Started: pointer(moment(3)), Finished: pointer(moment(4)), Promotions: 1, Resumes: 1,
		Annotation: trial.Annotation{Tags: []string{"baseline", "ünïcode"}, Note: "o'brien says\n\t☃"},
	}
}

func sampleReport(id trial.ID, rung, epoch int) trial.Report {
	return trial.Report{
		Trial: id, Rung: rung, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": 0.5, "loss": 1e-300},
		Seconds: 0.1, Energy: trial.Energy{Joules: 2, Method: "estimate: 10 W a core"}, LeaseEpoch: 1, Worker: "w", At: moment(5),
		Profile: &trial.Profile{
			Level: "user mode only", RunFraction: 0.25, Events: map[string]trial.Float{"L1-dcache-loads": 1.5e9}, Host: map[string]trial.Float{"tree.cpu_user": 0},
		},
	}
}

// sampleEvent is an event of the study alone.
func sampleEvent(studyID string, sequence int64) journal.Event {
	return journal.Event{Study: studyID, Sequence: sequence, At: moment(6), Kind: journal.StatusChange, State: "running", Reason: "resumed"}
}

// trialEvent is an event about a trial, with data.
func trialEvent(studyID string, sequence int64, id trial.ID) journal.Event {
	return journal.Event{
		Study: studyID, Sequence: sequence, At: moment(7), Kind: journal.TrialState, Trial: id, State: "leased",
		Worker: "w", Reason: "it's free", Data: json.RawMessage(`{"b":1,"a":[1.0,"x"]}`),
	}
}

// sampleRecord is a record in which every field is set.
func sampleRecord(id, machine string, seconds int) similarity.Record {
	return similarity.Record{
		ID: id, Machine: machine, Updated: moment(seconds),
		Cells: []similarity.Cell{
			{
				Configuration: system.Configuration{system.Cores: space.Int(2), system.MemoryGiB: space.Float(1), system.CPUGovernor: space.String("o'brien ☃")},
				Neighbours:    1, Epochs: 3, LogSeconds: math.Nextafter(0.1, 1), LogJoules: math.Copysign(0, -1), Variance: 1e-300, Profiles: 4,
				Features: map[string]float64{"L1-dcache-loads": math.MaxFloat64, "tree.cpu_user": math.SmallestNonzeroFloat64},
			},
			{Configuration: system.Configuration{}, Profiles: 1},
		},
	}
}

func sampleReceipt(key string) journal.Receipt {
	return journal.Receipt{Key: key, Request: "5f70bf18", Answer: json.RawMessage(`{"b": 1.0,  "a": "☃"}`), At: moment(8)}
}
