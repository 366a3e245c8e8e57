// Package cluster starts engines on this machine for tests. A real Slurm: one controller and two
// nodes of four processors, in a folder of its own.
package cluster

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Slurm is a cluster with the partitions spot, whose jobs make way with a grace of 8 s,
// and urgent, for which they do. Both have the nodes n1 and n2. Each node claims four GPUs
// that are not there.
type Slurm struct {
	t    testing.TB
	user string
	// Folder holds all of it; State is where the controller keeps what it knows.
	Folder, State string
	// Environment is what its commands need.
	Environment []string
}

const config = `ClusterName=tandem
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[4]s
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.sock
SlurmUser=%[3]s
SlurmdUser=%[3]s
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool-%%n
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd-%%n.pid
SlurmctldLogFile=%[2]s/slurmctld.log
SlurmdLogFile=%[2]s/slurmd-%%n.log
GresTypes=gpu
NodeName=n1 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[5]s CPUs=4 RealMemory=8000 Gres=gpu:4
NodeName=n2 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[6]s CPUs=4 RealMemory=8000 Gres=gpu:4
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
KillWait=10
SlurmdTimeout=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=spot Nodes=n1,n2 Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=8 State=UP
PartitionName=urgent Nodes=n1,n2 PriorityTier=10 PreemptMode=OFF State=UP
`

// StartSlurm starts a cluster that ends with the test. It skips the test where Slurm is
// not installed.
func StartSlurm(t testing.TB) *Slurm {
	t.Helper()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "srun"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: nothing is tried on a real Slurm (apt-get install slurm-wlm munge)", program)
		}
	}
	folder, err := os.MkdirTemp("/tmp", "slurm") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &Slurm{t: t, user: me.Username, Folder: folder, State: filepath.Join(folder, "state")}
	t.Cleanup(s.stop)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 1024)
	rand.Read(key) //nolint:errcheck // it never fails
	ports := freePorts(t, 3)
	for name, content := range map[string][]byte{
		"munge.key": key, "gres.conf": fmt.Appendf(nil, "NodeName=n[1-2] Name=gpu File=%s/gpu[0-3]\n", folder),
		"gpu0": nil, "gpu1": nil, "gpu2": nil, "gpu3": nil, // what is no device is counted all the same
		"slurm.conf": fmt.Appendf(nil, config, host, folder, s.user, ports[0], ports[1], ports[2]),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"state", "spool-n1", "spool-n2"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Environment = []string{"SLURM_CONF=" + filepath.Join(folder, "slurm.conf")}
	in := func(name string) string { return filepath.Join(folder, name) }
	s.Run("munged", "--key-file="+in("munge.key"), "--socket="+in("munge.sock"), "--pid-file="+in("munged.pid"), "--log-file="+in("munged.log"), "--seed-file="+in("munge.seed"), "--force")
	s.Run("slurmctld", "-i")
	s.Run("slurmd", "-N", "n1")
	s.Run("slurmd", "-N", "n2")
	for deadline := time.Now().Add(5 * time.Minute); s.Run("sinfo", "--noheader", "--partition=spot", "--format=%T %D") != "idle 2\n"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the nodes did not come up:\n%s", s.Run("sinfo"))
		}
	}
	return s
}

// Run runs a command of the cluster and returns what it printed.
func (s *Slurm) Run(name string, args ...string) string {
	s.t.Helper()
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), s.Environment...)
	command.Dir = s.Folder
	said, err := command.Output()
	if err != nil {
		var errors []byte
		if ended, is := err.(*exec.ExitError); is {
			errors = ended.Stderr
		}
		s.t.Fatalf("%s: %v: %s%s", name, err, said, errors)
	}
	return string(said)
}

// FailNode has the controller lose a node at once: its daemon, those of its jobs and what
// they run are killed. What runs on a machine whose power fails takes no leave.
func (s *Slurm) FailNode(name string) {
	s.t.Helper()
	s.kill("slurmd-" + name)
	steps, tasks := s.running("SLURMD_NODENAME=" + name + "\x00")
	if len(steps) == 0 {
		s.t.Fatalf("nothing runs on the node %s", name)
	}
	for _, pid := range append(steps, tasks...) {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
}

// running are the processes of the cluster's jobs whose environment has the words, and
// the daemons that started them.
func (s *Slurm) running(words string) (steps, tasks []int) {
	s.t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range environments {
		variables, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(variables, []byte(words)) || !bytes.Contains(variables, []byte(s.Folder)) {
			continue // another's, or gone
		}
		var task, parent int
		var command, state string
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if _, failed := fmt.Sscanf(string(status), "%d %s %s %d", &task, &command, &state, &parent); err != nil || failed != nil {
			continue
		}
		tasks = append(tasks, task)
		if is, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); err == nil && strings.HasPrefix(string(is), "slurmstepd") {
			steps = append(steps, parent)
		}
	}
	return steps, tasks
}

// kill kills a daemon by the id that it wrote down.
func (s *Slurm) kill(name string) {
	content, err := os.ReadFile(filepath.Join(s.Folder, name+".pid"))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && pid > 1 {
		if process, err := os.FindProcess(pid); err == nil {
			process.Kill() //nolint:errcheck // it may have ended
		}
	}
}

// stop ends all that was started.
func (s *Slurm) stop() {
	if len(s.Environment) > 0 { // else these would be jobs of another cluster
		for _, which := range [][]string{{"--state=PENDING"}, {"--signal=KILL", "--full"}} { // what waits would take the place of what ends
			cancel := exec.Command("scancel", append(which, "--user="+s.user)...)
			cancel.Env = append(os.Environ(), s.Environment...)
			cancel.Run() //nolint:errcheck // there may be none
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			_, tasks := s.running("SLURMD_NODENAME=")
			if len(tasks) == 0 {
				break
			}
			if time.Now().After(deadline) {
				s.t.Errorf("processes of jobs outlive their cluster: %d", tasks)
				break
			}
		}
	}
	for _, name := range []string{"slurmd-n1", "slurmd-n2", "slurmctld", "munged"} {
		s.kill(name)
	}
	if s.t.Failed() {
		for _, name := range []string{"slurmctld.log", "slurmd-n1.log"} {
			content, _ := os.ReadFile(filepath.Join(s.Folder, name)) //nolint:errcheck // it is for people
			s.t.Logf("%s:\n%s", name, content[max(0, len(content)-3000):])
		}
	}
	os.RemoveAll(s.Folder) //nolint:errcheck // a folder of /tmp
}

// freePorts are ports that nobody listens on.
func freePorts(t testing.TB, count int) (ports []string) {
	t.Helper()
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}
