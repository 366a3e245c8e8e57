package command_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/command"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/launchertest"
)

// ray is a cluster on this machine: a head without cores, and a node with four.
type ray struct {
	testing.TB
	program, head string
	node          *exec.Cmd
}

// start begins a part of the cluster, which ends with the test.
func (r *ray) start(arguments ...string) *exec.Cmd {
	r.Helper()
	begun := exec.Command(r.program, append([]string{"start", "--block", "--disable-usage-stats", "--dashboard-agent-listen-port", port(r)}, arguments...)...)
	begun.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begun.Dir = r.TempDir()
	begun.Env = slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "TANDEM_") })
	if err := begun.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { r.kill(begun) })
	return begun
}

// kill ends a part of the cluster at once.
func (r *ray) kill(part *exec.Cmd) {
	_ = syscall.Kill(-part.Process.Pid, syscall.SIGKILL)
	_ = part.Wait()
}

// join adds the node, or another one in its place.
func (r *ray) join() { r.node = r.start("--address", r.head, "--num-cpus", "4", "--num-gpus", "0") }

// port is one that is free now.
func port(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

// A real Ray does what every engine does, by the commands of the examples.
func TestRay(t *testing.T) {
	program := os.Getenv("TANDEM_RAY")
	if program == "" {
		t.Skip("TANDEM_RAY names no program ray: no workers are started on a real Ray")
	}
	dashboard := port(t)
	cluster := &ray{TB: t, program: program, head: "127.0.0.1:" + port(t)}
	_, own, _ := net.SplitHostPort(cluster.head)
	cluster.start("--head", "--port", own, "--dashboard-port", dashboard, "--num-cpus", "0", "--num-gpus", "0", "--temp-dir", t.TempDir())
	t.Setenv("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:"+dashboard)
	client, err := filepath.Abs("../../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", client)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	content, err := os.ReadFile("../../../examples/launch/ray.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var commands command.Commands
	if err := yaml.Unmarshal(content, &commands); err != nil {
		t.Fatal(err)
	}
	open := func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine {
		made, err := command.New(engine.Options{Name: name, Logs: filepath.Dir(string(enrolments)), Worker: worker, Enrolments: enrolments, Home: "/home/of'it", Path: "/usr/local/bin:/usr/bin:/bin"}, commands)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for began := time.Now(); ; time.Sleep(time.Second) {
		if _, err := open("tandem", nil, "").List(t.Context()); err == nil {
			break
		} else if time.Since(began) > 2*time.Minute {
			t.Fatal(err)
		}
	}
	cluster.join()
	launchertest.Run(t, launchertest.Site{
		Open:   open,
		Option: "--memory-mib=1", Refused: "--refuse",
		Lose: func(launcher.Job) {
			cluster.kill(cluster.node)
			cluster.join()
		},
	})
}
