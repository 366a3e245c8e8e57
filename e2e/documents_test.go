package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-sev-guest/verify/testdata"

	"github.com/tandem-tune/tandem/e2e/cluster"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
)

var (
	block = regexp.MustCompile("(?ms)^```(\\w*)[^\n]*\n(.*?)^```$")
	// told is a command within a sentence, with values: "tandem study list" is only its name.
	told   = regexp.MustCompile("`((?:sudo -u tandem )?tandem [^`]+)`")
	naming = regexp.MustCompile(`^tandem( [a-z-]+)*$`)
	// token is a part of shell text: quoted, escaped, a comment, the end of a line, or else.
	token     = regexp.MustCompile(`(?m)'[^']*'|"[^"]*"|\\(?s:.)|(?:^|[ \t]+)#[^\n]*|\n|.`)
	studyName = regexp.MustCompile(`(?m)^name: .*`)
	// lasting are the commands that go on until they are told to end.
	lasting = regexp.MustCompile(`tandem (serve|worker|keys serve|edge agent|mcp)(?: -.*)?$|(--serve 0)$`)
	ready   = map[string]string{"serve": "Tandem answers at", "worker": "msg=registered", "keys serve": "machines show the token", "edge agent": "this board", "mcp": "Agents are served at", "--serve 0": "serves on"}
)

// typed are the commands of a block, a line each, without comments.
func typed(text string) (list []string) {
	var line strings.Builder
	for _, one := range token.FindAllString(text, -1) {
		switch {
		case one == "\n":
			list = append(list, strings.TrimSpace(line.String()))
			line.Reset()
		case one == "\\\n":
			line.WriteString(" ")
		case !strings.HasPrefix(strings.TrimSpace(one), "#"):
			line.WriteString(one)
		}
	}
	return slices.DeleteFunc(list, func(line string) bool { return line == "" })
}

// page is a document, with what it tells people to type and the files that it shows.
type page struct {
	name  string
	lines []string
	files map[string]string
}

// pages are the documents, without what other tests run of them.
func pages(t *testing.T) (list []page) {
	t.Helper()
	paths := []string{"../README.md", "../SECURITY.md", "../CONTRIBUTING.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		name := strings.TrimPrefix(strings.TrimPrefix(path, "../"), "docs/")
		if notRead.MatchString(name) {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		one := page{name: name, files: map[string]string{}}
		for _, found := range block.FindAllStringSubmatch(string(content), -1) {
			first, _, _ := strings.Cut(found[2], "\n")
			switch language := found[1]; {
			case language == "sh" && !followed.MatchString(name):
				one.lines = append(one.lines, typed(found[2])...)
			case language == "console":
				one.lines = append(one.lines, typed(strings.TrimPrefix(strings.ReplaceAll("\n"+found[2], "\n$ ", "\n"), "\n"))...)
			case language == "yaml" && strings.HasPrefix(first, "# ") && strings.HasSuffix(first, ".yaml"):
				one.files[first[2:]] = found[2]
			case language == "yaml" && strings.HasPrefix(first, "name: ") && !followed.MatchString(name):
				one.files["study.yaml"] = found[2]
			case language == "python" && name == "README.md":
				one.files["train.py"] = readmeScript + found[2]
			}
		}
		if name == "reference/cli.md" {
			one.lines = slices.DeleteFunc(one.lines, changing.MatchString)
		}
		for _, found := range told.FindAllStringSubmatch(block.ReplaceAllString(string(content), ""), -1) {
			if line := strings.TrimSpace(found[1]); !naming.MatchString(line) && !slices.Contains(one.lines, line) {
				one.lines = append(one.lines, line)
			}
		}
		list = append(list, one)
	}
	return list
}

// readmeScript is what stands around the training loop of the README.
const readmeScript = `
data, build = [], lambda params: (params["learning_rate"], None)
first, train_one_epoch, evaluate = lambda data, share: data, lambda model, optimizer, data: None, lambda model: 1 - model
save, load = lambda model, optimizer, path: (path / "model").write_text(str(model)), lambda model, optimizer, path: (path / "model").read_text()

`

// desk is where the commands are typed: a server with what the documents tell of, and a
// folder with the files, of which each page has a copy.
type desk struct {
	*site
	test         *testing.T
	folder, path string
	environment  []string
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // some are programs
		d.t.Fatal(err)
	}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{test: t, site: newSite(t, "--tls", "--allow-hook-address", "127.0.0.1/32"), folder: t.TempDir()}
	// It takes what hooks tell, and has what meters show.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apower": 5, "PowerControl": [{"PowerConsumedWatts": 5}]}`)
	}))
	t.Cleanup(elsewhere.Close)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	client, authority, pods := filepath.Join(root, "clients", "python"), filepath.Join(d.data, "tls", "authority.pem"), cluster.StartKubernetes(t, nil)
	d.environment = append(d.site.environment(), "NO_COLOR=1", "USER=ann", "SITE="+d.data, "CLIENT="+client, "CURL_CA_BUNDLE="+authority,
		"ELSEWHERE="+elsewhere.URL, "KUBECONFIG="+pods.Config, "NAMESPACE="+pods.Namespace)
	d.path = filepath.Join(root, ".venv-test", "bin") + ":" + os.Getenv("PATH") // with ONNX Runtime, where scripts/test has installed it
	d.files(client, authority)
	d.confidential()
	d.studies()
	return d
}

// files are those that a reader has.
func (d *desk) files(client, authority string) {
	d.t.Helper()
	for name, content := range map[string]string{
		"home/project/.venv/bin/.keep": "", "home/.cache/huggingface/.keep": "", "home/studies/.keep": "", "lab/.keep": "", "data/scan.csv": "1,2\n",
		"token": d.token, "home/.tandem/token": d.token, "etc/hf-token": "secret", "sweep.csv": "learning_rate,accuracy\n0.01,0.9\n",
		"script/train.py": "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument(\"--lr\", type=float, default=0.1)\n",
		"bin/qsub":        "#!/bin/sh\necho 1\n", "bin/qdel": "#!/bin/sh\n", "bin/qstat": "#!/bin/sh\necho {}\n", // PBS
		"plug": "#!/bin/sh\nwhile echo 5; do sleep 1; done\n",
	} {
		d.write(name, content)
	}
	for name, from := range map[string]string{"authority.pem": authority, "model.onnx": "../inference_emu/emulator/testdata/cnn.onnx", "text.onnx": "../inference_emu/emulator/testdata/words.onnx",
		"pbs.yaml": "../examples/launch/pbs.yaml", "my-board.yaml": "../examples/edge-device/my-board.yaml"} {
		content, err := os.ReadFile(from)
		if err != nil {
			d.t.Fatal(err)
		}
		d.write(name, string(content))
	}
	if err := os.Symlink(binary, filepath.Join(d.folder, "bin", "tandem")); err != nil {
		d.t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		d.t.Skip("python3 is not installed")
	}
	for _, name := range []string{"python", "python3"} { // of an environment with the client
		d.write("client/"+name, fmt.Sprintf("#!/bin/sh\nPYTHONPATH=%s exec %s \"$@\"\n", client, python))
	}
}

// confidential are recorded reports of a machine, as its reader finds them.
func (d *desk) confidential() {
	d.t.Helper()
	gpu := evidencetest.RecordedGPU()
	gpus, err := json.Marshal(map[string]any{"result_code": 0, "evidences": []any{map[string]any{"arch": "HOPPER", "evidence": gpu.Report, "certificate": gpu.Chain}}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.write("gpus", string(gpus))
	d.write("auxblob", string(testdata.VcekBytes))
	d.write("report", string(testdata.AttestationBytes))
}

// studies are one with models, one with two objectives, and one that is encrypted, whose
// worker leaves.
func (d *desk) studies() {
	d.t.Helper()
	for _, user := range []string{"alice", "bob", "ada"} {
		d.must("token", "create", "--scope", "user", "--name", user)
	}
	d.worker("--name", "box-1", "--slots", "2", "--path", filepath.Join(d.folder, "client"))
	lenet := newDeployedStudy(d.test, "lenet-fashion-mnist", filepath.Join(d.folder, "model.onnx"), "raspberry-pi-4")
	lenet.rewrite("environment: {", "environment: {TRAINED: "+filepath.Join(filepath.Dir(lenet.file), "model.onnx")+", ", "space: {", "space: {lr: {type: float, low: 0.001, high: 0.1}, ",
		"batch_size: {", "scenario: {server: {rate: 200/s, p99_ms: 50}}, batch_size: {", "epochs: {min: 1, max: 3}, eta: 3", "epochs: {min: 1, max: 4}, eta: 2")
	d.must("study", "create", lenet.file)
	file, err := os.ReadFile(lenet.file)
	if err != nil {
		d.t.Fatal(err)
	}
	d.write("study.yaml", "directory: "+filepath.Dir(lenet.file)+"\n"+string(file))

	front := newStudy(d.test, "small-and-accurate", threeRungs, "0", 2)
	front.rewrite("direction: maximize}", "direction: maximize}, {expression: 1 - accuracy, direction: minimize, name: error}")
	d.must("study", "create", front.file)
	sealed, key := newStudy(d.test, "sealed", threeRungs, "0", 2), filepath.Join(d.folder, "sealed.key")
	sealed.rewrite("objective:", "encryption: {recipients: ["+strings.TrimSpace(d.must("keys", "create", "--out", key))+"]}\nobjective:")
	d.must("study", "create", sealed.file)
	keeper := d.worker("--name", "box-2", "--identity", key)
	d.must("study", "watch", sealed.name)
	keeper.Kill()
	d.must("study", "watch", lenet.name)
	d.must("study", "watch", front.name)
}

// at is a copy of the desk's folder for a page, with the files that the page shows.
func (d *desk) at(t *testing.T, one page) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "cp", "-a", d.folder+"/.", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	study, err := os.ReadFile(filepath.Join(folder, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"study.yaml": string(study)}
	maps.Copy(files, one.files)
	for name, content := range files {
		content = studyName.ReplaceAllString(strings.Replace(content, "stop: {trials: 100", "stop: {trials: 2", 1), "name: of-"+strings.TrimSuffix(filepath.Base(one.name), ".md"))
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// engines are the variables that say where the programs are that a page needs. Without
// those programs it is not followed, as other tests skip.
func engines(t *testing.T, page string) []string {
	t.Helper()
	switch page {
	case "edge.md", "reference/cli.md", "tutorials/raspberry-pi.md":
		if found, _ := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi"); len(found) == 0 {
			t.Skip("scripts/test installs ONNX Runtime")
		}
	case "slurm.md":
		return cluster.StartSlurm(t).Environment
	case "postgresql.md":
		_, address := newDatabase(t)
		return []string{"DATABASE=" + address}
	}
	return nil
}

// enter types a line into a shell; what goes on by itself is told to end as soon as it is
// ready. The exit code must be this one.
func enter(t *testing.T, folder string, environment []string, line string, code int) {
	t.Helper()
	line = strings.TrimSpace(line)
	shell := []string{"-C", folder, "bash", "-euo", "pipefail", "-c", line}
	began := time.Now()
	defer func() { t.Logf("%6.2f s  %s", time.Since(began).Seconds(), line) }()
	found := lasting.FindStringSubmatch(line)
	if found == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "env", shell...)
		command.Env = append(os.Environ(), environment...)
		command.WaitDelay = 10 * time.Second
		if output, err := command.CombinedOutput(); command.ProcessState.ExitCode() != code {
			t.Errorf("%s\n%v, want exit code %d:\n%s", line, err, code, output)
		}
		return
	}
	process, err := launch.Start("env", environment, shell...)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, process)
	until(t, line, func() bool {
		return process.Ended() || strings.Contains(process.Output(), ready[found[1]+found[2]])
	})
	if process.Ended() {
		t.Errorf("%s\nended: %v\n%s", line, process.Stop(), process.Output())
	} else if err := process.Stop(); err != nil && !strings.HasSuffix(line, "--serve 0") { // Python dies of it
		t.Errorf("%s\n%v:\n%s", line, err, process.Output())
	}
}

// TestTheCommandsOfTheDocumentsRun types what the documents say, with what stands for
// values of the reader's, on a server that has what they tell of. What no test can run is
// listed with the reason.
func TestTheCommandsOfTheDocumentsRun(t *testing.T) {
	t.Parallel()
	all := pages(t)
	var text strings.Builder
	for _, one := range all {
		for _, line := range one.lines {
			fmt.Fprintf(&text, "%s: %s\n", one.name, line)
		}
	}
	for _, pair := range standIns {
		if !strings.Contains(text.String(), pair[0]) {
			t.Errorf("no document has %q any more: take it out of standIns", pair[0])
		}
	}
	for begin := range maps.Keys(notRun) {
		if !strings.Contains("\n"+text.String(), "\n"+begin) {
			t.Errorf("no document has %q any more: take it out of notRun", begin)
		}
	}
	d, count, left := newDesk(t), 0, 0
	stand := strings.NewReplacer(slices.Concat(standIns...)...)
	for _, one := range all {
		if len(one.lines) == 0 {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			folder, environment := d.at(t, one), append(slices.Clone(d.environment), engines(t, one.name)...)
			for _, line := range one.lines {
				whole := one.name + ": " + line
				if begin := longest(maps.Keys(notRun), whole); begin != "" {
					left++
					continue
				}
				count++
				code := 0
				if begin := longest(maps.Keys(otherCodes), whole); begin != "" {
					code = otherCodes[begin]
				}
				enter(t, folder, append(environment, "HOME="+filepath.Join(folder, "home"), "PATH="+filepath.Join(folder, "bin")+":"+d.path), stand.Replace(line+"\n"), code)
			}
		})
	}
	t.Logf("%d commands were run, %d are left out", count, left)
}
