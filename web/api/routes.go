package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tandem-tune/tandem/web/openapi"
)

// route is one line of the table: a method and a path, who may use it, and what
// it does.
type route struct {
	method, path string
	access       access
	status       int // of a success
	// kind says how the body is taken and how long the answer may last.
	kind        kind
	id, summary string
	register    registration
	// describe adds to the OpenAPI document what the types do not say.
	describe func(*huma.Operation, huma.Registry)
}

// kind is how a request is treated before its handler.
type kind uint8

const (
	call      kind = iota // a small body, read before; a deadline on the whole
	studyFile             // a call whose body is not our JSON
	secret                // a call that must not be repeated from a stored answer
	stream                // the handler reads or writes at length, and sets its own deadlines
)

// heartbeatID is the id of the route that workers keep their leases by.
const heartbeatID = "heartbeat"

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
)

// routes is the whole interface.
func (s *server) routes() []route {
	return slices.Concat([]route{
		{"GET", healthPath, everybody, 200, call, "health", "Say whether the server can be used", handle(s, healthAPI{s}.health), nil},
		{"GET", readyPath, everybody, 200, call, "ready", "Say whether work should be sent to this server", handle(s, healthAPI{s}.readiness), nil},
		{"GET", metricsPath, onlookers, 200, stream, "metrics", "Get what monitoring systems watch, in Prometheus' text format", handle(s, healthAPI{s}.metrics), bytesAnswer("text/plain")},
		{"GET", prefix + "/openapi.json", everybody, 200, call, "openapi", "This document", handle(s, healthAPI{s}.document), describeDocument},
		{"POST", sessionPath, everybody, 204, secret, "sign-in", "Start a browser's session with a token", handle(s, accessAPI{s}.signIn), nil},
		{"GET", sessionPath, bearers, 200, call, "get-identity", "Say whose token this is", handle(s, accessAPI{s}.whoAmI), nil},
		{"DELETE", sessionPath, bearers, 204, secret, "sign-out", "End the browser's session", handle(s, accessAPI{s}.signOut), nil},
		{"POST", prefix + "/tokens", admins, 201, secret, "create-token", "Create a token", handle(s, accessAPI{s}.createToken), nil},
		{"GET", prefix + "/tokens", admins, 200, call, "list-tokens", "List the tokens", handle(s, accessAPI{s}.listTokens), nil},
		{"DELETE", prefix + "/tokens/{token}", admins, 204, secret, "delete-token", "Delete a token and its sessions", handle(s, accessAPI{s}.deleteToken), nil},

		{"POST", prefix + "/studies", owners, 201, studyFile, "create-study", "Create a study, or preview its plan", handle(s, studyAPI{s}.createStudy), describeCreate},
		{"GET", prefix + "/studies", readers, 200, call, "list-studies", "List the studies, the newest first", handle(s, studyAPI{s}.listStudies), nil},
		{"GET", studyPath, guests, 200, call, "get-study", "Get a study by id or name", handle(s, ofStudy(s.studies.Study)), nil},
		{"DELETE", studyPath, owners, 204, call, "delete-study", "Delete a study and everything of it", handle(s, studyAPI{s}.deleteStudy), nil},
		{"POST", studyPath + "/enqueue", owners, 200, call, "enqueue", "Try these configurations before anything the search proposes", handle(s, studyAPI{s}.enqueue), nil},
		{"POST", studyPath + "/pause", owners, 200, call, "pause-study", "Hand out no more trials", handle(s, ofStudy(s.studies.Pause)), nil},
		{"POST", studyPath + "/resume", owners, 200, call, "resume-study", "Go on with a paused study", handle(s, ofStudy(s.studies.Resume)), nil},
		{"POST", studyPath + "/stop", owners, 200, call, "stop-study", "End a study now", handle(s, ofStudy(s.studies.Stop)), nil},
		{"GET", studyPath + "/export", guests, 200, stream, "export-study", "Download the trials as CSV or Parquet, or everything as JSON", handle(s, studyAPI{s}.export), describeExport},
		{"GET", studyPath + "/events", guests, 200, stream, "follow-events", "Follow what happens, as server-sent events", handle(s, studyAPI{s}.events), bytesAnswer("text/event-stream")},
		{"GET", studyPath + "/trials", guests, 200, call, "list-trials", "List trials, the best first", handle(s, trialAPI{s}.listTrials), nil},
		{"GET", trialPath, guests, 200, call, "get-trial", "Get a trial with its reports and its history", handle(s, trialAPI{s}.getTrial), nil},
		{"GET", trialPath + "/deployments", guests, 200, call, "get-deployments", "Say how to run the trial's model on the study's devices", handle(s, knowledgeAPI{s}.deployments), nil},
		{"GET", trialPath + "/log", guests, 200, call, "get-log", "Get what the trial's command printed", handle(s, trialAPI{s}.getLog), bytesAnswer("text/plain")},

		{"POST", prefix + "/workers", runners, 200, call, "register-worker", "Introduce a worker", handle(s, workerAPI{s}.registerWorker), nil},
		{"GET", prefix + "/workers", readers, 200, call, "list-workers", "List the workers", handle(s, workerAPI{s}.listWorkers), nil},
		{"GET", workerPath + "/history", readers, 200, call, "get-worker-history", "Get how busy a worker's machine was in the last hour", handle(s, workerAPI{s}.workerHistory), nil},
		{"GET", poolPath, readers, 200, call, "get-pool", "Say who runs where and why, what waits, and how well that is predicted", handle(s, ofAll(s.studies.Pool)), nil},
		{"POST", workerPath + "/heartbeat", runners, 200, call, heartbeatID, "Keep a worker's leases alive", handle(s, workerAPI{s}.heartbeat), nil},
		{"DELETE", workerPath, runners, 204, call, "remove-worker", "Take leave", handle(s, workerAPI{s}.removeWorker), nil},
		{"POST", prefix + "/leases", runners, 200, call, "lease", "Ask for a trial to run", handle(s, ofBody(s.studies.Lease)), nil},
		{"POST", leasePath + "/reports", runners, 200, call, "report", "Report an epoch", handle(s, workerAPI{s}.report), nil},
		{"POST", leasePath + "/checkpoint", runners, 204, call, "commit-checkpoint", "Publish an uploaded artifact as the trial's checkpoint", handle(s, workerAPI{s}.commitCheckpoint), nil},
		{"POST", leasePath + "/architecture", runners, 200, call, "report-architecture", "Say what a trial trains, without its weights", handle(s, ofLease(s.studies.Architecture)), nil},
		{"POST", leasePath + "/inferences", runners, 200, call, "report-inferences", "Report what real inferences of it took on the worker", handle(s, ofLease(s.studies.Inferences)), nil},
		{"POST", leasePath + "/finish", runners, 200, call, "finish", "End a lease", handle(s, ofLease(s.studies.Finish)), nil},
		{"POST", leasePath + "/log", runners, 204, call, "append-log", "Append to the trial's log", handle(s, workerAPI{s}.appendLog), nil},
	}, s.answers(), s.sharedRoutes(), forecastAPI{s}.forecastRoutes(), s.writtenRoutes(), sharingAPI{s}.sharingRoutes())
}

// answers are what is computed from a study's trials.
func (s *server) answers() []route {
	return []route{
		{"GET", studyPath + "/recommendation", guests, 200, call, "get-recommendation", "Get the study's answer", handle(s, ofStudy(s.studies.Recommendation)), nil},
		{"GET", studyPath + "/correlations", guests, 200, call, "get-correlations", "Say how far each rung's ranking of trials holds further up", handle(s, ofStudy(s.studies.Correlations)), nil},
		{"GET", studyPath + "/measurements", guests, 200, call, "get-measurements", "List what was measured, in the order in which it was, with the leaders and what is on each rung", handle(s, studyAPI{s}.measurements), nil},
		{"GET", studyPath + "/pareto", guests, 200, call, "get-pareto", "Show the trials that no other beats in all objectives", handle(s, ofStudy(s.studies.Pareto)), nil},
		{"GET", studyPath + "/trajectory", guests, 200, call, "get-trajectory", "Show the best value against what was spent by then, and how values are distributed", handle(s, ofStudy(s.studies.Trajectory)), nil},
		{"GET", studyPath + "/edge", guests, 200, call, "get-edge-overview", "Show what the models of the study are worth and what they cost on its devices", handle(s, ofStudy(s.studies.EdgeOverview)), nil},
		{"GET", studyPath + "/impact", guests, 200, call, "get-impact", "Say how far each outcome varies with each parameter alone", handle(s, ofStudy(s.studies.Impact)), nil},
		{"GET", studyPath + "/importance", guests, 200, call, "get-importance", "Say which parameters made the good trials good", handle(s, analysisAPI{s}.importance), nil},
		{"GET", studyPath + "/ablation", guests, 200, call, "get-ablation", "Walk from one trial to another on a surrogate's predictions", handle(s, analysisAPI{s}.ablation), nil},
	}
}

// sharedRoutes are those of what belongs to no study.
func (s *server) sharedRoutes() []route {
	return append([]route{
		{"GET", truthPath, readers, 200, call, "get-ground-truth", "Get what runs taught about their workloads, by type of machine or all of it", handle(s, knowledgeAPI{s}.groundTruth), nil},
		{"GET", truthPath + "/machines", readers, 200, call, "list-ground-truth", "Sum up what is known of each type of machine", handle(s, knowledgeAPI{s}.listGroundTruth), nil},
		{"GET", truthPath + "/runs", readers, 200, call, "list-ground-truth-runs", "Sum up the runs on a type of machine, the newest first", handle(s, knowledgeAPI{s}.groundTruthRuns), nil},
		{"GET", truthPath + "/clusters", readers, 200, call, "get-ground-truth-clusters", "Show the workloads known on a type of machine, drawn in the plane", handle(s, knowledgeAPI{s}.groundTruthClusters), nil},
		{"POST", truthPath, admins, 200, call, "import-ground-truth", "Take in what another server exported", handle(s, ofBody(s.studies.ImportGroundTruth)), nil},
		{"DELETE", truthPath, admins, 200, call, "forget-ground-truth", "Forget what runs taught on a type of machine", handle(s, knowledgeAPI{s}.forgetGroundTruth), nil},

		{"GET", prefix + "/architectures", onlookers, 200, call, "list-architectures", "Get the architectures that are known, with what inferences of them took, the newest first", handle(s, knowledgeAPI{s}.architectures), nil},
		{"POST", prefix + "/architectures", admins, 200, call, "import-architectures", "Take in what inferences took on a device", handle(s, ofBody(s.studies.ImportArchitectures)), nil},

		{"PUT", blobPath, runners, 204, stream, "put-artifact", "Upload bytes under their SHA-256", handle(s, artifactAPI{s}.putArtifact), describeUpload},
		{"GET", blobPath, holders, 200, stream, "get-artifact", "Download an artifact", handle(s, artifactAPI{s}.getArtifact), bytesAnswer("application/octet-stream")},
		{"HEAD", blobPath, holders, 200, stream, "head-artifact", "Ask for an artifact's size", handle(s, artifactAPI{s}.headArtifact), nil},
	}, analysisAPI{s}.chartRoutes()...)
}

// name is how the table finds the route.
func (r route) name() string { return r.method + " " + r.path }

// mutates reports whether the route changes something.
func (r route) mutates() bool { return r.method != http.MethodGet && r.method != http.MethodHead }

// urgent reports whether a worker loses a trial, or what it measured, when the
// route is closed to it for long.
func (r route) urgent() bool { return r.id == heartbeatID || r.id == "report" || r.id == "finish" }

// maxBody bounds the body of a call.
func (r route) maxBody() int64 {
	if r.path == sessionPath {
		return maxSignIn
	}
	return maxBody
}

// registration makes huma serve an operation.
type registration func(huma.API, huma.Operation)

// handle adapts a handler: its errors become documents.
func handle[I, O any](s *server, do func(context.Context, *I) (*O, error)) registration {
	return func(framework huma.API, operation huma.Operation) {
		huma.Register(framework, operation, func(ctx context.Context, input *I) (*O, error) {
			output, err := do(ctx, input)
			if err != nil {
				return nil, s.documentOf(ctx, err)
			}
			return output, nil
		})
	}
}

// operation is what huma and the OpenAPI document are told of the route. The
// body has been read and its deadline kept before huma sees it, hence the -1s.
func (r route) operation(registry huma.Registry) huma.Operation {
	operation := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, DefaultStatus: r.status,
		MaxBodyBytes: -1, BodyReadTimeout: -1,
		Responses: map[string]*huma.Response{"default": problemResponse(registry)},
	}
	if r.access != everybody {
		operation.Security = []map[string][]string{{"token": {}}, {"session": {}}}
		operation.Extensions = map[string]any{"x-scopes": r.access.scopes()}
	}
	if r.mutates() && r.kind != stream && r.kind != secret {
		operation.Parameters = []*huma.Param{{
			Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[!-~]{1,128}$"},
			Description: "one key for all attempts of one logical call: a repetition gets the first one's answer",
		}}
	}
	if r.describe != nil {
		r.describe(&operation, registry)
	}
	return operation
}

func problemResponse(registry huma.Registry) *huma.Response {
	return &huma.Response{Description: "A problem", Content: map[string]*huma.MediaType{
		problemType: {Schema: openapi.SchemaOf[document](registry)},
	}}
}

// describeDocument says that the document is one, though it is sent as bytes.
func describeDocument(operation *huma.Operation, _ huma.Registry) {
	operation.Responses[strconv.Itoa(operation.DefaultStatus)] = &huma.Response{Description: http.StatusText(operation.DefaultStatus),
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}}
}

// bytesAnswer describes an answer that is not one JSON value.
func bytesAnswer(types ...string) func(*huma.Operation, huma.Registry) {
	return func(operation *huma.Operation, _ huma.Registry) {
		content := make(map[string]*huma.MediaType)
		for _, one := range types {
			content[one] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
		operation.Responses[strconv.Itoa(operation.DefaultStatus)] = &huma.Response{Description: http.StatusText(operation.DefaultStatus), Content: content}
	}
}
