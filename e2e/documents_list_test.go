package e2e_test

import (
	"iter"
	"regexp"
	"strings"
)

// notRead are the pages of measurements and of the past; tutorial_test.go follows followed,
// but for their blocks with a prompt.
var notRead, followed = regexp.MustCompile(`^(benchmarks/|decisions/)`), regexp.MustCompile(`^(tutorials/|optuna\.md)`)

// changing are the examples of the generated reference that are only read, by cmd/tandem:
// commands that change something, go on, or want a terminal.
var changing = regexp.MustCompile(`tandem (backend (add|remove)|backup|dataset (delete|encrypt|publish)|edge agent|example|ground-truth (forget|import)|group (remove|set)|hook (create|delete|test)|init|` +
	`keys|launch|log(in|out)|mcp|policy|pool try-again|profile|quota (remove|set)|reservation (make|remove)|restore|run|serve|study (create|delete|enqueue|extend|note|pause|resume|retry|share|stop|tag)|` +
	`token (create|revoke)|user remove|worker )|--watch`)

// longest is the longest of the beginnings that the line has.
func longest(begins iter.Seq[string], line string) (found string) {
	for begin := range begins {
		if strings.HasPrefix(line, begin) && len(begin) > len(found) {
			found = begin
		}
	}
	return found
}

// otherCodes are those of commands that end with something else than 0, as their page says.
var otherCodes = map[string]int{
	"confidential.md: tandem policy verify":          1, // recorded reports have no collateral
	"edge.md: tandem backend choose":                 1, // no board has measured the model
	"reference/cli.md: tandem backend choose":        1,
	"reference/cli.md: tandem doctor --confidential": 1, // no confidential machine
}

// notRun are the beginnings of commands that are only read, by cmd/tandem, each with why.
var notRun = map[string]string{
	"README.md: pip install ":                                                                  "scripts/release builds the wheel; clients/python test_the_wheel_is_all_that_the_quick_start_needs",
	"confidential.md: mkdir /sys/kernel/config":                                                "a confidential machine",
	"confidential.md: head -c 64":                                                              "a confidential machine",
	"confidential.md: cat outblob":                                                             "a confidential machine",
	"confidential.md: nvattest ":                                                               "NVIDIA's GPUs in confidential mode",
	"confidential.md: tandem worker --confidential auto":                                       "a confidential machine; TestConfidentialTrialsTellOnlyWhatIsDeclared has a double",
	"confidential.md: tandem study attestations scans":                                         "a study of a confidential machine; TestConfidentialTrialsTellOnlyWhatIsDeclared",
	"confidential.md: tandem study log scans 4":                                                "a study of a confidential machine",
	"go-client.md: go mod edit":                                                                "a module of the reader's; clients/go",
	"kubernetes.md: docker build":                                                              "Docker",
	"kubernetes.md: docker push":                                                               "a registry",
	"kubernetes.md: kubectl apply -k":                                                          "a cluster; scripts/test long",
	"kubernetes.md: kubectl -n tandem create secret":                                           "a cluster; scripts/test long",
	"kubernetes.md: kubectl -n tandem port-forward":                                            "a cluster; scripts/test long",
	"kubernetes.md: in_server()":                                                               "a cluster; scripts/test long",
	"kubernetes.md: in_server tandem token create":                                             "a cluster; scripts/test long",
	"kubernetes.md: in_server cat":                                                             "a cluster; scripts/test long",
	"kubernetes.md: rm token":                                                                  "a cluster; scripts/test long",
	"launch.md: tandem launch command --commands ray":                                          "a Ray cluster; TestRay, by night",
	"launch.md: tandem pool try-again":                                                         "a shape on hold; TestSlurmRunsStudies",
	"mcp.md: claude mcp add":                                                                   "Claude Code; TestAgentsOfThePythonSDKAreServed",
	"operations.md: make build && sudo":                                                        "root and systemd; e2e/machine",
	"costs.md: tandem quota set":                                                               "a server with prices; TestAQuotaBoundsTheCostOfADay",
	"operations.md: sudo useradd --system --home /var":                                         "root and systemd; e2e/machine",
	"operations.md: sudo useradd --system --create-home":                                       "root and systemd; e2e/machine",
	"operations.md: sudo cp deploy/systemd/tandem-server":                                      "root and systemd; e2e/machine",
	"operations.md: sudo cp deploy/systemd/tandem-worker":                                      "root and systemd; e2e/machine",
	"operations.md: sudo systemctl daemon-reload && sudo systemctl enable --now tandem-server": "root and systemd; e2e/machine",
	"operations.md: sudo systemctl daemon-reload && sudo systemctl enable --now tandem-worker": "root and systemd; e2e/machine",
	"operations.md: sudo mkdir":                                                                "root and systemd; e2e/machine",
	"operations.md: sudo journalctl":                                                           "root and systemd; e2e/machine",
	"operations.md: export AWS_ACCESS_KEY_ID":                                                  "a bucket; TestCheckpointsAreInABucket",
	"operations.md: tandem serve --artifacts s3://checkpoints/tandem --artifacts-endpoint":     "a bucket; TestCheckpointsAreInABucket",
	"operations.md: tandem serve --artifacts s3://checkpoints/tandem":                          "a bucket; TestCheckpointsAreInABucket",
	"profiling.md: tandem doctor --meter command:./plug --calibrate-":                          "an hour on a machine that does nothing else",
	"python-client.md: pip install ":                                                           "a package index",
	"reliability.md: TANDEM_SEEDS=5000 go test":                                                "a test of its own, for hours",
	"reliability.md: go run ./bench/faults -runs":                                              "a test of its own, for hours",
	"reliability.md: go run ./bench/faults -postgres":                                          "a test of its own, for hours",
	"reliability.md: TANDEM_FAILPOINT_CASES=all go test":                                       "a test of its own, for hours",
	"reliability.md: scripts/broken-rules":                                                     "a test of its own, for hours",
	"reference/cli.md: tandem doctor --meter command:./plug --calibrate-power":                 "an hour on a machine that does nothing else",
	"reference/cli.md: tandem study attestations":                                              "a study of a confidential machine; TestConfidentialTrialsTellOnlyWhatIsDeclared",
	"tutorials/pytorch.md: make build":                                                         "Go and minutes; scripts/test builds",
	"tutorials/pytorch.md: scripts/setup-python":                                               "PyTorch of elsewhere; scripts/test runs it",
	"tutorials/raspberry-pi.md: scp -r clothes":                                                "a Raspberry Pi",
	"tutorials/raspberry-pi.md: ssh pi@raspberrypi 'python3":                                   "a Raspberry Pi",
	"tutorials/raspberry-pi.md: CGO_ENABLED=1":                                                 "a compiler for arm64; scripts/release builds with one",
	"tutorials/raspberry-pi.md: scp tandem-arm64":                                              "a Raspberry Pi",
	"tutorials/raspberry-pi.md: ssh pi@raspberrypi 'PATH":                                      "a Raspberry Pi",
	"replay.md: base=":                                                                         "a trace of elsewhere",
	"replay.md: curl -fL -o simulation":                                                        "a trace of elsewhere",
	"replay.md: curl -fL -o msr":                                                               "a trace of elsewhere",
	"replay.md: go run ./bench/pool replay":                                                    "a trace of elsewhere",
	"training-scripts.md: curl --unix-socket":                                                  "inside a trial",
	"users.md: tandem serve --oidc-issuer":                                                     "an identity provider; e2e/oidc",
	"users.md: tandem login":                                                                   "an identity provider; e2e/oidc",
}

// standIns are what the documents leave to the reader, and what is typed in its place.
var standIns = [][]string{
	{"tandem run quick-start/study.yaml", "sed -i 's/trials: 27/trials: 2/; s/max: 27/max: 3/' quick-start/study.yaml && tandem run --listen 127.0.0.1:0 --path client --allow-read $CLIENT quick-start/study.yaml"},
	{"tandem run study.yaml", "tandem run --listen 127.0.0.1:0 --path client --allow-read $CLIENT study.yaml"},
	{"tandem serve --data /srv/tandem --listen 0.0.0.0:7171", "tandem serve --data new --listen 127.0.0.1:0"},
	{"https://tuner.lab:7171", "$TANDEM_SERVER"},
	{"/etc/tandem/worker.token", "token"},
	{"/srv/project", "home/project"},
	{"/srv/data", "data"},
	{"pi.yaml", "study.yaml"},
	{"tandem serve", "tandem serve --listen 127.0.0.1:0"},
	{"tandem keys serve", "tandem keys serve --listen 127.0.0.1:0"},
	{"tandem worker --", "tandem worker --name docs --probe never --scratch scratch --"},
	{"tandem launch kubernetes", "tandem launch kubernetes --once"},
	{"tandem launch slurm", "tandem launch slurm --once"},
	{"tandem launch command", "tandem launch command --once"},
	{"tandem edge run", "tandem edge run --seconds 0.1"},
	{"tandem init train.py", "tandem init script/train.py"},
	{"TANDEM_TOKEN=...", "TANDEM_TOKEN=$TANDEM_TOKEN"},
	{"server URL", "server $TANDEM_SERVER"},
	{"/mnt/backups/tandem-2026-03-29.tar", "tandem-*.tar"},
	{"/mnt/backups/", ""},
	{"/srv/tandem", "$SITE"},
	{"/srv/new", "new"},
	{"FOLDER", "$SITE"},
	{"sudo -u tandem tandem", "tandem"},
	{"/var/lib/tandem", "$SITE"},
	{"'postgres://tandem@db.example.org/tandem?sslmode=verify-full'", "\"$DATABASE\""},
	{"10.0.0.5:7171", "127.0.0.1:0"},
	{"cert.pem --tls-key key.pem", "$SITE/tls/authority.pem --tls-key $SITE/tls/authority-key.pem"},
	{"https://tandem.example:7171", "$TANDEM_SERVER"},
	{"https://tandem.example.org", "$TANDEM_SERVER"},
	{"https://localhost:7171", "$TANDEM_SERVER"},
	{"http://127.0.0.1:7171", "$TANDEM_SERVER"},
	{"127.0.0.1:7180", "127.0.0.1:0"},
	{"https://example.org/tandem", "$ELSEWHERE"},
	{"http://plug.lan", "$ELSEWHERE"},
	{"https://bmc.lan", "$ELSEWHERE"},
	{"--token-file FILE", "--token-file token"},
	{"--mail-password-file FILE", "--mail-password-file token"},
	{"/usr/local/bin/page", "$(which true)"},
	{"ed25519:9UbGEKxY...", "$(jq -r .signer policy.json)"},
	{"ed25519:Kq2v...", "$(jq -r .signer policy.json)"},
	{" --collateral amd_crl=genoa.crl > machine.json", " > machine.json"}, // the recorded report is a Milan's
	{"policy from-evidence", "policy from-evidence --at 2023-07-01T00:00:00Z"},
	{"policy verify", "policy verify --at 2023-07-01T00:00:00Z"},
	{"python3 infer.py", "env -C deployment python3 infer.py"},
	{"checkpoint STUDY --output model --identity workers.key", "checkpoint sealed --output model --identity sealed.key"},
	{"watch NAME", "watch lenet-fashion-mnist"},
	{"drain NAME", "drain box-1"},
	{"group set NAME", "group set ml"},
	{"checkpoint lenet-fashion-mnist --output model", "checkpoint small-and-accurate --output plain"},
	{"checkpoint lenet-fashion-mnist --trial 14 --output model --identity workers.key", "checkpoint sealed --trial 0 --output model --identity sealed.key"},
	{"lenet-fashion-mnist 14", "lenet-fashion-mnist 0"},
	{"--trial 7", "--trial 0"},
	{"sequence=128 --int-range 30000", "length=5 --int-range 10"},
	{"--expect 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "--expect $(cat $SITE/audit/* | head -n 1 | jq -r .hash)"},
	{"--measured other.onnx=run.json", "--measured model.onnx=<(tandem edge run model.onnx --batch 1,2 --json | jq '.environment.cpu_model = \"\"')"},
	{"tandem verify\n", "tandem verify $SITE\n"},
	{"STUDY NUMBER", "lenet-fashion-mnist 0"},
	{"STUDY N", "lenet-fashion-mnist 0"},
	{"STUDY", "lenet-fashion-mnist"},
	{"--samples 14", "--samples 0"},
	{"audit verify", "audit verify --data $SITE"},
	{"--token-file device.token", "--token-file device.token --force"},
	{"--load 10", "--load 1"},
	{"--serve 8000", "--serve 0"},
	{"workers.key --policy", "sealed.key --policy"},
	{"--trial N", "--trial 0"},
	{"3fX9kQ2mLp0a", "$(tandem token list --json | jq -r '[.tokens[] | select(.name == \"kitchen\")][0].id')"},
	{"revoke ID", "revoke $(tandem token list --json | jq -r '[.tokens[] | select(.name == \"bob\")][0].id')"},
	{"compare A B", "compare lenet-fashion-mnist sealed"},
	{"lenet-bohb lenet-random lenet-grid", "lenet-fashion-mnist sealed"},
	{"lenet-bohb lenet-random", "lenet-fashion-mnist sealed"},
	{"share lenet --", "share lenet-fashion-mnist --"},
	{"transfer STUDY --to USER", "transfer lenet-fashion-mnist --to admin"}, // whose it is
	{"transfer lenet-fashion-mnist --to bob", "transfer lenet-fashion-mnist --to admin"},
	{"transfer alice:lenet-fashion-mnist --to bob --name lenet-alice", "transfer lenet-fashion-mnist --to admin"},
	{"USER --", "bob --"},
	{"SHA256", "9772093ec3209e3708eea3f2ef57fe4c399ed97e8c6c9ef1cee05c929b62b426"},
	{"SHAPE", "cpu"},
	{"/data/imagenet", "data"},
	{"/etc/tandem/hf-token", "etc/hf-token"},
	{"'/opt/lab/bin/*'", "\"$PWD/lab/*\""},
	{"sudo install -m 600 /dev/stdin /etc/tandem/", "install -m 600 /dev/stdin etc/"},
	{"--namespace tuning", "--namespace $NAMESPACE"},
}
