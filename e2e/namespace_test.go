package e2e_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// forwarding, with two addresses, makes the test binary pass connections to the
// first one on to the second: a server keeps to the loopback interface, and in a
// network namespace of its own nothing else would reach it.
const forwarding = "TANDEM_E2E_FORWARD"

func forward(addresses string) int {
	from, to, _ := strings.Cut(addresses, " ")
	listener, err := net.Listen("tcp", from)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		near, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go func() {
			defer near.Close()
			far, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer far.Close()
			var both sync.WaitGroup
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) // whoever is left finds out
				_ = to.(*net.TCPConn).CloseWrite()
			}
			both.Go(func() { pass(near, far) })
			both.Go(func() { pass(far, near) })
			both.Wait()
		}()
	}
}

// twoPlaces are two network namespaces with a cable between them.
type twoPlaces struct {
	t             *testing.T
	server, other string // the namespaces' names
}

const (
	serverPlace = "10.213.7.1"
	otherPlace  = "10.213.7.2"
)

// placesMade counts them, for names that no other test has.
var placesMade atomic.Int64

// newPlaces makes them, or skips the test with the reason why it cannot.
func newPlaces(t *testing.T) twoPlaces {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may make network namespaces")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: partitions of a real network are made with it", tool)
		}
	}
	prefix := fmt.Sprintf("tandem-e2e-%d-%d-", os.Getpid(), placesMade.Add(1))
	p := twoPlaces{t: t, server: prefix + "server", other: prefix + "other"}
	for _, place := range []string{p.server, p.other} {
		if said, err := exec.Command("ip", "netns", "add", place).CombinedOutput(); err != nil {
			t.Skipf("this machine makes no network namespaces: %v: %s", err, said)
		}
		t.Cleanup(func() {
			if said, err := exec.Command("ip", "netns", "del", place).CombinedOutput(); err != nil {
				t.Errorf("remove the network namespace %s: %v: %s", place, err, said)
			}
		})
	}
	for _, line := range []string{
		"ip link add v0 netns " + p.server + " type veth peer name v0 netns " + p.other,
		"ip -n " + p.server + " addr add " + serverPlace + "/24 dev v0", "ip -n " + p.other + " addr add " + otherPlace + "/24 dev v0",
		"ip -n " + p.server + " link set v0 up", "ip -n " + p.other + " link set v0 up",
		"ip -n " + p.server + " link set lo up", "ip -n " + p.other + " link set lo up",
		"ip netns exec " + p.server + " nft add table inet tandem",
		"ip netns exec " + p.server + " nft add chain inet tandem arriving { type filter hook input priority 0 ; }",
		"ip netns exec " + p.server + " nft add chain inet tandem leaving { type filter hook output priority 0 ; }",
	} {
		if said, err := exec.Command("sh", "-c", strings.NewReplacer("{", `'{`, "}", `}'`).Replace(line)).CombinedOutput(); err != nil {
			t.Skipf("this machine joins no network namespaces: %s: %v: %s", line, err, said)
		}
	}
	return p
}

// within is the command line that runs in a place what follows.
func within(place string) []string { return []string{"ip", "netns", "exec", place} }

// cut drops what goes over the cable, as the chains of the server's place see it.
func (p twoPlaces) cut(chains ...string) {
	p.t.Helper()
	for _, chain := range chains {
		device := map[string]string{"arriving": "iifname", "leaving": "oifname"}[chain]
		p.run("nft", "add", "rule", "inet", "tandem", chain, device, "v0", "drop")
	}
}

// mend lets everything through again.
func (p twoPlaces) mend() {
	p.t.Helper()
	p.run("nft", "flush", "table", "inet", "tandem")
}

func (p twoPlaces) run(args ...string) {
	p.t.Helper()
	if said, err := exec.Command("ip", append(within(p.server)[1:], args...)...).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %v: %s", args, err, said)
	}
}

func (p twoPlaces) start(place string, environment []string, args ...string) *launch.Process {
	p.t.Helper()
	line := append(within(place), args...)
	process, err := launch.Start(line[0], environment, line[1:]...)
	if err != nil {
		p.t.Fatal(err)
	}
	endsWith(p.t, process)
	return process
}

// TestPartitionsOfARealNetwork drops packets between a worker and the server, in
// one direction or in both, for longer than a lease. Connections stay open, and
// nobody is told.
func TestPartitionsOfARealNetwork(t *testing.T) {
	t.Parallel()
	for name, chains := range map[string][]string{"to the server": {"arriving"}, "from the server": {"leaving"}, "both ways": {"arriving", "leaving"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // their addresses are the same, in networks of their own
			s := newStudy(t, "real-"+strings.ReplaceAll(name, " ", "-"), nineEpochs, "0.3", 1)
			places := newPlaces(t)
			at := newSiteIn(t, within(places.server), append([]string{"--allow-host", serverPlace}, short...)...)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			places.start(places.server, []string{forwarding + "=" + serverPlace + ":7171 " + at.listen}, self)
			at.workerBy(within(places.other), "--insecure", "--server", "http://"+serverPlace+":7171")
			at.must("study", "create", s.file)
			until(t, "two acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 2 })
			script := s.entries("trained")[0].pid
			places.cut(chains...)
			gone(t, script)
			at.worker()
			s.takenOver(script)
			places.mend()
			at.once(s)
			if syscall.Kill(script, 0) != syscall.ESRCH {
				t.Error("the cut off worker's script runs again")
			}
		})
	}
}
