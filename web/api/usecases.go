package api

import (
	"context"
	"encoding/json"
	"io"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// StudyUseCases create, change and show studies. study.Service has them.
type StudyUseCases interface {
	CreateWarm(ctx context.Context, def definition.Definition, prior []protocol.Observation) (protocol.StudyView, error)
	Studies(ctx context.Context) ([]protocol.StudyView, error)
	Study(ctx context.Context, ref string) (protocol.StudyView, error)
	Enqueue(ctx context.Context, ref string, request protocol.EnqueueRequest) (protocol.EnqueueReply, error)
	Pause(ctx context.Context, ref string) (protocol.StudyView, error)
	Resume(ctx context.Context, ref string) (protocol.StudyView, error)
	Stop(ctx context.Context, ref string) (protocol.StudyView, error)
	Extend(ctx context.Context, ref string, more protocol.ExtendRequest) (protocol.StudyView, error)
	Delete(ctx context.Context, ref string) error
	AnnotateStudy(ctx context.Context, ref string, amendment trial.Amendment) (trial.Annotation, error)
	Recommendation(ctx context.Context, ref string) (protocol.Recommendation, error)
}

// AnalysisUseCases analyse the results of a study.
type AnalysisUseCases interface {
	Pareto(ctx context.Context, ref string) (protocol.Pareto, error)
	Importance(ctx context.Context, ref string, query protocol.ImportanceQuery) (protocol.Importance, error)
	Advice(ctx context.Context, ref string) (protocol.Advice, error)
	Correlations(ctx context.Context, ref string) (protocol.Correlations, error)
	Measurements(ctx context.Context, ref string, points int) (protocol.Measurements, error)
	Trajectory(ctx context.Context, ref string) (protocol.Trajectory, error)
	EdgeOverview(ctx context.Context, ref string) (protocol.EdgeOverview, error)
}

// TrialUseCases show trials and their history.
type TrialUseCases interface {
	Trials(ctx context.Context, ref string, query protocol.TrialQuery) (protocol.TrialPage, error)
	EachTrial(ctx context.Context, ref string, visit func(protocol.RankedTrial) error) error
	TrialDetail(ctx context.Context, ref string, number int) (protocol.TrialDetail, error)
	Deployments(ctx context.Context, ref string, number int) (protocol.Deployments, error)
	AnnotateTrial(ctx context.Context, ref string, number int, amendment trial.Amendment) (trial.Annotation, error)
	Log(ctx context.Context, ref string, number int) (string, error)
	Followed(ctx context.Context, ref string) (owner string, last journal.Position, err error)
	Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error)
	WaitEvents(ctx context.Context, ref string, after int64) error
}

// ChartUseCases return the data of charts of a study.
type ChartUseCases interface {
	Columns(ctx context.Context, ref string, query protocol.ColumnsQuery) (protocol.Columns, error)
	Curves(ctx context.Context, ref string, query protocol.CurvesQuery) (protocol.Curves, error)
	Timeline(ctx context.Context, ref string, events int) (protocol.Timeline, error)
	PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error)
	Deflation(ctx context.Context, ref string) (protocol.StudyDeflation, error)
}

// WorkerUseCases register workers, take their heartbeats and show them.
type WorkerUseCases interface {
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

// SharingUseCases divide the workers among users.
type SharingUseCases interface {
	Quotas(ctx context.Context) ([]protocol.QuotaView, error)
	Quota(ctx context.Context, user string) (protocol.QuotaView, error)
	SetQuota(ctx context.Context, user string, quota protocol.Quota) (protocol.QuotaView, error)
	RemoveQuota(ctx context.Context, user string) error
	Reservations(ctx context.Context) ([]protocol.Reservation, error)
	Reserve(ctx context.Context, ask protocol.ReservationRequest) (protocol.Reservation, error)
	Unreserve(ctx context.Context, id string) error
	Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error)
	Undrain(ctx context.Context, worker string) (protocol.Drained, error)
}

// LeaseUseCases lease trials to workers and take their results.
type LeaseUseCases interface {
	Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error)
	Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error)
	CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error
	Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error)
	Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.Deployments, error)
	Finish(ctx context.Context, id trial.ID, request protocol.FinishRequest) (protocol.FinishReply, error)
	AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error
	// KeepSamples keeps samples that are stored as an artifact.
	KeepSamples(ctx context.Context, id trial.ID, samples trial.Samples) error
	// Uploaded notes that the caller uploaded an artifact.
	Uploaded(ctx context.Context, sha256 string, bytes int64, sealed bool)
	// CheckArtifact returns not_found unless the caller may read the artifact.
	CheckArtifact(ctx context.Context, sha256 string) error
}

// KnowledgeUseCases show and exchange the ground truth of workloads and the inference
// results of architectures.
type KnowledgeUseCases interface {
	GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error)
	GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error)
	GroundTruthRuns(ctx context.Context, machine string, limit, offset int) (protocol.GroundTruthRuns, error)
	GroundTruthClusters(ctx context.Context, machine, key string) (protocol.GroundTruthClusters, error)
	ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error)
	ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error)
	Architectures(ctx context.Context, limit int) (protocol.Architectures, error)
	ImportArchitectures(ctx context.Context, sent protocol.Architectures) (protocol.ArchitecturesImported, error)
}

// DatasetUseCases keep encrypted data sets.
type DatasetUseCases interface {
	PublishDataset(ctx context.Context, ask protocol.DatasetRequest) (protocol.Dataset, error)
	Datasets(ctx context.Context) ([]protocol.Dataset, error)
	DeleteDataset(ctx context.Context, artifact string) error
	// CheckDatasets refuses a study with a data set that its owner has not published.
	CheckDatasets(ctx context.Context, def definition.Definition) error
}

// BoardUseCases have boards measure models.
type BoardUseCases interface {
	AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error)
	ReportBoard(ctx context.Context, sent emu.BoardRuns) (protocol.ArchitecturesImported, error)
	Boards(ctx context.Context) (emu.Boards, error)
	// CheckBoards names the boards of a study that nobody has heard of.
	CheckBoards(def definition.Definition) error
}

// Receipts finds the answers of earlier calls by their idempotency keys.
type Receipts interface {
	Receipt(ctx context.Context, key, request string) (answer json.RawMessage, found bool, err error)
}

// UseCases are all use cases that the handlers call.
type UseCases struct {
	StudyUseCases
	AnalysisUseCases
	TrialUseCases
	ChartUseCases
	WorkerUseCases
	SharingUseCases
	LeaseUseCases
	KnowledgeUseCases
	DatasetUseCases
	BoardUseCases
	Receipts
}

// All returns the use cases of the service, which has all of them.
func All(service *study.Service) UseCases {
	return UseCases{service, service, service, service, service, service, service, service, service, service, service}
}

// Artifacts keeps bytes by their SHA-256, in lower-case hexadecimal.
type Artifacts interface {
	// Put stores what it reads. The error is invalid if the bytes have another
	// hash, exhausted if there are more than limit.
	Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (bytes int64, err error)
	// Open returns the bytes and their number; not_found if there are none.
	Open(sha256 string) (io.ReadCloser, int64, error)
}
