package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// attempt is something a command that was taken over would try.
type attempt struct {
	// layer refuses it, also when it is alone.
	layer string
	try   func() error
	// rooted says that root's rights are stronger: without Capabilities, root may.
	rooted bool
}

// asked makes a success of every error that does not say that the call was
// refused: it was looked at, and its arguments make no sense on purpose.
func asked(code error) error {
	if errors.Is(code, unix.EPERM) || errors.Is(code, unix.EACCES) || errors.Is(code, unix.EAFNOSUPPORT) {
		return code
	}
	return nil
}

func call(number uintptr, arguments ...uintptr) error {
	var all [6]uintptr
	copy(all[:], arguments)
	if _, _, code := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); code != 0 {
		return asked(code)
	}
	return nil
}

func opens(path string, flags int) error {
	file, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		err = file.Close()
	}
	return err
}

func makesSocket(family, kind, protocol int) error {
	descriptor, err := unix.Socket(family, kind, protocol)
	if err == nil {
		err = unix.Close(descriptor)
	}
	return err
}

func connects(network, address string) error {
	connection, err := net.Dial(network, address)
	if err == nil {
		err = connection.Close()
	}
	return err
}

// attempts are told by their environment what to try them on.
func attempts() map[string]attempt {
	own, study, other := os.Getenv("OWN"), os.Getenv("STUDY"), os.Getenv("OTHER")
	token, victim := filepath.Join(other, "token"), "/proc/"+os.Getenv("VICTIM")
	pid, _ := strconv.Atoi(os.Getenv("VICTIM")) // 0 where there is none to try it on
	list := map[string]attempt{
		"read the worker's token":               {layer: Files, try: func() error { return opens(token, os.O_RDONLY) }},
		"list another trial's folder":           {layer: Files, try: func() error { _, err := os.ReadDir(other); return err }},
		"overwrite the worker's token":          {layer: Files, try: func() error { return opens(token, os.O_WRONLY) }},
		"change the study's script":             {layer: Files, try: func() error { return opens(filepath.Join(study, "train.py"), os.O_WRONLY) }},
		"put a file into the study's folder":    {layer: Files, try: func() error { return opens(filepath.Join(study, "new"), os.O_WRONLY|os.O_CREATE) }},
		"truncate the study's script":           {layer: Files, try: func() error { return os.Truncate(filepath.Join(study, "train.py"), 0) }},
		"remove the study's script":             {layer: Files, try: func() error { return os.Remove(filepath.Join(study, "remove.py")) }},
		"write to the worker's program":         {layer: Files, try: func() error { return opens(filepath.Join(other, "tandem"), os.O_WRONLY) }},
		"read through a link in its own folder": {layer: Files, try: func() error { return through(token, filepath.Join(own, "symbolic"), os.Symlink) }},
		"make the token its own by a hard link": {layer: Files, try: func() error { return through(token, filepath.Join(own, "hard"), os.Link) }},
		"move another trial's file to its own":  {layer: Files, try: func() error { return os.Rename(filepath.Join(other, "move"), filepath.Join(own, "moved")) }},
		"read the passwords of the machine":     {layer: Files, try: func() error { return opens("/etc/shadow", os.O_RDONLY) }},
		"write to the kernel's triggers":        {layer: Files, try: func() error { return opens("/proc/sysrq-trigger", os.O_WRONLY) }},
		"change a setting of the kernel":        {layer: Files, try: func() error { return opens("/proc/sys/kernel/core_pattern", os.O_WRONLY) }},
		"read the environment of the worker":    {layer: Files, try: func() error { return reads(victim + "/environ") }, rooted: true},
		"open the memory of the worker":         {layer: Files, try: func() error { return opens(victim+"/mem", os.O_RDONLY) }},
		"follow the descriptors of the worker":  {layer: Files, try: func() error { _, err := os.Readlink(victim + "/fd/0"); return err }},
		"read the memory of the worker":         {layer: Files, try: func() error { return readsMemory(pid) }},
		"trace the worker":                      {layer: Calls, try: func() error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)) }},
		"change the worker's limits":            {layer: Calls, try: func() error { return changesLimits(pid) }},
		"signal the worker":                     {layer: Signals, try: func() error { return unix.Kill(pid, 0) }},
		"signal a thread of the worker":         {layer: Signals, try: func() error { return unix.Tgkill(pid, pid, 0) }},
		"connect to an abstract socket":         {layer: Signals, try: func() error { return connects("unix", "@"+os.Getenv("ABSTRACT")) }},
		"connect to another trial's socket":     {layer: Namespaces, try: func() error { return connects("unix", os.Getenv("SOCKET")) }},
		"read another trial's shared memory":    {layer: Namespaces, try: func() error { return opens(os.Getenv("SHARED"), os.O_RDONLY) }},
		"attach another's System V memory":      {layer: Namespaces, try: attachesMemory},
		"make a raw socket":                     {layer: Capabilities, try: func() error { return makesSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		"become another user":                   {layer: Capabilities, try: func() error { return asked(unix.Setgroups([]int{61234})) }},
		"run as the owner of a program":         {layer: Privileges, try: func() error { return runsAsOwner(filepath.Join(other, "owned")) }},
		"have its core written":                 {layer: Limits, try: writesCore},
		"listen to the network's frames":        {layer: Calls, try: func() error { return makesSocket(unix.AF_PACKET, unix.SOCK_DGRAM, 0) }},
	}
	for name, number := range map[string]uintptr{
		"mount": unix.SYS_MOUNT, "unmount": unix.SYS_UMOUNT2, "load a program into the kernel": unix.SYS_BPF, "count events": unix.SYS_PERF_EVENT_OPEN,
		"use a key ring": unix.SYS_KEYCTL, "add a key": unix.SYS_ADD_KEY, "handle page faults": unix.SYS_USERFAULTFD,
		"call by way of memory": unix.SYS_IO_URING_SETUP, "replace the kernel": unix.SYS_KEXEC_LOAD,
		"enter a namespace": unix.SYS_SETNS,
	} {
		// No argument makes sense, so that nothing happens where it is allowed.
		list[name] = attempt{layer: Calls, try: func() error {
			return call(number, uintptr(1<<31-1), uintptr(1<<31-1), uintptr(1<<31-1), uintptr(1<<31-1), uintptr(1<<31-1), uintptr(1<<31-1))
		}}
	}
	list["load a module"] = attempt{layer: Calls, try: func() error { return call(unix.SYS_INIT_MODULE) }}
	list["compare itself with the worker"] = attempt{layer: Files, try: func() error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), kcmpMemory) }}
	list["take a descriptor of the worker"] = attempt{layer: Files, try: func() error { return takesDescriptor(pid) }}
	list["make a user of its own"] = attempt{layer: Calls, try: func() error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }}
	return list
}

// reads reads too: some files under /proc refuse only that.
func reads(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := file.Read(make([]byte, 1))
	if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
		return errors.New("nothing was to be read")
	}
	return err
}

func through(path, link string, how func(from, to string) error) error {
	_ = os.Remove(link) // of an attempt before
	if err := how(path, link); err != nil {
		return err
	}
	_, err := os.ReadFile(link)
	return err
}

func readsMemory(pid int) error {
	buffer := make([]byte, 1)
	local := []unix.Iovec{{Base: &buffer[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	return asked(err)
}

// kcmpMemory asks kcmp whether two processes share their memory.
const kcmpMemory = 1

func takesDescriptor(pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	taken, err := unix.PidfdGetfd(process, 1, 0)
	if err == nil {
		err = unix.Close(taken)
	}
	return err
}

func changesLimits(pid int) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &now); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &now, nil)
}

func attachesMemory() error {
	id, err := strconv.Atoi(os.Getenv("SEGMENT"))
	if err != nil {
		return err
	}
	memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err == nil {
		err = unix.SysvShmDetach(memory)
	}
	return err
}

// runsAsOwner runs a program that has the right to run as its owner.
func runsAsOwner(path string) error {
	command := exec.Command(path)
	command.Env = []string{"ROLE=self", "GORACE=atexit_sleep_ms=0"}
	said, err := command.Output()
	if err != nil {
		return err
	}
	if owner := strings.TrimSpace(string(said)); owner == strconv.Itoa(os.Geteuid()) {
		return errors.New("it runs as whoever started it")
	}
	return nil
}

func writesCore() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil {
		return err
	}
	if now.Max == 0 {
		return errors.New("no core is written")
	}
	return nil
}

// whatSucceeds tries everything, from one thread.
func whatSucceeds() map[string]string {
	runtime.LockOSThread()
	said := map[string]string{}
	for name, one := range attempts() {
		if err := one.try(); err != nil {
			said[name] = err.Error()
		} else {
			said[name] = succeeded
		}
	}
	return said
}

const (
	succeeded     = "succeeded"
	namingThreads = "all, naming threads"
)

// burgle has all attempts made under the layers.
func burgle(t *testing.T, p place, names []string, about []string) map[string]string {
	t.Helper()
	// What an attempt that succeeded has changed is put back.
	for _, path := range []string{filepath.Join(p.study, "train.py"), filepath.Join(p.study, "remove.py"), filepath.Join(p.other, "move")} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := p.order(t, "burglar", names)
	o.Environment = append(o.Environment, about...)
	o.Threads = slices.Contains(about, namingThreads)
	out, err := run(t, o)
	if err != nil {
		t.Fatalf("under %v: %v", names, err)
	}
	var said map[string]string
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("under %v: %v in %q", names, err, out)
	}
	return said
}

// belongings makes what is tried on, and says where it is.
func belongings(t *testing.T, p place) []string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.other, "token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	owned := filepath.Join(p.other, "owned")
	for _, path := range []string{owned, filepath.Join(p.other, "tandem")} {
		if err := os.WriteFile(path, binary, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 { // else nobody else can be its owner
		if err := errors.Join(os.Chown(owned, 61234, 61234), os.Chmod(owned, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
	}
	name := fmt.Sprintf("tandem-test-%d", os.Getpid())
	folder, err := os.MkdirTemp("/tmp", "tandem-test-") // which is covered
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	for _, address := range []string{socket, "@" + name} {
		listener, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	about := []string{"OWN=" + p.own, "STUDY=" + p.study, "OTHER=" + p.other, "ABSTRACT=" + name, "SOCKET=" + socket}
	if shared := filepath.Join(sharedMemory, name); os.WriteFile(shared, []byte("x"), 0o600) == nil {
		t.Cleanup(func() { _ = os.Remove(shared) })
		about = append(about, "SHARED="+shared)
	}
	if segment, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600); err == nil {
		t.Cleanup(func() { _, _ = unix.SysvShmCtl(segment, unix.IPC_RMID, nil) })
		about = append(about, "SEGMENT="+strconv.Itoa(segment))
	}
	victim, _ := start(t, "ROLE=victim", "TOKEN=secret", "GORACE=atexit_sleep_ms=0")
	return append(about, fmt.Sprintf("VICTIM=%d", victim.Process.Pid))
}

// TestNothingEscapes makes every attempt without a sandbox, where it succeeds;
// under the one layer that has to refuse it; and under all layers.
func TestNothingEscapes(t *testing.T) {
	found := probed(t)
	p := newPlace(t)
	about := belongings(t, p)
	var all []string
	for _, name := range Names() {
		if found[name].Active {
			all = append(all, name)
		}
	}
	under := map[string]map[string]string{"nothing": burgle(t, p, nil, about), "all": burgle(t, p, all, about)}
	const named = namingThreads
	if found[Namespaces].Active {
		under[named] = burgle(t, p, all, append(about, named))
	}
	for _, name := range all {
		alone := []string{Privileges, name} // without it only root may filter calls
		if name == Privileges || name == Limits || name == Capabilities {
			alone = []string{name}
		}
		under[name] = burgle(t, p, alone, about)
	}
	const unrooted = Files + " and " + Capabilities
	under[unrooted] = burgle(t, p, []string{Capabilities, Privileges, Files}, about)
	for name, one := range attempts() {
		t.Run(name, func(t *testing.T) {
			if free := under["nothing"][name]; free != succeeded {
				if slices.Contains([]string{"read the worker's token", "change the study's script", "signal the worker", "connect to another trial's socket", "connect to an abstract socket"}, name) {
					t.Fatalf("without a sandbox it must succeed: %s", free)
				}
				t.Skipf("this user may not do it here, even without a sandbox: %s", free)
			}
			if version, err := landlock.LandlockGetABIVersion(); name == "truncate the study's script" && (err != nil || version < 3) {
				t.Skipf("Landlock ABI %d does not know truncation yet", version)
			}
			if !found[one.layer].Active {
				t.Skipf("this machine has no layer that refuses it: %s: %s", one.layer, found[one.layer].Detail)
			}
			alone := one.layer
			if one.rooted {
				alone = unrooted
			}
			for _, layers := range []string{alone, "all", named} {
				if under[layers][name] == succeeded {
					t.Errorf("it succeeds under %s", layers)
				}
			}
			t.Logf("%s refuses: %s", alone, under[alone][name])
		})
	}
}

// TestABombOfProcessesMeetsItsLimit: the limit is half of the worker's, which is
// made small here, for a user who has nothing else.
func TestABombOfProcessesMeetsItsLimit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can try it as a user who has nothing else that would count")
	}
	o := order{
		Layers: []string{Limits, Privileges}, Path: "/bin/sh", Environment: []string{"PATH=/usr/bin:/bin"},
		Arguments: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 1000 & echo $i; done"},
	}
	held, err := o.launcher()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a pipe would be held open by what was started
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	held.Command.Env, held.Command.Args, held.Command.Stdout = []string{"ROLE=limited"}, []string{"tandem"}, out
	held.Command.SysProcAttr.Credential = credential(61234)
	if err := held.Command.Start(); err != nil {
		t.Skipf("the test's program cannot be run as another user: %v", err)
	}
	defer unix.Kill(-held.Command.Process.Pid, unix.SIGKILL)
	if err := held.Await(); err != nil {
		t.Fatal(err)
	}
	ended := held.Command.Wait()
	content, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(content))
	if ended == nil || len(lines) == 0 || len(lines) >= 20 {
		t.Errorf("it ended with %v, and could start %d of 25 processes with a limit of 20 for all of its user's", ended, len(lines))
	}
}
