package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Subcommand are the arguments with which this package starts its own program
// again. The program must call [Process] when it is given them, before anything
// else.
func Subcommand() []string { return []string{"worker", "sandbox-launcher"} }

// notStarted is the exit code of a launcher that did not become the command.
const notStarted = 126

// Process is the launcher: it takes its order from descriptor 3, locks itself
// in and becomes the command. It returns only where it cannot, having said why
// on descriptor 4.
func Process() int {
	// What is given up is given up by this thread. It is the one that becomes the
	// command, and all others end at that moment.
	runtime.LockOSThread()
	unix.CloseOnExec(answerDescriptor)
	said := carryOut()
	if err := json.NewEncoder(os.NewFile(answerDescriptor, "answer")).Encode(said); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err) // nobody listens
	}
	if said.Failure != "" {
		return notStarted
	}
	return 0
}

func carryOut() answer {
	file := os.NewFile(orderDescriptor, "order")
	o, err := readOrder(file)
	if err != nil {
		return answer{Failure: "read the order: " + err.Error()}
	}
	_ = file.Close() // it was only read
	said := answer{Layers: o.apply()}
	if o.Probe {
		return said
	}
	for _, one := range said.Layers {
		if o.has(one.Name) && !one.Active {
			said.Failure = fmt.Sprintf("the layer %q, which held when the worker was started, does not: %s", one.Name, one.Detail)
			return said
		}
	}
	if err := die(); err != nil {
		said.Failure = err.Error()
		return said
	}
	err = syscall.Exec(o.Path, o.Arguments, o.Environment)
	said.Failure = err.Error()
	if code, ok := err.(syscall.Errno); ok {
		said.Refused = code
	}
	return said
}

// die has the kernel end this thread, which becomes the command, with the worker.
func die() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the worker: %w", err)
	}
	if orphaned() { // before that was asked for
		return fmt.Errorf("the worker has ended")
	}
	return nil
}

// orphaned reports whether the worker is gone: nobody reads the answer.
func orphaned() bool {
	ready := []unix.PollFd{{Fd: answerDescriptor, Events: unix.POLLOUT}}
	_, err := unix.Poll(ready, 0)
	return err == nil && ready[0].Revents&unix.POLLERR != 0
}

// apply locks this thread in, and says what holds.
func (o order) apply() []Layer {
	steps := map[string]func() (string, error){
		Limits: setLimits, Namespaces: o.separate, Capabilities: dropCapabilities, Privileges: forgoPrivileges,
	}
	var said []Layer
	for _, name := range layers {
		if !o.has(name) {
			continue
		}
		var detail string
		var err error
		switch name {
		case Files, Signals: // both are Landlock's, and made at once
			if !slices.ContainsFunc(said, func(one Layer) bool { return one.Name == Files || one.Name == Signals }) {
				said = append(said, o.landlock()...)
			}
			continue
		case Calls:
			detail, err = o.refuseCalls(holds(said, Files))
		default:
			detail, err = steps[name]()
		}
		if err != nil {
			said = append(said, Layer{Name: name, Detail: err.Error()})
			continue
		}
		said = append(said, Layer{Name: name, Active: true, Detail: detail})
	}
	if o.Directory != "" {
		_ = os.Chdir(o.Directory) // it was there before; now the path leads through the own mounts
	}
	return said
}

func holds(said []Layer, name string) bool {
	return slices.ContainsFunc(said, func(one Layer) bool { return one.Name == name && one.Active })
}

func forgoPrivileges() (string, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", fmt.Errorf("the kernel refuses: %w", err)
	}
	return "no program gives more rights", nil
}
