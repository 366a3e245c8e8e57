package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/idempotency"
	"github.com/tandem-tune/tandem/web/openapi"
)

// route is one line of the table: a method and a path, the scopes that may use it, and
// the handler.
type route struct {
	method, path string
	access       guard.Access
	status       int // of a success
	// kind says how the body is read and how long the answer may last.
	kind        guard.Kind
	id, summary string
	register    registration
	// describe completes the OpenAPI document where the types say too little.
	describe func(*huma.Operation, huma.Registry)
}

// The paths of the API.
const (
	prefix      = "/api/v1"
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
	sessionPath = prefix + "/session"
	studyPath   = prefix + "/studies/{study}"
	trialPath   = studyPath + "/trials/{number}"
	workerPath  = prefix + "/workers/{worker}"
	leasePath   = prefix + "/trials/{trial}"
	truthPath   = prefix + "/ground-truth"
	poolPath    = prefix + "/pool"
	blobPath    = prefix + "/artifacts/{sha256}"
	datasetPath = prefix + "/datasets"
)

// routes is the whole interface.
func (s *server) routes() []route {
	return slices.Concat([]route{
		{"GET", healthPath, guard.Everybody, 200, guard.Call, "health", "Say whether the server can be used", handle(s, healthAPI{s}.health), nil},
		{"GET", readyPath, guard.Everybody, 200, guard.Call, "ready", "Say whether work should be sent to this server", handle(s, healthAPI{s}.readiness), nil},
		{"GET", metricsPath, guard.Onlookers, 200, guard.Stream, "metrics", "Get what monitoring systems watch, in Prometheus' text format", handle(s, healthAPI{s}.metrics), bytesAnswer("text/plain")},
		{"GET", prefix + "/openapi.json", guard.Everybody, 200, guard.Call, "openapi", "This document", handle(s, healthAPI{s}.document), bytesAnswer("application/json")},
		{"POST", sessionPath, guard.Everybody, 204, guard.Secret, "sign-in", "Start a browser's session with a token", handle(s, accessAPI{s}.signIn), nil},
		{"GET", sessionPath, guard.Bearers, 200, guard.Call, "get-identity", "Say whose token this is", handle(s, accessAPI{s}.whoAmI), nil},
		{"DELETE", sessionPath, guard.Bearers, 204, guard.Secret, "sign-out", "End the browser's session, or the user's token", handle(s, accessAPI{s}.signOut), nil},
		{"POST", prefix + "/tokens", guard.Admins, 201, guard.Secret, "create-token", "Create a token", handle(s, accessAPI{s}.createToken), nil},
		{"GET", prefix + "/tokens", guard.Admins, 200, guard.Call, "list-tokens", "List the tokens", handle(s, accessAPI{s}.listTokens), nil},
		{"DELETE", prefix + "/tokens/{token}", guard.Admins, 204, guard.Secret, "delete-token", "Delete a token and its sessions", handle(s, remove[tokenRef](s.Authenticator.Delete)), nil},

		{"POST", prefix + "/studies", guard.Owners, 201, guard.StudyFile, "create-study", "Create a study", handle(s, studyAPI{s}.createStudy), describeCreate},
		{"GET", prefix + "/studies", guard.Readers, 200, guard.Call, "list-studies", "List the studies, the newest first", handle(s, ofList(s.studies.Studies, func(list []protocol.StudyView) studyList { return studyList{list} })), nil},
		{"GET", studyPath, guard.Guests, 200, guard.Call, "get-study", "Get a study by id or name", handle(s, studyAPI{s}.study), nil},
		{"DELETE", studyPath, guard.Owners, 204, guard.Call, "delete-study", "Delete a study and everything of it", handle(s, studyAPI{s}.deleteStudy), nil},
		{"POST", studyPath + "/enqueue", guard.Owners, 200, guard.Call, "enqueue", "Try these configurations before anything the search proposes", handle(s, ofStudy(s.studies.Enqueue)), nil},
		{"POST", studyPath + "/pause", guard.Owners, 200, guard.Call, "pause-study", "Hand out no more trials", handle(s, ofNamed[StudyRef](s.studies.Pause)), nil},
		{"POST", studyPath + "/resume", guard.Owners, 200, guard.Call, "resume-study", "Go on with a paused study", handle(s, ofNamed[StudyRef](s.studies.Resume)), nil},
		{"POST", studyPath + "/stop", guard.Owners, 200, guard.Call, "stop-study", "End a study now", handle(s, ofNamed[StudyRef](s.studies.Stop)), nil},
		{"POST", studyPath + "/extend", guard.Owners, 200, guard.Call, "extend-study", "Let a study go on longer, also one that is over", handle(s, ofStudy(s.studies.Extend)), nil},
		{"POST", studyPath + "/set", guard.Owners, 200, guard.Call, "set-study", "Change a study's priority and how many of its trials run at once", handle(s, ofStudy(s.studies.Set)), nil},
		{"GET", studyPath + "/export", guard.Guests, 200, guard.Stream, "export-study", "Download the trials as CSV, or everything as JSON", handle(s, studyAPI{s}.export), describeExport},
		{"GET", studyPath + "/events", guard.Guests, 200, guard.Stream, "follow-events", "Follow what happens, as server-sent events", handle(s, studyAPI{s}.events), bytesAnswer("text/event-stream")},
		{"GET", studyPath + "/trials", guard.Guests, 200, guard.Call, "list-trials", "List trials, the best first", handle(s, trialAPI{s}.listTrials), nil},
		{"GET", trialPath, guard.Guests, 200, guard.Call, "get-trial", "Get a trial with its reports and its history", handle(s, trialAPI{s}.getTrial), nil},
		{"GET", trialPath + "/deployments", guard.Guests, 200, guard.Call, "get-deployments", "Say how to run the trial's model on the study's devices", handle(s, knowledgeAPI{s}.deployments), nil},
		{"GET", trialPath + "/log", guard.Guests, 200, guard.Call, "get-log", "Get what the trial's command printed", handle(s, trialAPI{s}.getLog), bytesAnswer("text/plain")},
		{"GET", trialPath + "/samples", guard.Guests, 200, guard.Call, "get-samples", "Get what was sampled of a trial about once a second", handle(s, artifactAPI{s}.samples), describeSamples},
		{"GET", trialPath + "/artifacts/{name}", guard.Guests, 200, guard.Stream, "get-trial-artifact", "Download a file that the trial's script logged", handle(s, artifactAPI{s}.getLogged), bytesAnswer("application/octet-stream")},

		{"POST", prefix + "/workers", guard.Runners, 200, guard.Call, "register-worker", "Introduce a worker", handle(s, workerAPI{s}.registerWorker), nil},
		{"GET", prefix + "/workers", guard.Readers, 200, guard.Call, "list-workers", "List the workers", handle(s, ofAll(func(ctx context.Context) (workerList, error) { return workerList{orEmpty(s.studies.Workers(ctx))}, nil })), nil},
		{"GET", workerPath + "/history", guard.Readers, 200, guard.Call, "get-worker-history", "Get how busy a worker's machine was in the last hour", handle(s, ofNamed[WorkerRef](s.studies.WorkerHistory)), nil},
		{"GET", poolPath + "/wanted", guard.Planners, 200, guard.Call, "get-pool-wanted", "Say what studies would start now if there were workers for it", handle(s, ofAll(s.studies.Wanted)), nil},
		{"GET", poolPath, guard.Readers, 200, guard.Call, "get-pool", "Say who runs where and why, what waits, and how well that is predicted", handle(s, ofAll(s.studies.Pool)), nil},
		{"POST", workerPath + "/heartbeat", guard.Runners, 200, guard.Call, "heartbeat", "Keep a worker's leases alive", handle(s, workerAPI{s}.heartbeat), nil},
		{"POST", workerPath + "/gone", guard.Starters, 200, guard.Call, "worker-gone", "Say that the job of a worker has ended: what it holds waits for others at once", handle(s, workerAPI{s}.workerGone), nil},
		{"DELETE", workerPath, guard.Runners, 204, guard.Call, "remove-worker", "Take leave", handle(s, workerAPI{s}.removeWorker), nil},
		{"POST", prefix + "/leases", guard.Runners, 200, guard.Call, "lease", "Ask for a trial to run", handle(s, ofBody(s.studies.Lease)), nil},
		{"POST", leasePath + "/reports", guard.Runners, 200, guard.Call, "report", "Report an epoch", handle(s, workerAPI{s}.report), nil},
		{"POST", leasePath + "/checkpoint", guard.Runners, 204, guard.Call, "commit-checkpoint", "Publish an uploaded artifact as the trial's checkpoint", handle(s, under(s.studies.CommitCheckpoint)), nil},
		{"POST", leasePath + "/architecture", guard.Runners, 200, guard.Call, "report-architecture", "Say what a trial trains, without its weights", handle(s, ofLease(s.studies.Architecture)), nil},
		{"POST", leasePath + "/inferences", guard.Runners, 200, guard.Call, "report-inferences", "Report what real inferences of it took on the worker", handle(s, ofLease(s.studies.Inferences)), nil},
		{"POST", leasePath + "/finish", guard.Runners, 200, guard.Call, "finish", "End a lease", handle(s, ofLease(s.studies.Finish)), nil},
		{"POST", leasePath + "/log", guard.Runners, 204, guard.Call, "append-log", "Append to the trial's log", handle(s, under(s.studies.AppendLog)), nil},
		{"POST", leasePath + "/artifacts", guard.Runners, 204, guard.Call, "log-artifact", "Keep an uploaded artifact as a file of the trial", handle(s, under(s.studies.LogArtifact)), nil},
		{"POST", leasePath + "/samples", guard.Runners, 204, guard.Call, "keep-samples", "Keep what was sampled of a trial", handle(s, artifactAPI{s}.keepSamples), nil},
	}, s.answers(), s.sharedRoutes(), accessAPI{s}.enrolmentRoutes(), accessAPI{s}.signInRoutes(), forecastAPI{s}.forecastRoutes(), s.writtenRoutes(), sharingAPI{s}.sharingRoutes(), sharingAPI{s}.groupRoutes(), hookAPI{s}.hookRoutes(), launcherAPI{s}.launcherRoutes(), knowledgeAPI{s}.backendRoutes())
}

// answers are the routes of results of a study.
func (s *server) answers() []route {
	return []route{
		{"GET", studyPath + "/recommendation", guard.Guests, 200, guard.Call, "get-recommendation", "Get the study's answer", handle(s, ofNamed[StudyRef](s.studies.Recommendation)), nil},
		{"GET", studyPath + "/advice", guard.Guests, 200, guard.Call, "get-advice", "Say what the results tell: ranges to widen, values at which trials fail, parameters that depend on each other, and whether more trials are worth it", handle(s, ofNamed[StudyRef](s.studies.Advice)), nil},
		{"GET", studyPath + "/correlations", guard.Guests, 200, guard.Call, "get-correlations", "Say how far each rung's ranking of trials holds further up", handle(s, ofNamed[StudyRef](s.studies.Correlations)), nil},
		{"GET", studyPath + "/measurements", guard.Guests, 200, guard.Call, "get-measurements", "List what was measured, in the order in which it was, with the leaders and what is on each rung", handle(s, studyAPI{s}.measurements), nil},
		{"GET", studyPath + "/pareto", guard.Guests, 200, guard.Call, "get-pareto", "Show the trials that no other beats in all objectives", handle(s, ofNamed[StudyRef](s.studies.Pareto)), nil},
		{"GET", studyPath + "/edge", guard.Guests, 200, guard.Call, "get-edge-overview", "Show what the models of the study are worth and what they cost on its devices", handle(s, ofNamed[StudyRef](s.studies.EdgeOverview)), nil},
		{"GET", studyPath + "/importance", guard.Guests, 200, guard.Call, "get-importance", "Say which parameters made the good trials good", handle(s, analysisAPI{s}.importance), nil},
	}
}

// sharedRoutes are the routes of objects that belong to no study.
func (s *server) sharedRoutes() []route {
	return append([]route{
		{"GET", truthPath, guard.Readers, 200, guard.Call, "get-ground-truth", "Get what runs taught about their workloads, by type of machine or all of it", handle(s, knowledgeAPI{s}.groundTruth), nil},
		{"GET", truthPath + "/machines", guard.Readers, 200, guard.Call, "list-ground-truth", "Sum up what is known of each type of machine", handle(s, ofList(s.studies.GroundTruthMachines, func(list []protocol.GroundTruthMachine) machineList { return machineList{list} })), nil},
		{"GET", truthPath + "/runs", guard.Readers, 200, guard.Call, "list-ground-truth-runs", "Sum up the runs on a type of machine, the newest first", handle(s, knowledgeAPI{s}.groundTruthRuns), nil},
		{"GET", truthPath + "/clusters", guard.Readers, 200, guard.Call, "get-ground-truth-clusters", "Show the workloads known on a type of machine, drawn in the plane", handle(s, knowledgeAPI{s}.groundTruthClusters), nil},
		{"POST", truthPath, guard.Admins, 200, guard.Call, "import-ground-truth", "Take in what another server exported", handle(s, ofBody(s.studies.ImportGroundTruth)), nil},
		{"DELETE", truthPath, guard.Admins, 200, guard.Call, "forget-ground-truth", "Forget what runs taught on a type of machine", handle(s, knowledgeAPI{s}.forgetGroundTruth), nil},

		{"GET", prefix + "/architectures", guard.Onlookers, 200, guard.Call, "list-architectures", "Get the architectures that are known, with what inferences of them took, the newest first", handle(s, knowledgeAPI{s}.architectures), nil},

		{"POST", prefix + "/boards/ask", guard.Measurers, 200, guard.Call, "ask-board", "Ask for a model to measure on a board", handle(s, ofBody(s.studies.AskBoard)), nil},
		{"POST", prefix + "/boards/runs", guard.Measurers, 200, guard.Call, "report-board", "Report what a model took on a board", handle(s, ofBody(s.studies.ReportBoard)), nil},
		{"GET", prefix + "/boards", guard.Readers, 200, guard.Call, "list-boards", "List the boards that asked in the last day, and what they measure", handle(s, ofAll(s.studies.Boards)), nil},

		{"PUT", blobPath, guard.Runners, 204, guard.Stream, "put-artifact", "Upload bytes under their SHA-256", handle(s, artifactAPI{s}.putArtifact), describeUpload},
		{"GET", blobPath, guard.Holders, 200, guard.Stream, "get-artifact", "Download an artifact", handle(s, artifactAPI{s}.getArtifact), bytesAnswer("application/octet-stream")},
		{"HEAD", blobPath, guard.Holders, 200, guard.Stream, "head-artifact", "Ask for an artifact's size", handle(s, artifactAPI{s}.getArtifact), nil},
		{"POST", blobPath + "/link", guard.Runners, 200, guard.Call, "link-upload", "Get a link to PUT an artifact to the server's bucket, with its headers and without the token; then POST to /uploaded", handle(s, artifactAPI{s}.linkUpload), nil},
		{"POST", blobPath + "/uploaded", guard.Runners, 204, guard.Call, "take-upload", "Make an artifact of what was PUT to its link", handle(s, artifactAPI{s}.takeUpload), nil},
		{"POST", datasetPath, guard.Owners, 201, guard.Call, "publish-dataset", "Make an encrypted artifact that you have uploaded one of your data sets", handle(s, ofBody(s.studies.PublishDataset)), nil},
		{"GET", datasetPath, guard.Owners, 200, guard.Call, "list-datasets", "List the encrypted data sets", handle(s, ofList(s.studies.Datasets, func(list []protocol.Dataset) datasetList { return datasetList{list} })), nil},
		{"DELETE", datasetPath + "/{sha256}", guard.Owners, 204, guard.Call, "delete-dataset", "Delete an encrypted data set", handle(s, remove[BlobRef](s.studies.DeleteDataset)), nil},
	}, analysisAPI{s}.chartRoutes()...)
}

const (
	// maxBody bounds the body of a call.
	maxBody = 1 << 20
	// maxSignIn bounds that of a call about a session: it holds a token or a code at most.
	maxSignIn = 4 << 10
)

// audited names the routes whose requests are in the audit log. Refused requests of
// every route are there, too.
var audited = map[string]bool{
	"create-token": true, "delete-token": true, "create-hook": true, "delete-hook": true, "create-link": true, "delete-link": true, "create-study": true, "delete-study": true, "pause-study": true, "resume-study": true, "stop-study": true, "extend-study": true, "set-study": true, "enqueue": true, "annotate-study": true, "annotate-trial": true,
	"export-study": true, "get-artifact": true, "get-trial-artifact": true, "import-ground-truth": true, "forget-ground-truth": true,
	"set-quota": true, "remove-quota": true, "make-reservation": true, "remove-reservation": true, "set-backend": true, "remove-backend": true, "drain-worker": true, "undrain-worker": true, "worker-gone": true,
	"set-group": true, "remove-user": true, "remove-group": true, "share-study": true, "transfer-study": true,
	"create-enrolments": true, "publish-dataset": true, "delete-dataset": true, "exchange-enrolment": true, "try-launcher-again": true,
}

// steering names the routes that change a study and are open to its editors.
var steering = map[string]bool{
	"enqueue": true, "pause-study": true, "resume-study": true, "stop-study": true, "extend-study": true, "set-study": true, "annotate-study": true, "annotate-trial": true,
}

// role returns what a user needs on a study of somebody else. What is not named here is
// its owner's.
func (r route) role() access.Role {
	switch {
	case r.access == guard.Guests || r.access == guard.Readers || r.access == guard.Holders || r.id == "preview-study":
		return access.RoleViewer
	case steering[r.id]:
		return access.RoleEditor
	}
	return access.RoleOwner
}

// guarded returns the route as the guard takes it.
func (r route) guarded() guard.Route {
	heartbeat, most := r.id == "heartbeat", int64(maxBody)
	if strings.HasPrefix(r.path, sessionPath) {
		most = maxSignIn
	}
	return guard.Route{
		Method: r.method, Path: r.path, ID: r.id, Access: r.access, Role: r.role(), Status: r.status, Kind: r.kind, MaxBody: most,
		Urgent: heartbeat || r.id == "report" || r.id == "finish", Heartbeat: heartbeat,
		Metrics: r.path == metricsPath, Audited: audited[r.id], Routine: r.routine,
	}
}

// routine reports whether a request needs no entry in the audit log: one for the
// checkpoint of a trial that a worker holds, which the study's events name, or for a file
// that pages show.
func (r route) routine(request *http.Request, token auth.Token) bool {
	shown := r.id == "get-trial-artifact" && (trial.Artifact{Name: request.URL.Path}).ContentType() != "application/octet-stream"
	return shown || strings.HasPrefix(r.path, blobPath) && token.Scope == auth.Worker
}

// registration makes huma serve an operation.
type registration func(huma.API, huma.Operation)

// handle adapts a handler: its errors become documents.
func handle[I, O any](s *server, do func(context.Context, *I) (*O, error)) registration {
	return func(framework huma.API, operation huma.Operation) {
		huma.Register(framework, operation, func(ctx context.Context, input *I) (*O, error) {
			output, err := do(ctx, input)
			if err != nil {
				return nil, s.Refusal(ctx, err)
			}
			return output, nil
		})
	}
}

// operation returns the route as huma and the OpenAPI document take it. The guard has
// read the body within its deadline before huma sees it, hence the -1s.
func (r route) operation(registry huma.Registry) huma.Operation {
	operation := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, DefaultStatus: r.status,
		MaxBodyBytes: -1, BodyReadTimeout: -1,
		Responses: map[string]*huma.Response{"default": {Description: "A problem", Content: map[string]*huma.MediaType{
			answer.Type: {Schema: openapi.SchemaOf[answer.Document](registry)},
		}}},
	}
	if r.access != guard.Everybody {
		operation.Security = []map[string][]string{{"token": {}}, {"session": {}}}
		operation.Extensions = map[string]any{"x-scopes": r.access.Scopes()}
	}
	if r.guarded().Changes() && r.kind != guard.Stream && r.kind != guard.Secret {
		operation.Parameters = []*huma.Param{{
			Name: idempotency.KeyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[!-~]{1,128}$"},
			Description: "one key for all attempts of one logical call: a repetition gets the first one's answer",
		}}
	}
	if r.describe != nil {
		r.describe(&operation, registry)
	}
	return operation
}

// bytesAnswer describes an answer that is sent as bytes of the media type. The OpenAPI
// document is an object, everything else is text.
func bytesAnswer(media string) func(*huma.Operation, huma.Registry) {
	schema := &huma.Schema{Type: huma.TypeString}
	if media == "application/json" {
		schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	}
	return func(operation *huma.Operation, _ huma.Registry) {
		operation.Responses[strconv.Itoa(operation.DefaultStatus)] = &huma.Response{Description: http.StatusText(operation.DefaultStatus),
			Content: map[string]*huma.MediaType{media: {Schema: schema}}}
	}
}
