// Package usecases is what the interface asks of the studies.
package usecases

import (
	"context"
	"encoding/json"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/team"
	"github.com/tandem-tune/tandem/trial"
)

// OfStudies create, change and show studies. study.Service has them.
type OfStudies interface {
	CreateWarm(ctx context.Context, def definition.Definition, prior []protocol.Observation) (protocol.StudyView, error)
	Studies(ctx context.Context) ([]protocol.StudyView, error)
	Study(ctx context.Context, ref string) (protocol.StudyView, error)
	Enqueue(ctx context.Context, ref string, request protocol.EnqueueRequest) (protocol.EnqueueReply, error)
	Pause(ctx context.Context, ref string) (protocol.StudyView, error)
	Resume(ctx context.Context, ref string) (protocol.StudyView, error)
	Stop(ctx context.Context, ref string) (protocol.StudyView, error)
	Extend(ctx context.Context, ref string, more protocol.ExtendRequest) (protocol.StudyView, error)
	Set(ctx context.Context, ref string, wanted protocol.SetRequest) (protocol.StudyView, error)
	Delete(ctx context.Context, ref string) error
	Transfer(ctx context.Context, ref string, to protocol.Ownership) (protocol.StudyView, error)
	AnnotateStudy(ctx context.Context, ref string, amendment trial.Amendment) (trial.Annotation, error)
}

// OfAnalyses analyse the results of a study.
type OfAnalyses interface {
	Recommendation(ctx context.Context, ref string) (protocol.Recommendation, error)
	Pareto(ctx context.Context, ref string) (protocol.Pareto, error)
	Importance(ctx context.Context, ref string, query protocol.ImportanceQuery) (protocol.Importance, error)
	Advice(ctx context.Context, ref string) (protocol.Advice, error)
	Correlations(ctx context.Context, ref string) (protocol.Correlations, error)
	Measurements(ctx context.Context, ref string, points int) (protocol.Measurements, error)
	EdgeOverview(ctx context.Context, ref string) (protocol.EdgeOverview, error)
}

// OfTrials show trials and their history.
type OfTrials interface {
	Trials(ctx context.Context, ref string, query protocol.TrialQuery) (protocol.TrialPage, error)
	EachTrial(ctx context.Context, ref string, visit func(protocol.RankedTrial) error) error
	TrialDetail(ctx context.Context, ref string, number int) (protocol.TrialDetail, error)
	Deployments(ctx context.Context, ref string, number int) (protocol.Deployments, error)
	AnnotateTrial(ctx context.Context, ref string, number int, amendment trial.Amendment) (trial.Annotation, error)
	Log(ctx context.Context, ref string, number int) (string, error)
	LoggedArtifact(ctx context.Context, ref string, number int, name string) (trial.Artifact, error)
	Reach(ctx context.Context, ref string) error
	Followed(ctx context.Context, ref string) (owner string, last journal.Position, err error)
	Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error)
	WaitEvents(ctx context.Context, ref string, after int64) error
}

// OfCharts return the data of charts of a study.
type OfCharts interface {
	Columns(ctx context.Context, ref string, query protocol.ColumnsQuery) (protocol.Columns, error)
	Curves(ctx context.Context, ref string, query protocol.CurvesQuery) (protocol.Curves, error)
	Timeline(ctx context.Context, ref string, events int) (protocol.Timeline, error)
	PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error)
	Deflation(ctx context.Context, ref string) (protocol.StudyDeflation, error)
}

// OfWorkers register workers, take their heartbeats and show them.
type OfWorkers interface {
	RegisterWorker(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error)
	Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error)
	Excuse(ctx context.Context, worker string)
	RemoveWorker(ctx context.Context, worker string) error
	Gone(ctx context.Context, worker string, told protocol.Gone) (protocol.GoneReply, error)
	Workers(ctx context.Context) []protocol.Worker
	WorkerHistory(ctx context.Context, worker string) (protocol.WorkerHistory, error)
	Pool(ctx context.Context) (protocol.Pool, error)
	Wanted(ctx context.Context) (crew.PoolWanted, error)
}

// OfSharing divide the workers among users.
type OfSharing interface {
	Quotas(ctx context.Context) ([]protocol.QuotaView, error)
	SetQuota(ctx context.Context, user string, quota protocol.Quota) (protocol.QuotaView, error)
	RemoveQuota(ctx context.Context, user string) error
	Reservations(ctx context.Context) ([]protocol.Reservation, error)
	Reserve(ctx context.Context, ask protocol.ReservationRequest) (protocol.Reservation, error)
	Unreserve(ctx context.Context, id string) error
	Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error)
	Undrain(ctx context.Context, worker string) (protocol.Drained, error)
}

// OfGroups keep the groups of users, and share studies with them.
type OfGroups interface {
	Groups(ctx context.Context) ([]protocol.UserGroup, error)
	SetGroup(ctx context.Context, name string, ask protocol.UserGroupRequest) (protocol.UserGroup, error)
	RemoveGroup(ctx context.Context, name string) error
	Share(ctx context.Context, ref string, with protocol.Sharing) (protocol.Sharing, error)
	Identify(ctx context.Context, wanted string, identity team.Identity) (user string, err error)
	ForgetIdentity(ctx context.Context, user string) error
	Identities() map[string]team.Identity
}

// OfLeases lease trials to workers and take their results.
type OfLeases interface {
	Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error)
	Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error)
	CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error
	Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error)
	Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error)
	Finish(ctx context.Context, id trial.ID, request protocol.FinishRequest) (protocol.FinishReply, error)
	AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error
	// KeepSamples keeps samples that are stored as an artifact.
	KeepSamples(ctx context.Context, id trial.ID, samples trial.Samples) error
	// LogArtifact keeps an uploaded artifact as a file of the trial.
	LogArtifact(ctx context.Context, id trial.ID, log protocol.ArtifactLog) error
	// Uploaded notes that the caller uploaded an artifact.
	Uploaded(ctx context.Context, sha256 string, bytes int64, sealed bool)
	// CheckArtifact returns not_found unless the caller may read the artifact.
	CheckArtifact(ctx context.Context, sha256 string) error
}

// OfKnowledge show and exchange the ground truth of workloads and the inference
// results of architectures.
type OfKnowledge interface {
	GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error)
	GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error)
	GroundTruthRuns(ctx context.Context, machine string, limit, offset int) (protocol.GroundTruthRuns, error)
	GroundTruthClusters(ctx context.Context, machine, key string) (protocol.GroundTruthClusters, error)
	ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error)
	ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error)
	Architectures(ctx context.Context, limit int) (protocol.Architectures, error)
}

// OfDatasets keep encrypted data sets.
type OfDatasets interface {
	PublishDataset(ctx context.Context, ask protocol.DatasetRequest) (protocol.Dataset, error)
	Datasets(ctx context.Context) ([]protocol.Dataset, error)
	DeleteDataset(ctx context.Context, artifact string) error
	// CheckDatasets refuses a study with a data set that its owner has not published.
	CheckDatasets(ctx context.Context, def definition.Definition) error
}

// OfBoards have boards measure models.
type OfBoards interface {
	AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error)
	ReportBoard(ctx context.Context, sent emu.BoardRuns) (protocol.ArchitecturesImported, error)
	Boards(ctx context.Context) (emu.Boards, error)
	// CheckBoards names the boards of a study that nobody has heard of.
	CheckBoards(def definition.Definition) error
}

// OfBackends keep backends, and choose of them for models.
type OfBackends interface {
	SetBackend(ctx context.Context, name string, offer backend.BackendOffer) (backend.Backend, error)
	RemoveBackend(ctx context.Context, name string) error
	Backends(ctx context.Context) ([]backend.Backend, error)
	ChooseBackend(ctx context.Context, ref string, number *int, priority string) (backend.BackendChoice, error)
}

// Receipts finds the answers of earlier calls by their idempotency keys.
type Receipts interface {
	Receipt(ctx context.Context, key, request string) (answer json.RawMessage, found bool, err error)
}

// All are the use cases that the handlers call.
type All struct {
	OfStudies
	OfAnalyses
	OfTrials
	OfCharts
	OfWorkers
	OfSharing
	OfGroups
	OfLeases
	OfKnowledge
	OfDatasets
	OfBoards
	OfBackends
	Receipts
}

// New returns the use cases of the service, which has all of them.
func New(service *study.Service) All {
	return All{service, service, service, service, service, service, service, service, service, service, service, service, service}
}
