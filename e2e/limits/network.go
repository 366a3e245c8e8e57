package limits

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Network is a network namespace with nothing but a loopback interface. No cable
// leads into it: an address that comes or goes in this machine's own network
// makes every browser on it drop what it is loading, and tests run side by side.
type Network struct{ name string }

// NewNetwork makes the namespace; the number tells it from others of this
// process. Remove it when all that ran in it has ended.
func NewNetwork(number int) (*Network, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("only root may make network namespaces")
	}
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is not installed: network namespaces are made and entered with ip (iproute2) and nsenter (util-linux)", tool)
		}
	}
	n := &Network{name: fmt.Sprintf("tandem-%d-%d", os.Getpid(), number)}
	for _, line := range []string{"netns add " + n.name, "-n " + n.name + " link set lo up"} {
		if said, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			n.Remove()
			return nil, fmt.Errorf("ip %s: %w: %s", line, err, said)
		}
	}
	return n, nil
}

// Within is the command line that runs in the namespace what follows. ("ip netns
// exec" would mount another /sys, without control groups.)
func (n *Network) Within() []string { return []string{"nsenter", "--net=" + n.path(), "--"} }

func (n *Network) path() string { return "/run/netns/" + n.name }

// Remove removes the namespace.
func (n *Network) Remove() {
	_ = exec.Command("ip", "netns", "del", n.name).Run() // nothing is left of one that was not made
}

// Forward passes connections to a free port of the namespace's loopback on to an
// address of this machine. It ends when the listener is closed, whose address is
// the one to connect to from within.
func (n *Network) Forward(to string) (net.Listener, error) {
	listener, err := n.listen()
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(near, to)
		}
	}()
	return listener, nil
}

// listen makes a socket in the namespace, where it stays: what is accepted on it
// comes from there, whichever thread accepts. The thread goes back and lives on: with
// one that ends, the kernel ends the processes that were started on it and are to die
// with their parent.
func (n *Network) listen() (listener net.Listener, err error) {
	here, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := os.Open(n.path())
	if err != nil {
		return nil, err
	}
	defer there.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the network namespace %s: %w", n.name, err)
	}
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(fmt.Sprintf("no way back from the network namespace %s: %v", n.name, back)) // the thread must serve nobody else
	}
	return listener, err
}

// pass carries what is sent both ways until both sides have said all.
func pass(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return // the caller sees a connection that ends
	}
	defer far.Close()
	var both sync.WaitGroup
	one := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // whoever is left finds out
		if half, can := to.(*net.TCPConn); can {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { one(near, far) })
	both.Go(func() { one(far, near) })
	both.Wait()
}
