package limits

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Network is a network namespace with a cable to this machine.
type Network struct {
	name string
	// Here is this machine's address at the cable.
	Here string
}

// NewNetwork makes the namespace; its number, from 1 to 250, tells it from others
// of this process. Remove it when all that ran in it has ended.
func NewNetwork(number int) (*Network, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("only root may make network namespaces")
	}
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is not installed: network namespaces are made and entered with ip (iproute2) and nsenter (util-linux)", tool)
		}
	}
	n := &Network{name: fmt.Sprintf("tandem-%d-%d", os.Getpid(), number), Here: fmt.Sprintf("10.214.%d.1", number)}
	there, cable := fmt.Sprintf("10.214.%d.2", number), fmt.Sprintf("td%d", number)
	for _, line := range []string{
		"netns add " + n.name,
		"link add " + cable + " type veth peer name v0 netns " + n.name,
		"addr add " + n.Here + "/24 dev " + cable, "link set " + cable + " up",
		"-n " + n.name + " addr add " + there + "/24 dev v0", "-n " + n.name + " link set v0 up", "-n " + n.name + " link set lo up",
	} {
		if said, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			n.Remove()
			return nil, fmt.Errorf("ip %s: %w: %s", line, err, said)
		}
	}
	return n, nil
}

// Within is the command line that runs in the namespace what follows. ("ip netns
// exec" would mount another /sys, without control groups.)
func (n *Network) Within() []string { return []string{"nsenter", "--net=/run/netns/" + n.name, "--"} }

// Remove removes the namespace and the cable.
func (n *Network) Remove() {
	_ = exec.Command("ip", "netns", "del", n.name).Run() // it takes the cable along; nothing is left of one that was not made
}

// Forward passes connections to a free port of this machine's end of the cable on
// to an address of this machine, for servers that keep to the loopback. It ends
// when the listener is closed, whose address is the one to connect to.
func (n *Network) Forward(to string) (net.Listener, error) {
	listener, err := net.Listen("tcp", n.Here+":0")
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
