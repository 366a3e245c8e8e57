package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func credential(user uint32) *syscall.Credential {
	return &syscall.Credential{Uid: user, Gid: user, NoSetGroups: false}
}

// opened is a sandbox as a worker has it.
func opened(t *testing.T, options Options) *Sandbox {
	t.Helper()
	if options.Mode == "" {
		options.Mode = Auto
	}
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// carry runs a shell command line in the sandbox, and returns what it wrote.
func carry(t *testing.T, s *Sandbox, p place, line string, strict bool) (string, error) {
	t.Helper()
	var out strings.Builder
	held, err := s.Hold(Job{Own: []string{p.own}, Strict: strict, Command: &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", line}, Dir: p.study, Stdout: &out, Stderr: &out,
		Env: []string{"PATH=/usr/bin:/bin", "OWN=" + p.own, "OTHER=" + p.other, "TMPDIR=" + filepath.Join(p.own, Temporary)},
	}})
	if err != nil {
		return "", err
	}
	defer held.Close()
	if err := held.Command.Start(); err != nil {
		return "", err
	}
	awaited := held.Await()
	if err := errors.Join(awaited, held.Command.Wait()); err != nil {
		return out.String(), err
	}
	return strings.TrimSpace(out.String()), nil
}

// TestCUDACanNameItsThread: it gives up where it cannot. Without an NVIDIA driver nobody
// may write to /proc.
func TestCUDACanNameItsThread(t *testing.T) {
	s, p := opened(t, Options{}), newPlace(t)
	if !holds(s.Layers(), Files) {
		t.Skip("this machine has no layer that refuses it")
	}
	const line = `sh -c 'echo named > /proc/$$/task/$$/comm && cat /proc/$$/task/$$/comm'; true`
	for driver, want := range map[string]bool{"/dev/null": namesThreads("/dev/null", s.layers), "/dev/no-such-driver": false} {
		s.driver = driver
		out, err := carry(t, s, p, line, false)
		if err != nil || strings.HasSuffix(out, "named") != want {
			t.Errorf("with the driver %s: %q, %v", driver, out, err)
		}
	}
	if os.Getuid() != 0 && !namesThreads("/dev/null", s.layers) {
		t.Error("who is not root needs no namespaces for it")
	}
	if remark := noGPUs("/dev/null", nil); os.Getuid() == 0 && !settingsReadOnly() && !strings.Contains(remark, Namespaces) {
		t.Errorf("root without namespaces is told %q", remark)
	}
}

// TestWhatTrainingNeedsWorks: a sandbox in which nothing runs is of no use.
func TestWhatTrainingNeedsWorks(t *testing.T) {
	s, p := opened(t, Options{}), newPlace(t)
	if err := os.WriteFile(filepath.Join(p.study, "data"), []byte("of the study"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ line, want string }{
		"read the study's files":            {"cat data", "of the study"},
		"list the study's folder":           {"ls", "data"},
		"write to its own folder":           {"mkdir $OWN/checkpoint && echo 1 > $OWN/checkpoint/new && mv $OWN/checkpoint/new $OWN/checkpoint/state && cat $OWN/checkpoint/state", "1"},
		"move between its own folders":      {"mkdir -p $OWN/a $OWN/b && echo 2 > $OWN/a/x && mv $OWN/a/x $OWN/b/y && cat $OWN/b/y", "2"},
		"make temporary files":              {"f=$(mktemp) && echo 3 > $f && cat $f", "3"},
		"use shared memory":                 {"echo 4 > /dev/shm/mine && cat /dev/shm/mine && rm /dev/shm/mine", "4"},
		"throw away":                        {"echo 5 > /dev/null && head -c 1 /dev/zero | wc -c", "1"},
		"look up a name":                    {"grep -c '^root:' /etc/passwd", "1"},
		"count the processors":              {"test $(nproc) -ge 1 && echo 6", "6"},
		"signal its own processes":          {"sleep 1000 & kill $! && echo 7", "7"},
		"start in the study's folder":       {"pwd", p.study},
		"have pipes and standard output":    {"echo 8 | cat > /dev/stdout", "8"},
		"lower its own limits":              {"ulimit -n 100 && ulimit -n", "100"},
		"see the machine's load (/proc)":    {"grep -q MemTotal /proc/meminfo && grep -q Name /proc/self/status && echo 9", "9"},
		"have no more rights than it needs": {"grep -c 'CapEff:.0000000000000000' /proc/self/status", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := carry(t, s, p, test.line, false); err != nil || got != test.want {
				t.Errorf("%s: got %q, %v; want %q", test.line, got, err, test.want)
			}
		})
	}
}

func TestTheOwnerOpensMore(t *testing.T) {
	p := newPlace(t)
	data, results := filepath.Join(p.other, "data"), filepath.Join(p.other, "results")
	for _, folder := range []string{data, results} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "images"), []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{Read: []string{data}, Write: []string{results}})
	if !slices.ContainsFunc(s.Layers(), func(one Layer) bool { return one.Name == Files && one.Active }) {
		t.Skip("this machine has no Landlock: nothing is closed that could be opened")
	}
	if got, err := carry(t, s, p, "cat $OTHER/data/images && echo 1 > $OTHER/results/one && cat $OTHER/results/one", false); err != nil || got != "many1" && got != "many\n1" {
		t.Errorf("what was allowed: %q, %v", got, err)
	}
	if got, err := carry(t, s, p, "echo 1 > $OTHER/data/images", false); err == nil {
		t.Errorf("what may be read was written: %q", got)
	}
	if content, err := os.ReadFile(filepath.Join(results, "one")); err != nil || strings.TrimSpace(string(content)) != "1" {
		t.Errorf("the result is not where it was to be: %q, %v", content, err)
	}
	for flag, options := range map[string]Options{
		"--allow-read":  {Mode: Auto, Read: []string{p.other}, Protected: []string{filepath.Dir(p.other)}},
		"--allow-write": {Mode: Auto, Write: []string{filepath.Dir(p.other)}, Protected: []string{p.other}},
		"not there":     {Mode: Auto, Read: []string{filepath.Join(p.other, "missing")}},
	} {
		if _, err := Open(t.Context(), options); err == nil {
			t.Errorf("%s: what belongs to the worker, or is not there, was allowed", flag)
		}
	}
}

// TestProtectedFilesInAStudysFolder: a study in the home of the worker's user, or
// around its files, does not open these.
func TestProtectedFilesInAStudysFolder(t *testing.T) {
	p := newPlace(t)
	token := filepath.Join(p.study, "deep", "token")
	for path, content := range map[string]string{
		token: "secret", filepath.Join(p.study, "deep", "module.py"): "module", filepath.Join(p.study, ".ssh", "key"): "key", filepath.Join(p.study, "train.py"): "script",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := opened(t, Options{Home: p.study, Protected: []string{token}})
	if !slices.ContainsFunc(s.Layers(), func(one Layer) bool { return one.Name == Files && one.Active }) {
		t.Skip("this machine has no Landlock")
	}
	for line, want := range map[string]string{"cat train.py": "script", "cat deep/module.py": "module", "ls deep": "module.py\ntoken"} {
		if got, err := carry(t, s, p, line, false); err != nil || got != want {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"cat deep/token", "cat .ssh/key"} {
		if got, err := carry(t, s, p, line, false); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestStrictLeavesNoNetwork(t *testing.T) {
	found := probed(t)
	if !found[Calls].Active {
		t.Skip(found[Calls].Detail)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := newPlace(t)
	for _, offline := range []bool{false, true} {
		o := p.order(t, "self", []string{Privileges, Calls})
		o.Offline = offline
		o.Environment = []string{"ROLE=network", "ADDRESS=" + listener.Addr().String(), "GORACE=atexit_sleep_ms=0"}
		if got, err := run(t, o); err != nil || (got == "connected") == offline {
			t.Errorf("offline %v: %q, %v", offline, got, err)
		}
	}
}

func TestStrictNeedsAllLayers(t *testing.T) {
	s := opened(t, Options{})
	for i := range s.layers {
		lacking := *s
		lacking.layers = slices.Clone(s.layers)
		lacking.layers[i].Active, lacking.layers[i].Detail = false, "taken away"
		if lacking.Complete() || len(Missing(lacking.layers)) == 0 {
			t.Errorf("without %s all are said to be there", lacking.layers[i].Name)
		}
		if _, err := lacking.Hold(Job{Command: &exec.Cmd{Path: "/bin/true"}, Strict: true}); !errors.As(err, new(Failure)) {
			t.Errorf("a strict command is held without %s: %v", lacking.layers[i].Name, err)
		}
	}
	if len(Missing(nil)) != len(Names()) {
		t.Errorf("of no layers %v are missing", Missing(nil))
	}
	var none *Sandbox
	if none.Mode() != Off || none.Complete() {
		t.Error("no sandbox holds")
	}
}

// TestALayerThatFailsLaterStopsTheCommand: nothing runs with less than was found.
func TestALayerThatFailsLaterStopsTheCommand(t *testing.T) {
	p := newPlace(t)
	o := p.order(t, "self", []string{Namespaces})
	held, err := o.launcher()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	held.Command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: nil}
	if os.Getuid() == 0 { // who could mount after all
		held.Command.SysProcAttr.Credential = credential(61234)
	}
	if err := held.Command.Start(); err != nil {
		t.Skipf("the test's program cannot be run as another user: %v", err)
	}
	err = held.Await()
	_ = held.Command.Wait() // as it did not become the command
	if !errors.As(err, new(Failure)) || !strings.Contains(err.Error(), Namespaces) {
		t.Errorf("got %v, want that the layer %s does not hold", err, Namespaces)
	}
}

func TestTheKernelsReasonArrives(t *testing.T) {
	p := newPlace(t)
	o := p.order(t, "self", []string{Privileges})
	o.Path = filepath.Join(p.study, "missing")
	if _, err := run(t, o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	o.Path = filepath.Join(p.study, "text")
	if err := os.WriteFile(o.Path, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, o); !errors.Is(err, unix.ENOEXEC) {
		t.Errorf("got %v", err)
	}
}

// TestTheLauncherTakesNothingFromTheStudy: what a study says is in the order, and
// is for its command alone.
func TestTheLauncherTakesNothingFromTheStudy(t *testing.T) {
	s, p := opened(t, Options{}), newPlace(t)
	held, err := s.Hold(Job{Own: []string{p.own}, Command: &exec.Cmd{Path: "/bin/sh", Args: []string{"sh"}, Dir: p.study, Env: []string{"LD_PRELOAD=/evil.so", "GODEBUG=evil=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if got := held.Command.Env; slices.ContainsFunc(got, func(one string) bool { return strings.Contains(one, "evil") }) {
		t.Errorf("the launcher's environment is %q", got)
	}
	if held.Command.Path != ThisProgram || !slices.Equal(held.Command.Args[1:], Subcommand()) {
		t.Errorf("started is %q %q", held.Command.Path, held.Command.Args)
	}
}

// TestACommandEndsWithItsWorker: the thread that becomes the command is told so,
// although it is not the one that was started.
func TestACommandEndsWithItsWorker(t *testing.T) {
	worker, pid := start(t, "ROLE=worker", "GORACE=atexit_sleep_ms=0")
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(pid)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		line, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(line), ") Z") { // gone, or nobody has asked how it ended
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("its worker was killed a minute ago: %s", line)
		}
	}
}

func TestOffHoldsNothing(t *testing.T) {
	s, err := Open(context.Background(), Options{Mode: Off, Read: []string{"/missing"}})
	if err != nil || s.Mode() != Off || s.Layers() != nil || s.Explain([]string{"Permission denied: '/x'"}, "/", "") != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestTheRunsOwnFolderIsNotExplained: what a command does not find in its own run's
// folder is its own doing, wherever that folder is.
func TestTheRunsOwnFolderIsNotExplained(t *testing.T) {
	said := []string{"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/scratch/7/1/checkpoint/model'"}
	s := opened(t, Options{})
	if got := s.Explain(said, "/study", "/tmp/scratch/7/1"); got != "" {
		t.Errorf("of its own folder it says %s", got)
	}
	if got := s.Explain(said, "/study", "/tmp/scratch/7/2"); !strings.Contains(got, "--allow-read /tmp/scratch/7/1") {
		t.Errorf("of another folder it says %q", got)
	}
}

// TestTheFolderToOpenIsOneOfAllRuns: what a library made for this run alone is in none
// of the next.
func TestTheFolderToOpenIsOneOfAllRuns(t *testing.T) {
	s := opened(t, Options{})
	for path, folder := range map[string]string{
		"/study/wandb/offline-run-1/logs": "/study/wandb",
		"wandb/offline-run-1/logs":        "/study/wandb",
		"/study/wandb":                    "/study",
		"/study/mlflow.db":                "/study",
	} {
		said := []string{"PermissionError: [Errno 13] Permission denied: '" + path + "'"}
		if got := s.Explain(said, "/study", ""); !strings.Contains(got, "--allow-write "+folder+", a folder that exists") {
			t.Errorf("of %s it says %q", path, got)
		}
	}
}

// TestTheFolderToOpenCanBePasted into a shell, also where its name has a space.
func TestTheFolderToOpenCanBePasted(t *testing.T) {
	s := opened(t, Options{})
	said := []string{"PermissionError: [Errno 13] Permission denied: 'results.csv'"}
	for study, want := range map[string]string{
		"/my study":    "--allow-write '/my study', a folder",
		"/ada's study": `--allow-write '/ada'\''s study', a folder`,
		"/größe":       "--allow-write /größe, a folder",
	} {
		if got := s.Explain(said, study, ""); !strings.Contains(got, want) {
			t.Errorf("of %s it says %q, want %q", study, got, want)
		}
	}
}

// TestStudiesInSharedMemory: who keeps scripts, data or trials there reaches those parts
// of it, and nothing else of the machine's.
func TestStudiesInSharedMemory(t *testing.T) {
	folder, err := os.MkdirTemp(sharedMemory, "tandem")
	if err != nil {
		t.Skipf("there is no shared memory to write to: %v", err)
	}
	defer os.RemoveAll(folder)
	p := place{study: filepath.Join(folder, "study"), own: filepath.Join(folder, "own"), other: filepath.Join(folder, "other")}
	data := filepath.Join(folder, "data")
	for _, one := range []string{p.study, filepath.Join(p.own, Temporary), p.other, data} {
		if err := os.MkdirAll(one, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(one, "file"), []byte("of "+filepath.Base(one)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := opened(t, Options{Read: []string{data}})
	if !holds(s.Layers(), Files) || !holds(s.Layers(), Namespaces) {
		t.Skip("this machine has no layer that refuses it")
	}
	for line, want := range map[string]string{
		"cat file": "of study",
		"cat " + data + "/file && ! (echo new > " + data + "/file) 2>/dev/null && ! touch " + data + "/more 2>/dev/null && cat " + data + "/file": "of dataof data",
		"! (echo new > file) 2>/dev/null && echo kept":                    "kept",
		"echo 1 > $OWN/state && cat $OWN/state":                           "1",
		"f=$(mktemp) && echo 2 > $f && cat $f":                            "2",
		"ls $OTHER 2>/dev/null || echo hidden":                            "hidden",
		"echo 3 > /dev/shm/mine && cat /dev/shm/mine && rm /dev/shm/mine": "3",
	} {
		if out, err := carry(t, s, p, line, false); err != nil || out != want {
			t.Errorf("%s: %q, %v, want %q", line, out, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(sharedMemory, "mine")); err == nil {
		t.Error("a command's shared memory is the machine's")
	}
}
