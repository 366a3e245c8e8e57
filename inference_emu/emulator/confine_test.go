package emulator

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attempts are what a process that was taken over would try. They are tried
// where nothing forbids them, too: those that succeed there must fail inside.
func attempts(folder string) map[string]func() error {
	return map[string]func() error{
		"read a file": func() error { _, err := os.ReadFile("/proc/self/maps"); return err },
		"write a file": func() error {
			return os.WriteFile(folder+"/written", []byte("x"), 0o600)
		},
		"list a folder": func() error { _, err := os.ReadDir("/"); return err },
		"remove a file": func() error {
			return unix.Unlink(folder + "/there")
		},
		"start a program": func() error { return exec.Command("/proc/self/exe", "-test.run=^$").Run() },
		"make a process": func() error {
			child, _, code := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if code != 0 {
				return code
			}
			if child == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			return nil
		},
		"open a TCP connection": func() error {
			socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(socket)
			err = unix.Connect(socket, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
			if err == unix.ECONNREFUSED { // it was asked
				return nil
			}
			return err
		},
		"send a datagram": func() error {
			socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err == nil {
				err = unix.Sendto(socket, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
			}
			return err
		},
		"signal its parent": func() error { return unix.Kill(unix.Getppid(), 0) },
		"signal by thread":  func() error { return unix.Tgkill(unix.Getppid(), unix.Getppid(), 0) },
		"move its parent": func() error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(unix.Getppid(), &set)
		},
		"raise a limit": func() error {
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100})
		},
		"take 1 GiB": func() error {
			region, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err == nil {
				err = unix.Munmap(region)
			}
			return err
		},
		"open a namespace":       func() error { return unix.Unshare(unix.CLONE_NEWUTS) },
		"make a file in memory":  func() error { _, err := unix.MemfdCreate("x", 0); return err },
		"look into its parent":   func() error { return unix.PtraceAttach(unix.Getppid()) },
		"compute on (must work)": func() error { return nil },
	}
}

// whatSucceeds is run as a process of its own, locked in by the named layer.
func whatSucceeds(layer, folder string) []string {
	switch layer {
	case "all", "listing":
		if _, err := limit(order{Seconds: 100}); err != nil {
			return []string{err.Error()}
		}
		gauge, err := openMemoryGauge()
		if err != nil {
			return []string{err.Error()}
		}
		now, err := gauge.read()
		if err != nil {
			return []string{err.Error()}
		}
		if layer == "all" {
			folder = ""
		}
		layers, err := lockIn(now.data+256<<20, folder)
		if err != nil {
			return []string{err.Error()}
		}
		for _, one := range layers {
			if !one.Active {
				return []string{one.Name + ": " + one.Detail}
			}
		}
	case "landlock":
		if made := byLandlock(""); !made.Active {
			return []string{made.Detail}
		}
	case "seccomp":
		if made := byFilter(false); !made.Active {
			return []string{made.Detail}
		}
	}
	var succeeded []string
	for name, try := range attempts(folder) {
		if name == "look into its parent" && layer == "none" {
			continue // it would stop the parent
		}
		if try() == nil {
			succeeded = append(succeeded, name)
		}
	}
	slices.Sort(succeeded)
	return succeeded
}

// TestWhatIsLockedInCanDoNothing starts this test's program again: what is locked
// in stays so.
func TestWhatIsLockedInCanDoNothing(t *testing.T) {
	if layer := os.Getenv("TANDEM_TEST_LAYER"); layer != "" {
		_ = json.NewEncoder(os.Stdout).Encode(whatSucceeds(layer, os.Getenv("TANDEM_TEST_FOLDER")))
		os.Exit(0)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"read a file", "write a file", "list a folder", "remove a file", "start a program", "open a TCP connection"}
	kept := []string{"compute on (must work)"}
	for _, test := range []struct {
		layer     string
		forbidden []string // nil: all but computing
	}{
		{"none", []string{}}, {"landlock", files}, {"seccomp", nil}, {"all", nil}, {"listing", nil},
	} {
		t.Run(test.layer, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(folder+"/there", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(program, "-test.run=^"+t.Name()[:strings.IndexByte(t.Name(), '/')]+"$")
			command.Env = []string{"TANDEM_TEST_LAYER=" + test.layer, "TANDEM_TEST_FOLDER=" + folder}
			command.Stderr = os.Stderr
			said, err := command.Output()
			var succeeded []string
			if err != nil || json.Unmarshal(said, &succeeded) != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if len(succeeded) == 1 && strings.Contains(succeeded[0], "does not offer it") {
				t.Skip(succeeded[0])
			}
			t.Log(succeeded)
			if !slices.Contains(succeeded, kept[0]) {
				t.Errorf("nothing was tried: %q", succeeded)
			}
			if test.forbidden == nil && layerOnly(test.layer, succeeded) != len(kept) {
				t.Errorf("succeeded: %q", succeeded)
			}
			for _, name := range test.forbidden {
				if slices.Contains(succeeded, name) {
					t.Errorf("%q succeeded", name)
				}
			}
			if test.layer == "none" && !slices.Contains(succeeded, files[0]) {
				t.Errorf("what is forbidden must be possible otherwise, got %q", succeeded)
			}
		})
	}
}

// layerOnly counts what succeeded, without what only the limits forbid.
func layerOnly(layer string, succeeded []string) int {
	n := len(succeeded)
	if layer == "seccomp" && slices.Contains(succeeded, "take 1 GiB") {
		n--
	}
	return n
}
