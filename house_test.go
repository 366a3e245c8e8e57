// Package tandem_test holds the rules of the house: which folder may import
// what, and how large things may grow. They are checked against the source.
package tandem_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tandem-tune/tandem/"

// mayImport is the import table: for each package, the packages of ours it may
// use outside its tests. A new arrow needs a line here, and a reason.
var mayImport = map[string][]string{
	"internal/build":                    {},
	"internal/problem":                  {},
	"budget":                            {"internal/problem"},
	"internal/regression":               {},
	"study/space":                       {"internal/problem"},
	"study/selector":                    {},
	"study/system":                      {"study/space"},
	"trial/series":                      {"internal/problem", "trial"},
	"trial":                             {"internal/problem", "budget", "study/space"},
	"internal/format":                   {"budget", "internal/protocol", "study/space", "trial"},
	"scripts/gosec":                     {},
	"similarity":                        {"study/system", "trial"},
	"similarity/probing":                {"internal/regression", "study/system"},
	"similarity/reuse":                  {"internal/regression", "similarity", "study/space", "study/system", "similarity/probing", "trial"},
	"similarity/groundtruth":            {"internal/problem", "internal/protocol", "similarity", "study/space", "study/system", "similarity/reuse", "trial"},
	"inference_emu":                     {"internal/build", "inference_emu/graph", "internal/problem"},
	"inference_emu/inference":           {"study/access", "study/ranking", "inference_emu", "inference_emu/backend", "inference_emu/deployment", "inference_emu/device", "inference_emu/tuning", "internal/gate", "internal/problem", "internal/protocol", "study/definition", "study/journal", "trial"},
	"inference_emu/deployment":          {"inference_emu", "inference_emu/batching", "inference_emu/device", "inference_emu/estimate", "inference_emu/graph", "inference_emu/tuning", "internal/problem"},
	"inference_emu/graph":               {"internal/problem"},
	"inference_emu/graph/graphtest":     {"inference_emu/graph", "internal/problem"},
	"inference_emu/device":              {"inference_emu", "internal/problem", "study/studyfile/tree"},
	"inference_emu/batching":            {"internal/problem"},
	"inference_emu/backend":             {"internal/problem", "inference_emu/deployment", "inference_emu/device"},
	"inference_emu/estimate":            {"inference_emu/graph", "internal/regression"},
	"inference_emu/board":               {"inference_emu", "inference_emu/emulator", "inference_emu/onnx/document", "internal/problem", "internal/protocol", "profiler", "workers/agent/retry"},
	"inference_emu/onnxruntime":         {"internal/problem"},
	"inference_emu/emulator":            {"inference_emu", "inference_emu/onnxruntime", "internal/problem", "inference_emu/graph", "inference_emu/onnx", "inference_emu/onnx/document", "profiler", "workers/sandbox/filter"},
	"bench/edgetune/gather":             {"internal/problem", "inference_emu/batching"},
	"inference_emu/onnx":                {"internal/problem", "inference_emu/graph", "inference_emu/onnx/document"},
	"inference_emu/onnx/document":       {"inference_emu/graph", "internal/problem"},
	"inference_emu/onnx/onnxtest":       {},
	"inference_emu/tuning":              {"internal/problem", "study/pareto"},
	"study/correlation":                 {},
	"study/pareto":                      {},
	"study/search":                      {"internal/problem", "internal/regression", "budget", "study/search/bohb", "study/search/cmaes", "study/search/gp", "study/search/grid", "study/search/ladder", "study/search/prior", "study/search/promotion", "study/search/propose", "study/search/sobol", "study/search/stopping", "study/search/tpe", "study/space", "trial"},
	"study/search/bohb":                 {"study/search/kde", "study/search/ladder", "study/search/propose", "study/search/sobol", "study/space"},
	"study/search/cmaes":                {"internal/problem", "study/search/ladder", "study/search/propose", "study/space"},
	"study/search/gp":                   {"study/search/ladder", "study/search/propose", "study/search/sobol", "study/space", "study/surrogate"},
	"study/search/grid":                 {"internal/problem", "study/search/ladder", "study/search/propose", "study/space"},
	"study/search/kde":                  {"study/space"},
	"study/search/ladder":               {"internal/problem", "budget", "study/pareto", "study/space", "trial"},
	"study/search/prior":                {"study/correlation", "study/pareto", "study/search/bohb", "study/search/kde", "study/search/ladder", "study/search/propose", "study/space", "trial"},
	"study/search/promotion":            {"budget", "study/search/ladder", "study/search/propose", "study/space"},
	"study/search/propose":              {"study/search/ladder", "study/space"},
	"study/search/sobol":                {"internal/problem", "study/search/ladder", "study/search/propose", "study/space"},
	"study/search/stopping":             {"study/search/ladder"},
	"study/search/tpe":                  {"study/search/kde", "study/search/ladder", "study/search/propose", "study/space"},
	"study/search/searchtest":           {"internal/problem", "budget", "study/space", "trial", "study/search", "study/search/promotion", "study/search/stopping"},
	"study/advice":                      {"internal/regression", "study/correlation", "study/space"},
	"study/importance":                  {"study/space"},
	"study/objective":                   {"internal/problem"},
	"study/surrogate":                   {"study/space"},
	"study/definition":                  {"internal/problem", "similarity", "trial", "inference_emu/deployment", "inference_emu/device", "inference_emu/tuning", "budget", "study/space", "study/search", "study/search/cmaes", "study/search/stopping", "study/objective", "study/system", "study/selector"},
	"study/studyfile/encryption":        {"internal/sealed", "study/definition", "study/studyfile/tree"},
	"study/studyfile/confidential":      {"internal/protocol", "study/definition", "study/studyfile/tree"},
	"study/studyfile/inference":         {"inference_emu", "internal/problem", "inference_emu/deployment", "inference_emu/device", "inference_emu/tuning", "study/definition", "study/studyfile/tree", "trial"},
	"study/studyfile":                   {"study/studyfile/confidential", "study/studyfile/encryption", "study/studyfile/inference", "internal/problem", "similarity", "budget", "study/definition", "study/space", "study/search", "study/search/cmaes", "study/search/promotion", "study/search/stopping", "study/objective", "study/studyfile/tree", "study/system", "study/selector"},
	"study/studyfile/tree":              {"internal/problem"},
	"internal/protocol":                 {"internal/build", "internal/problem", "inference_emu", "inference_emu/deployment", "inference_emu/graph", "budget", "similarity", "study/system", "study/space", "trial", "trial/series", "study/definition", "study/search"},
	"workers/rules":                     {"internal/protocol", "study/access", "study/journal", "workers/pool"},
	"workers/waitqueue":                 {"study/access"},
	"workers/scheduler":                 {"workers/allocator", "workers/demand", "workers/placement", "workers/pool", "workers/rules", "workers/scheduler/costmodel", "internal/protocol", "study/access", "trial"},
	"workers/scheduler/costmodel":       {"internal/protocol", "study/space", "study/system", "trial", "workers/placement"},
	"workers/allocator":                 {"internal/sealed", "internal/problem", "internal/protocol", "study/access", "study/journal", "trial", "workers/placement", "workers/pool", "workers/rules", "workers/waitqueue", "study/selector"},
	"workers/governor":                  {"internal/gate", "internal/problem", "internal/protocol", "study/access", "study/journal", "workers/allocator", "workers/pool", "workers/rules"},
	"workers/pool":                      {"internal/problem", "internal/protocol", "trial", "workers/gpushare/packing", "study/selector"},
	"workers/approximation":             {"budget", "internal/protocol", "study/definition", "study/journal", "trial", "workers/pool"},
	"workers/demand":                    {"workers/pool"},
	"internal/nn":                       {},
	"workers/forecast":                  {"internal/nn"},
	"workers/gpushare/interference":     {"internal/regression"},
	"workers/gpushare":                  {"inference_emu", "internal/problem", "internal/protocol", "study/definition", "study/journal", "study/space", "trial", "workers/gpushare/interference", "workers/gpushare/packing", "workers/gpushare/utilization", "workers/pool"},
	"workers/gpushare/packing":          {},
	"workers/gpushare/utilization":      {"inference_emu/graph", "internal/regression"},
	"workers/placement":                 {"internal/regression"},
	"internal/gate":                     {},
	"internal/handclock":                {},
	"study/tariff":                      {"internal/problem", "study/definition", "study/studyfile/tree", "trial"},
	"study/spending":                    {"budget", "internal/problem", "internal/protocol", "study/definition", "trial"},
	"study/query":                       {"internal/problem"},
	"study/ranking":                     {"study/query", "study/spending", "budget", "internal/problem", "internal/protocol", "internal/regression", "study/definition", "study/journal", "study/objective", "study/pareto", "study/space", "study/system", "trial", "workers/approximation"},
	"study/analysis":                    {"budget", "internal/format", "internal/gate", "internal/problem", "internal/protocol", "study/advice", "study/correlation", "study/definition", "study/importance", "study/journal", "study/space", "study/spending", "trial"},
	"study/hook":                        {"study/definition", "trial"},
	"study/journal":                     {"budget", "internal/problem", "inference_emu", "internal/protocol", "similarity", "similarity/groundtruth", "study/definition", "trial"},
	"study/tuning":                      {"internal/problem", "internal/protocol", "similarity", "similarity/groundtruth", "similarity/reuse", "study/definition", "study/space", "study/system", "trial", "workers/allocator"},
	"study/starts":                      {"internal/protocol", "study/journal", "trial", "workers/allocator", "workers/pool"},
	"study/duties":                      {"internal/protocol", "study/journal", "study/registry", "study/session", "workers/allocator", "workers/approximation", "workers/scheduler"},
	"study/session":                     {"study/tariff", "budget", "internal/failpoint", "internal/problem", "internal/protocol", "similarity/groundtruth", "study/access", "study/definition", "study/journal", "study/ranking", "study/search", "study/space", "study/spending", "study/starts", "study/tuning", "trial", "workers/allocator", "workers/approximation", "workers/demand", "workers/gpushare", "workers/placement", "workers/pool", "workers/scheduler", "workers/scheduler/costmodel"},
	"study/registry":                    {"internal/failpoint", "internal/problem", "internal/protocol", "study/access", "study/journal", "study/search", "study/session", "trial"},
	"study/poolview":                    {"internal/protocol/crew", "internal/problem", "internal/protocol", "study/access", "study/registry", "study/session", "trial", "workers/allocator", "workers/demand", "workers/gpushare", "workers/pool", "workers/scheduler", "workers/scheduler/costmodel"},
	"study/warmstart":                   {"internal/problem", "internal/protocol", "study/access", "study/definition", "study/journal", "study/ranking", "study/search", "study/space"},
	"study/team":                        {"internal/gate", "internal/problem", "internal/protocol", "study/access", "study/journal"},
	"study/dataset":                     {"internal/format", "internal/gate", "internal/problem", "internal/protocol", "study/access", "study/definition", "study/journal"},
	"study/upload":                      {"internal/problem", "internal/protocol", "study/access", "trial"},
	"study":                             {"study/tariff", "study/team", "study/dataset", "internal/protocol/crew", "study/duties", "budget", "inference_emu", "inference_emu/inference", "internal/gate", "internal/problem", "internal/protocol", "similarity", "similarity/groundtruth", "study/access", "study/analysis", "study/definition", "study/journal", "study/poolview", "study/ranking", "study/registry", "study/search", "study/session", "study/starts", "study/upload", "study/warmstart", "trial", "workers/allocator", "workers/approximation", "workers/governor", "workers/gpushare", "workers/pool", "workers/scheduler", "workers/scheduler/costmodel", "study/selector"},
	"store/filesystem":                  {"internal/problem"},
	"store/group":                       {"store/record", "study/journal"},
	"store/record":                      {"internal/problem", "internal/protocol", "inference_emu", "similarity", "study/access", "study/journal", "study/definition", "trial"},
	"store/memory":                      {"internal/problem", "inference_emu", "similarity", "store/record", "study/journal", "trial", "study/access"},
	"store/sqlite":                      {"internal/failpoint", "internal/problem", "inference_emu", "similarity", "store/filesystem", "store/group", "store/record", "study/journal", "internal/protocol", "trial", "study/access", "store/sqlite/dbfile"},
	"store/sqlite/dbfile":               {"internal/problem", "store/filesystem", "store/record"},
	"store/postgres":                    {"internal/failpoint", "internal/problem", "inference_emu", "similarity", "store/artifact", "store/group", "store/record", "study/journal", "internal/protocol", "trial", "study/access"},
	"store/storetest":                   {"internal/problem", "inference_emu", "inference_emu/graph", "similarity", "study/system", "store/record", "study/journal", "study/definition", "study/studyfile", "study/space", "budget", "internal/protocol", "trial", "study/access", "web/auth", "store/storetest/model"},
	"store/storetest/model":             {"internal/problem", "inference_emu", "similarity", "store/record", "study/journal", "trial", "study/access"},
	"store/artifact/artifacttest":       {"internal/problem", "store/artifact"},
	"store/bucket":                      {"internal/problem", "store/artifact"},
	"store/bucket/buckettest":           {},
	"store/artifact":                    {"internal/files", "internal/failpoint", "internal/problem", "store/filesystem"},
	"store/backup":                      {"internal/files", "internal/problem", "store/artifact", "store/filesystem", "store/sqlite", "store/sqlite/dbfile"},
	"store/lossydisk":                   {},
	"profiler":                          {"profiler/perf", "profiler/proc", "profiler/rapl"},
	"profiler/rapl":                     {"profiler/proc"},
	"profiler/power":                    {"internal/files", "internal/regression"},
	"profiler/proc":                     {},
	"profiler/proctest":                 {},
	"profiler/perf":                     {"profiler/proc"},
	"workers/agent":                     {"internal/sealed", "internal/failpoint", "internal/problem", "internal/protocol", "profiler", "profiler/perf", "profiler/proc", "study/definition", "trial", "workers/agent/artifact", "workers/agent/clock", "workers/agent/flush", "workers/agent/gpu", "workers/agent/knob", "workers/agent/leave", "workers/agent/probe", "workers/agent/process", "workers/agent/retry", "workers/agent/script", "workers/agent/workspace", "workers/confidential/enclave", "workers/sandbox", "workers/workload"},
	"workers/agent/agenttest":           {"internal/protocol", "profiler", "trial", "workers/agent/cgroup"},
	"workers/agent/artifact":            {"internal/files", "internal/gate", "internal/sealed", "inference_emu", "inference_emu/graph", "internal/problem", "internal/protocol", "trial", "workers/agent/retry", "workers/agent/script"},
	"workers/agent/cgroup":              {"profiler/proc"},
	"workers/agent/clock":               {},
	"workers/agent/flush":               {"internal/problem", "internal/protocol", "trial", "trial/series", "workers/agent/process", "workers/agent/retry"},
	"workers/agent/gpu":                 {"profiler", "trial", "workers/agent/clock"},
	"workers/agent/knob":                {"internal/files", "internal/protocol", "profiler", "profiler/proc", "study/space", "study/system", "workers/agent/cgroup", "workers/agent/clock", "workers/agent/gpu"},
	"workers/agent/leave":               {},
	"workers/agent/probe":               {"internal/files", "internal/protocol", "profiler", "study/space", "study/system", "workers/agent/clock", "workers/agent/gpu", "workers/agent/knob", "workers/agent/workspace", "workers/workload"},
	"workers/ranks":                     {"study/system"},
	"workers/service":                   {"internal/problem", "internal/protocol", "internal/regression", "study/definition", "study/space", "trial", "workers/agent/retry"},
	"workers/agent/process":             {"internal/sealed", "internal/problem", "internal/protocol", "profiler", "profiler/perf", "profiler/proc", "study/definition", "study/system", "trial", "workers/agent/cgroup", "workers/agent/clock", "workers/agent/knob", "workers/agent/script", "workers/agent/workspace", "workers/ranks", "workers/sandbox"},
	"workers/agent/retry":               {"internal/problem", "workers/agent/clock"},
	"workers/agent/script":              {"budget", "internal/problem", "internal/protocol", "study/space", "study/system", "trial", "workers/agent/clock"},
	"workers/agent/workspace":           {"internal/protocol", "workers/agent/cgroup", "workers/agent/knob", "workers/sandbox"},
	"workers/workload":                  {},
	"internal/sealed":                   {"internal/problem"},
	"internal/protocol/crew":            {"internal/build", "internal/protocol", "study/selector"},
	"workers/launcher":                  {"internal/protocol", "internal/protocol/crew", "study/selector"},
	"workers/launcher/command":          {"internal/protocol", "workers/launcher", "workers/launcher/engine", "study/selector"},
	"workers/launcher/engine":           {"internal/files", "workers/launcher", "study/selector"},
	"workers/launcher/kubernetes":       {"internal/protocol", "workers/launcher", "workers/launcher/engine"},
	"workers/launcher/launchertest":     {"internal/problem", "internal/protocol", "internal/protocol/crew", "workers/launcher", "workers/launcher/engine", "workers/launcher/loop", "study/selector"},
	"workers/launcher/loop":             {"internal/format", "internal/problem", "internal/protocol", "internal/protocol/crew", "workers/launcher", "workers/launcher/engine"},
	"workers/launcher/slurm":            {"internal/protocol", "workers/launcher", "workers/launcher/engine"},
	"workers/sandbox":                   {"internal/problem", "profiler", "workers/sandbox/filter"},
	"workers/sandbox/filter":            {},
	"web/audit":                         {"internal/files", "internal/problem"},
	"web/forecasting":                   {"internal/problem", "internal/protocol", "study/access", "study/journal", "workers/demand", "workers/forecast"},
	"study/access":                      {"internal/build"},
	"web/auth":                          {"internal/problem", "study/access"},
	"web/certificate":                   {"internal/files", "internal/problem"},
	"web/limit":                         {"internal/problem", "internal/protocol", "trial", "web/answer", "web/auth"},
	"web/monitoring":                    {"study/poolview"},
	"web/answer":                        {"internal/problem", "internal/protocol", "web/strict"},
	"web/guard":                         {"internal/build", "internal/problem", "study/access", "study/registry", "web/answer", "web/audit", "web/auth", "web/idempotency", "web/limit", "web/origin", "web/strict", "web/transfer"},
	"web/hooks":                         {"internal/gate", "internal/problem", "internal/protocol", "study/access", "study/definition", "study/hook", "study/journal", "study/starts", "trial"},
	"web/idempotency":                   {"internal/problem"},
	"web/launches":                      {"internal/build", "internal/format", "internal/problem", "internal/protocol", "internal/protocol/crew", "study/access"},
	"web/origin":                        {"internal/problem"},
	"web/standby":                       {"internal/problem", "web/answer", "web/origin", "web/transfer"},
	"web/transfer":                      {"internal/problem", "web/answer"},
	"web/api":                           {"internal/sealed", "inference_emu", "inference_emu/backend", "internal/protocol/crew", "budget", "internal/problem", "internal/protocol", "study", "study/access", "study/definition", "study/hook", "study/journal", "study/studyfile", "trial", "trial/series", "web/answer", "web/auth", "web/export", "web/follow", "web/guard", "web/idempotency", "web/launches", "web/account", "web/audit", "web/oidc", "web/openapi", "web/strict", "web/transfer", "web/usecases"},
	"web/usecases":                      {"inference_emu", "inference_emu/backend", "internal/protocol", "internal/protocol/crew", "study", "study/definition", "study/journal", "study/team", "trial"},
	"web/oidc":                          {"internal/problem", "internal/protocol", "study/access"},
	"web/account":                       {"internal/problem", "internal/protocol", "study/team", "web/auth", "web/oidc"},
	"web/openapi":                       {"budget", "internal/protocol", "similarity", "study/definition", "study/search", "study/space", "trial"},
	"web/export":                        {"budget", "internal/protocol", "study/definition", "study/space", "trial", "trial/series"},
	"web/follow":                        {"internal/problem", "internal/protocol", "study/access"},
	"web/strict":                        {"internal/problem"},
	"web/ui":                            {},
	"clients/rest":                      {"internal/protocol/crew", "internal/problem", "inference_emu", "inference_emu/backend", "similarity", "internal/protocol", "budget", "trial", "study/definition", "study/hook", "study/access", "web/certificate"},
	"clients/go":                        {}, // a module of its own, for strangers: nothing of the server's
	"clients/go/goptunatandem":          {"clients/go"},
	"clients/go/internal/servertest":    {},
	"store/importer":                    {"internal/problem", "internal/protocol", "trial", "study/space", "study/definition"},
	"internal/effort":                   {},
	"internal/failpoint":                {},
	"internal/files":                    {},
	"e2e/broken":                        {},
	"e2e/cluster":                       {},
	"e2e/kubernetes":                    {}, // a module of its own
	"e2e/history":                       {"internal/protocol", "study/definition", "study/journal", "study/search", "study/session", "trial"},
	"e2e/launch":                        {},
	"e2e/limits":                        {"profiler/proc"},
	"e2e/socket":                        {},
	"e2e/unlike":                        {"clients/rest", "e2e/launch", "e2e/limits", "e2e/socket", "internal/protocol", "trial", "workers/workload"},
	"e2e/trouble":                       {},
	"e2e/storm":                         {"clients/rest", "e2e/history", "e2e/launch", "e2e/socket", "internal/problem", "internal/protocol", "store/memory", "study", "study/journal", "study/search", "study/session", "trial"},
	"bench/simulator":                   {"internal/problem", "internal/protocol", "budget", "trial", "study", "study/space", "study/definition", "store/memory"},
	"bench/agents":                      {"clients/rest", "e2e/launch", "internal/problem", "internal/protocol", "trial", "bench/program"},
	"bench/faults":                      {"e2e/launch", "e2e/storm"},
	"bench/edgetune/dopeml":             {"internal/problem", "inference_emu/graph", "internal/regression"},
	"bench/edgetune/backend":            {"bench/edgetune/runs", "bench/edgetune/dopeml", "inference_emu/estimate", "inference_emu/graph"},
	"bench/edgetune/learning":           {"inference_emu/estimate", "internal/regression"},
	"bench/edgetune":                    {"bench/edgetune/learning", "inference_emu/estimate", "inference_emu/graph", "internal/regression", "bench/edgetune/runs", "bench/edgetune/zoo"},
	"bench/edgetune/runs":               {"inference_emu/estimate"},
	"bench/edgetune/hostile":            {"inference_emu/onnx/onnxtest"},
	"bench/edgetune/zoo":                {"inference_emu/graph"},
	"bench/edgetune/batching":           {"inference_emu/deployment", "bench/edgetune/gather", "inference_emu/batching"},
	"bench/latency":                     {"internal/protocol", "trial", "budget", "study/search", "study/space", "clients/rest", "e2e/launch", "bench/program"},
	"bench/pipetune":                    {"bench/wholemachine", "internal/protocol", "trial", "clients/rest", "e2e/launch"},
	"bench/pipetune/claims":             {"clients/rest", "e2e/launch", "internal/protocol", "internal/regression", "trial"},
	"bench/failover":                    {"internal/protocol", "clients/rest", "e2e/launch", "bench/program"},
	"bench/pool":                        {"bench/pool/heats", "bench/pool/launching", "bench/pool/live", "bench/pool/replayed", "bench/pool/sharing", "bench/pool/workers", "internal/protocol", "trial", "workers/pool", "e2e/unlike", "inference_emu/graph", "inference_emu/onnx", "workers/approximation", "bench/pool/queueing", "workers/forecast", "workers/gpushare/interference", "workers/gpushare/packing", "workers/placement", "workers/gpushare/utilization"},
	"bench/pool/workers":                {"e2e/launch", "e2e/unlike"},
	"bench/pool/live":                   {"clients/rest", "e2e/launch", "e2e/socket", "internal/protocol", "trial"},
	"bench/program":                     {},
	"bench/pool/colocated":              {"internal/nn", "internal/regression"},
	"bench/pool/sharing":                {"bench/pool/colocated", "inference_emu/graph", "inference_emu/onnx", "workers/gpushare", "workers/gpushare/interference", "bench/pool/packed", "workers/placement", "bench/pool/replay", "bench/pool/replay/policies", "bench/pool/replay/trace", "workers/gpushare/utilization"},
	"bench/pool/replay":                 {"workers/placement", "workers/pool"},
	"bench/pool/queueing":               {"workers/approximation"},
	"bench/pool/packed":                 {"workers/gpushare/packing"},
	"bench/pool/replay/policies":        {"bench/pool/packed", "workers/placement", "bench/pool/replay"},
	"bench/pool/replay/trace":           {"internal/problem", "trial", "workers/placement", "workers/pool", "bench/pool/replay"},
	"bench/pool/replayed":               {"bench/pool/replay", "bench/pool/replay/policies", "bench/pool/replay/trace", "internal/format", "internal/problem", "bench/pool/packed", "workers/placement"},
	"bench/pool/heats":                  {"workers/placement", "bench/pool/replay", "bench/pool/replay/policies", "bench/pool/replay/trace"},
	"bench/pool/launching":              {"workers/launcher", "internal/protocol", "bench/pool/replay", "bench/pool/replay/trace"},
	"bench/recovery":                    {"internal/protocol", "trial", "clients/rest", "e2e/launch", "bench/program"},
	"bench/repeats":                     {"bench/simulator", "study", "study/definition", "study/studyfile", "study/space"},
	"bench/search":                      {"bench/search/onefold", "bench/search/surrogate", "bench/simulator", "internal/protocol", "trial", "budget", "study/definition", "study/studyfile", "study/search", "study/search/stopping", "study/space", "bench/program"},
	"bench/search/surrogate":            {},
	"bench/search/onefold":              {"bench/simulator", "study/space", "study/studyfile"},
	"bench/server":                      {"internal/protocol", "trial", "clients/rest", "e2e/launch", "bench/program"},
	"bench/ui":                          {"internal/protocol", "trial", "clients/rest", "e2e/launch", "bench/program"},
	"bench/wholemachine":                {"profiler"},
	"bench/edgetune/here":               {"inference_emu/onnxruntime", "bench/edgetune/runs", "inference_emu/deployment", "inference_emu/device", "inference_emu/emulator", "inference_emu/estimate", "inference_emu/onnx"},
	"bench/edgetune/boards":             {"bench/edgetune/zoo", "e2e/launch", "inference_emu", "inference_emu/deployment", "inference_emu/graph", "internal/protocol", "trial"},
	"bench/edgetune/study":              {"bench/wholemachine", "clients/rest", "e2e/launch", "inference_emu", "inference_emu/deployment", "inference_emu/device", "inference_emu/onnx", "inference_emu/tuning", "trial"},
	"bench/confidential":                {"clients/rest", "e2e/launch", "internal/protocol", "workers/confidential/evidencetest"},
	"bench/launched":                    {"profiler", "profiler/perf"},
	"bench/profiler":                    {"bench/launched", "profiler", "clients/rest", "e2e/launch", "profiler/perf", "trial/series", "workers/agent/process"},
	"bench/similarity":                  {"bench/launched", "profiler", "similarity", "study/space", "study/system", "trial", "profiler/perf"},
	"cmd/tandem":                        {"cmd/tandem/internal/datasetcmd", "cmd/tandem/internal/keyscmd", "cmd/tandem/internal/edgecmd", "cmd/tandem/internal/hookcmd", "cmd/tandem/internal/launchcmd", "cmd/tandem/internal/logincmd", "cmd/tandem/internal/mcpcmd", "cmd/tandem/internal/policycmd", "cmd/tandem/internal/poolcmd", "cmd/tandem/internal/profilecmd", "cmd/tandem/internal/runcmd", "cmd/tandem/internal/servecmd", "cmd/tandem/internal/startcmd", "cmd/tandem/internal/studycmd", "cmd/tandem/internal/term", "cmd/tandem/internal/truthcmd", "cmd/tandem/internal/workercmd", "study/definition", "workers/ranks", "workers/sandbox", "workers/service"},
	"cmd/tandem/edge":                   {"cmd/tandem/internal/edgecmd", "cmd/tandem/internal/term"},
	"cmd/tandem/internal/edgecmd":       {"inference_emu/onnxruntime", "inference_emu/board", "clients/rest", "cmd/tandem/internal/show", "cmd/tandem/internal/term", "inference_emu", "inference_emu/backend", "inference_emu/deployment", "inference_emu/device", "inference_emu/emulator", "inference_emu/graph", "inference_emu/onnx", "inference_emu/tuning", "internal/format", "internal/problem", "profiler", "profiler/power", "profiler/proc"},
	"cmd/tandem/internal/hookcmd":       {"clients/rest", "cmd/tandem/internal/term", "internal/format", "study/definition", "study/hook"},
	"docs":                              {},
	"cmd/tandem/internal/datasetcmd":    {"clients/rest", "cmd/tandem/internal/term", "internal/format", "internal/problem", "internal/protocol", "internal/sealed", "study/definition", "workers/agent/artifact"},
	"cmd/tandem/internal/beside":        {},
	"cmd/tandem/internal/keyscmd":       {"clients/rest", "cmd/tandem/internal/term", "internal/problem", "internal/sealed", "web/certificate", "workers/confidential/broker", "workers/confidential/evidence", "workers/confidential/policy", "workers/confidential/release"},
	"workers/confidential/broker":       {"internal/files", "internal/failpoint", "workers/confidential/evidence", "workers/confidential/policy", "workers/confidential/release"},
	"workers/confidential/release":      {"workers/confidential/evidence"},
	"workers/confidential/enclave":      {"profiler", "workers/confidential/policy", "internal/problem", "internal/protocol", "internal/sealed", "study/definition", "workers/agent/clock", "workers/agent/retry", "workers/confidential/broker", "workers/confidential/evidence", "workers/confidential/release"},
	"cmd/tandem/internal/mcpcmd":        {"clients/rest", "cmd/tandem/internal/show", "cmd/tandem/internal/studycmd", "cmd/tandem/internal/term", "docs", "internal/format", "internal/protocol", "study/space", "study/studyfile"},
	"cmd/tandem/internal/poolcmd":       {"internal/build", "internal/protocol/crew", "clients/rest", "cmd/tandem/internal/show", "cmd/tandem/internal/term", "internal/format", "internal/problem", "internal/protocol", "trial", "study/selector"},
	"cmd/tandem/internal/profilecmd":    {"cmd/tandem/internal/term", "profiler", "trial", "workers/agent/process", "profiler/proc", "profiler/perf"},
	"cmd/tandem/internal/runcmd":        {"clients/rest", "cmd/tandem/internal/servecmd", "cmd/tandem/internal/show", "cmd/tandem/internal/studycmd", "cmd/tandem/internal/term", "cmd/tandem/internal/workercmd", "internal/format", "internal/problem", "internal/protocol", "study/definition", "web/auth", "workers/agent", "workers/sandbox"},
	"cmd/tandem/internal/comparecmd":    {"clients/rest", "cmd/tandem/internal/term", "internal/format", "internal/protocol", "internal/regression", "study/definition", "trial"},
	"cmd/tandem/internal/attestcmd":     {"cmd/tandem/internal/term", "internal/format", "internal/protocol", "study/journal", "trial", "workers/confidential/policy", "workers/confidential/release"},
	"cmd/tandem/internal/policycmd":     {"cmd/tandem/internal/term", "internal/sealed", "workers/confidential/evidence", "workers/confidential/policy"},
	"workers/confidential/evidence":     {"internal/problem"},
	"workers/confidential/evidencetest": {"workers/confidential/evidence"},
	"workers/confidential/policy":       {"internal/problem", "study/studyfile/tree", "workers/confidential/evidence"},
	"cmd/tandem/internal/launchcmd":     {"internal/sealed", "cmd/tandem/internal/term", "internal/format", "internal/problem", "workers/launcher", "workers/launcher/command", "workers/launcher/engine", "workers/launcher/kubernetes", "workers/launcher/loop", "workers/launcher/slurm"},
	"cmd/tandem/internal/logincmd":      {"clients/rest", "cmd/tandem/internal/term", "internal/format", "internal/problem", "internal/protocol"},
	"cmd/tandem/internal/servecmd":      {"study/tariff", "clients/rest", "cmd/tandem/internal/beside", "cmd/tandem/internal/term", "internal/format", "internal/problem", "internal/protocol", "similarity", "store/artifact", "store/backup", "store/bucket", "store/filesystem", "store/postgres", "store/sqlite", "study", "study/journal", "study/upload", "web/api", "web/audit", "web/auth", "web/certificate", "web/forecasting", "web/guard", "web/hooks", "web/limit", "web/monitoring", "web/standby", "web/oidc", "web/ui", "web/usecases", "workers/forecast"},
	"cmd/tandem/internal/show":          {"clients/rest", "cmd/tandem/internal/term", "inference_emu/deployment", "inference_emu/device", "inference_emu/estimate", "inference_emu/tuning", "internal/format", "internal/protocol", "study/definition", "study/space", "trial"},
	"cmd/tandem/internal/startcmd":      {"cmd/tandem/internal/term", "examples", "internal/format", "study/studyfile", "study/studyfile/tree"},
	"cmd/tandem/internal/studycmd":      {"internal/files", "inference_emu/deployment", "workers/agent/artifact", "cmd/tandem/internal/attestcmd", "cmd/tandem/internal/comparecmd", "internal/sealed", "budget", "clients/rest", "cmd/tandem/internal/show", "cmd/tandem/internal/term", "internal/format", "internal/problem", "internal/protocol", "store/importer", "study", "study/definition", "study/hook", "study/journal", "study/session", "study/space", "study/studyfile", "trial", "web/ui"},
	"cmd/tandem/internal/term":          {"internal/files", "clients/rest", "internal/format", "internal/problem", "web/certificate"},
	"cmd/tandem/internal/truthcmd":      {"clients/rest", "cmd/tandem/internal/term", "internal/format", "internal/protocol", "study/system"},
	"cmd/tandem/internal/workercmd":     {"inference_emu/onnxruntime", "study/definition", "workers/confidential/enclave", "workers/confidential/evidence", "internal/sealed", "inference_emu/board", "workers/agent/retry", "clients/rest", "cmd/tandem/internal/edgecmd", "cmd/tandem/internal/profilecmd", "cmd/tandem/internal/term", "inference_emu", "inference_emu/emulator", "internal/format", "internal/problem", "internal/protocol", "profiler", "profiler/power", "profiler/proc", "workers/agent", "workers/agent/artifact", "workers/agent/knob", "workers/agent/leave", "workers/agent/probe", "workers/sandbox", "workers/agent/process", "study/selector"},
}

// pure packages decide and do nothing else: none of these may appear in them.
var pure = []string{
	"budget",
	"e2e/history",
	"inference_emu",
	"inference_emu/backend",
	"inference_emu/batching",
	"inference_emu/device",
	"inference_emu/estimate",
	"inference_emu/graph",
	"inference_emu/inference",
	"inference_emu/onnx",
	"inference_emu/onnx/document",
	"inference_emu/tuning",
	"internal/format",
	"internal/nn",
	"internal/problem",
	"internal/protocol",
	"internal/regression",
	"similarity",
	"similarity/groundtruth",
	"similarity/probing",
	"similarity/reuse",
	"study",
	"study/advice",
	"study/analysis",
	"study/correlation",
	"study/definition",
	"study/selector",
	"study/hook",
	"study/importance",
	"study/journal",
	"study/objective",
	"study/pareto",
	"study/query",
	"study/poolview",
	"study/ranking",
	"study/registry",
	"study/search",
	"study/search/bohb",
	"study/search/cmaes",
	"study/search/gp",
	"study/search/grid",
	"study/search/kde",
	"study/search/ladder",
	"study/search/prior",
	"study/search/promotion",
	"study/search/propose",
	"study/search/sobol",
	"study/search/stopping",
	"study/search/tpe",
	"study/space",
	"study/spending",
	"study/studyfile",
	"study/studyfile/tree",
	"study/surrogate",
	"study/system",
	"study/tuning",
	"study/upload",
	"study/warmstart",
	"trial",
	"trial/series",
	"workers/approximation",
	"workers/confidential/evidence",
	"workers/confidential/policy",
	"workers/confidential/release",
	"workers/demand",
	"workers/forecast",
	"workers/governor",
	"workers/gpushare",
	"workers/gpushare/interference",
	"workers/gpushare/packing",
	"workers/gpushare/utilization",
	"workers/pool",
	"workers/scheduler",
	"workers/scheduler/costmodel",
}

var impure = []string{"net", "net/http", "os", "os/exec", "database/sql", "syscall", "math/rand", "crypto/rand", "log", "io/fs"}

// doors names the one package through which each foreign module enters.
var doors = map[string][]string{
	"filippo.io/age":                    {"internal/sealed"},
	"github.com/c-bata/goptuna":         {"bench/search", "clients/go/goptunatandem"},
	"github.com/danielgtaylor/huma/v2":  {"web/api", "web/openapi"},
	"github.com/expr-lang/expr":         {"study/objective"},
	"github.com/go-chi/chi/v5":          {"web/api"},
	"github.com/goccy/go-yaml":          {"cmd/tandem/internal/launchcmd", "study/studyfile/tree", "bench/pool/replay/trace"},
	"github.com/jackc/pgx/v5":           {"store/postgres"},
	"github.com/johannesboyne/gofakes3": {"store/bucket/buckettest"},
	"github.com/klauspost/compress":     {"web/guard"},
	"github.com/minio/minio-go/v7":      {"store/bucket", "store/bucket/buckettest"},
	"github.com/landlock-lsm":           {"inference_emu/emulator", "workers/sandbox"},
	"github.com/google/go-sev-guest":    {"workers/confidential/evidence", "workers/confidential/evidencetest"},
	"github.com/google/go-tdx-guest":    {"workers/confidential/evidence", "workers/confidential/evidencetest"},
	"github.com/hanwen/go-fuse/v2":      {"store/lossydisk"}, // for tests of others, like the package itself
	"github.com/mattn/go-sqlite3":       {"store/sqlite", "store/sqlite/dbfile"},
	"github.com/pressly/goose/v3":       {"store/postgres", "store/sqlite/dbfile"},
	"github.com/coreos/go-oidc/v3":      {"web/oidc"},
	"golang.org/x/oauth2":               {"web/oidc"},
	"github.com/wneessen/go-mail":       {"web/hooks"},
	"github.com/spf13/cobra":            {"cmd/tandem", "cmd/tandem/edge", "cmd/tandem/internal/attestcmd", "cmd/tandem/internal/comparecmd", "cmd/tandem/internal/datasetcmd", "cmd/tandem/internal/edgecmd", "cmd/tandem/internal/hookcmd", "cmd/tandem/internal/keyscmd", "cmd/tandem/internal/launchcmd", "cmd/tandem/internal/logincmd", "cmd/tandem/internal/mcpcmd", "cmd/tandem/internal/policycmd", "cmd/tandem/internal/poolcmd", "cmd/tandem/internal/profilecmd", "cmd/tandem/internal/runcmd", "cmd/tandem/internal/servecmd", "cmd/tandem/internal/startcmd", "cmd/tandem/internal/studycmd", "cmd/tandem/internal/term", "cmd/tandem/internal/truthcmd", "cmd/tandem/internal/workercmd"},
	"github.com/modelcontextprotocol":   {"cmd/tandem/internal/mcpcmd"},
	"github.com/sethvargo/go-retry":     {"workers/agent/retry"},
	"github.com/yalue/onnxruntime_go":   {"inference_emu/emulator"},
	"gorgonia.org":                      {"internal/nn"},
	"github.com/spf13/pflag":            {"cmd/tandem/internal/term", "workers/launcher/kubernetes"}, // options of shapes are flags
	"k8s.io":                            {"e2e/cluster", "workers/launcher/kubernetes"},
	"sigs.k8s.io":                       {"e2e/cluster", "workers/launcher/kubernetes"},
	"gonum.org/v1/gonum":                {"inference_emu/batching", "internal/regression", "similarity", "similarity/probing", "study/advice", "study/search/cmaes", "workers/approximation"},
	"golang.org/x/sys":                  {"profiler", "profiler/perf", "profiler/proc", "profiler/rapl", "workers/agent/agenttest", "workers/agent/cgroup", "workers/agent/clock", "workers/agent/knob", "workers/agent/probe", "workers/agent/process", "workers/agent/script", "workers/agent/workspace", "store/filesystem", "store/sqlite", "inference_emu/emulator", "workers/sandbox", "workers/sandbox/filter", "e2e/limits", "store/sqlite/dbfile", "cmd/tandem/internal/profilecmd", "cmd/tandem/internal/beside", "cmd/tandem/internal/servecmd", "cmd/tandem/internal/term"},
	"github.com/chromedp/chromedp":      {"bench/ui"},                                                                         // and tests
	"google.golang.org/protobuf":        {"bench/edgetune/zoo", "inference_emu/onnx/document", "inference_emu/onnx/onnxtest"}, // one reads models, the other writes them
	"pgregory.net/rapid":                {"study/search/searchtest", "store/storetest"},

	"github.com/prometheus/client_golang": {"web/monitoring"},
	"golang.org/x/time":                   {"web/limit"},
	"golang.org/x/text":                   {"cmd/tandem/internal/term"},
	"golang.org/x/term":                   {"cmd/tandem/internal/term"},
}

type source struct {
	folder, path string
	test         bool
	file         *ast.File
	set          *token.FileSet
	lines        int
}

// sources are the parsed Go files of the repository, read once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var parsed = sync.OnceValues(func() ([]source, error) {
	var list []source
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "examples") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, content, parser.ParseComments)
		if err != nil {
			return err
		}
		list = append(list, source{
			folder: filepath.ToSlash(filepath.Dir(path)), path: path, test: strings.HasSuffix(path, "_test.go"),
			file: file, set: set, lines: bytes.Count(content, []byte("\n")),
		})
		return nil
	})
	return list, err
})

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, one := range sources(t) {
		if one.test || one.folder == "." {
			continue
		}
		allowed, known := mayImport[one.folder]
		if !known {
			t.Errorf("%s: package %s is not in the import table", one.path, one.folder)
			continue
		}
		for _, path := range imports(one.file) {
			ours, isOurs := strings.CutPrefix(path, module)
			if isOurs && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s: that arrow is not in the import table", one.path, ours)
			}
		}
	}
}

// Files of models come from anywhere. Users read their own, with the command
// line; the server is told graphs and never takes such a file apart.
func TestTheServerReadsNoModelFiles(t *testing.T) {
	var reaches func(folder string) bool
	reaches = func(folder string) bool {
		return folder == "inference_emu/onnx" || slices.ContainsFunc(mayImport[folder], reaches)
	}
	for folder := range mayImport {
		if root, _, _ := strings.Cut(folder, "/"); slices.Contains([]string{"study", "store", "web"}, root) && reaches(folder) {
			t.Errorf("%s may import inference_emu/onnx, through others perhaps: only the command line reads files of models", folder)
		}
	}
}

func TestPurePackagesDoNoInputOrOutput(t *testing.T) {
	for _, one := range sources(t) {
		if one.test || !slices.Contains(pure, one.folder) {
			continue
		}
		for _, path := range imports(one.file) {
			if slices.Contains(impure, path) {
				t.Errorf("%s imports %s: %s is a pure package", one.path, path, one.folder)
			}
		}
		ast.Inspect(one.file, func(node ast.Node) bool {
			call, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if name, ok := call.X.(*ast.Ident); ok && name.Name == "time" && slices.Contains([]string{"Now", "Since", "Sleep", "After", "NewTimer", "Tick"}, call.Sel.Name) {
				t.Errorf("%s uses time.%s: a pure package is told the time", one.set.Position(call.Pos()), call.Sel.Name)
			}
			return true
		})
	}
}

// TestWhatIsTestedWithoutTheRaceDetectorIsThere: a test whose name is another now
// would take long again, and nobody would know why.
func TestWhatIsTestedWithoutTheRaceDetectorIsThere(t *testing.T) {
	script, err := os.ReadFile("scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^serial='\^\((.+)\)\$.*'$`).FindSubmatch(script)
	if line == nil {
		t.Fatal("scripts/test has no line serial='^(...)$...'")
	}
	there := map[string]bool{}
	for _, one := range sources(t) {
		for _, declared := range one.file.Decls {
			if function, is := declared.(*ast.FuncDecl); is && one.test {
				there[function.Name.Name] = true
			}
		}
	}
	for name := range strings.SplitSeq(string(line[1]), "|") {
		if !there[name] {
			t.Errorf("scripts/test names %s, which is no test", name)
		}
	}
}

// sequential are the folders that scripts/test tests without the race detector.
func sequential(t *testing.T) *regexp.Regexp {
	t.Helper()
	script, err := os.ReadFile("scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^sequential='(.+)'$`).FindSubmatch(script)
	if named == nil {
		t.Fatal("scripts/test has no line sequential='...'")
	}
	folders, err := regexp.Compile(string(named[1]))
	if err != nil {
		t.Fatalf("scripts/test: sequential: %v", err)
	}
	return folders
}

// What is tested without the race detector shares nothing between goroutines.
func TestWithoutTheRaceDetectorEverythingIsSequential(t *testing.T) {
	folders, checked := sequential(t), map[string]bool{}
	for _, one := range sources(t) {
		if one.test || !folders.MatchString(one.folder) {
			continue
		}
		checked[one.folder] = true
		for _, path := range imports(one.file) {
			if path == "sync" || path == "sync/atomic" {
				t.Errorf("%s imports %s: nothing here is shared by goroutines", one.path, path)
			}
		}
		ast.Inspect(one.file, func(node ast.Node) bool {
			if statement, ok := node.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", one.set.Position(statement.Pos()))
			}
			return true
		})
	}
	for _, folder := range []string{"inference_emu/tuning", "bench/simulator", "study/search", "bench/pool/replay/trace"} {
		if !checked[folder] {
			t.Errorf("%s is not among what scripts/test takes for sequential: %v", folder, folders)
		}
	}
	if checked["study"] || checked["workers/agent"] {
		t.Errorf("study and workers/agent have goroutines, and scripts/test takes them for sequential: %v", folders)
	}
}

func TestForeignModulesEnterThroughTheirDoor(t *testing.T) {
	for _, one := range sources(t) {
		if one.test {
			continue
		}
		for _, path := range imports(one.file) {
			for foreign, folders := range doors {
				if (path == foreign || strings.HasPrefix(path, foreign+"/")) && !slices.Contains(folders, one.folder) {
					t.Errorf("%s imports %s: it enters only through %v", one.path, path, folders)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented := map[string]bool{}
	for _, one := range sources(t) {
		if !one.test {
			documented[one.folder] = documented[one.folder] || one.file.Doc != nil
		}
	}
	for folder, has := range documented {
		if !has {
			t.Errorf("package %s has no package comment", folder)
		}
	}
}

func TestNoInitAndNoGiants(t *testing.T) {
	for _, one := range sources(t) {
		for _, declaration := range one.file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || one.test {
				continue
			}
			if function.Name.Name == "init" && function.Recv == nil {
				t.Errorf("%s: no init functions", one.path)
			}
			first, last := one.set.Position(function.Pos()).Line, one.set.Position(function.End()).Line
			if last-first+1 > 60 {
				t.Errorf("%s: %s has %d lines, at most 60", one.path, function.Name.Name, last-first+1)
			}
			if parameters := function.Type.Params.NumFields(); parameters > 5 {
				t.Errorf("%s: %s takes %d parameters, at most 5", one.path, function.Name.Name, parameters)
			}
		}
		if !one.test && one.lines > 400 {
			t.Errorf("%s has %d lines, at most 400", one.path, one.lines)
		}
	}
}
