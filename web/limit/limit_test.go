package limit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/web/limit"
)

func TestRatesAreKeptForEachKey(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	rates := limit.NewRates(10, 30, 100, watch.Now)
	taken := func(key string, wanted int) {
		t.Helper()
		count := 0
		for rates.Take(key, 1) == 0 {
			if count++; count > 1000 {
				break
			}
		}
		if count != wanted {
			t.Errorf("%s: %d at once, want %d", key, count, wanted)
		}
	}
	taken("a", 30)
	taken("b", 30)
	if wait := rates.Take("a", 1); wait <= 0 || wait > 100*time.Millisecond {
		t.Errorf("the next is due in %v", wait)
	}
	if wait := rates.Take("a", 20); wait <= 1900*time.Millisecond || wait > 2*time.Second {
		t.Errorf("the next 20 are due in %v", wait)
	}
	watch.Pass(2 * time.Second)
	taken("a", 20)
	watch.Pass(time.Hour)
	taken("a", 30)
	watch.Pass(time.Hour)
	if wait := rates.Take("a", 1000); wait != 0 { // more than there can ever be
		t.Errorf("a huge amount waits for %v", wait)
	}
	if wait := rates.Take("a", 1000); wait <= 0 || wait > 3*time.Second {
		t.Errorf("another one waits for %v", wait)
	}
	if wait := limit.NewRates(0, 0, 1, watch.Now).Take("a", 1<<30); wait != 0 {
		t.Errorf("no rate is a rate: %v", wait)
	}
}

func TestRatesForgetThoseThatUseNothing(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	rates := limit.NewRates(1, 2, 10, watch.Now)
	rates.Take("busy", 2)
	for i := range 5000 {
		watch.Pass(time.Millisecond) // "busy" has not recovered, the others hardly used anything
		rates.Take(fmt.Sprint(i), 0)
		if i < 900 && rates.Take("busy", 1) == 0 {
			t.Fatalf("a key that is in use was forgotten after %d others", i)
		}
	}
}

func TestFailuresByOrigin(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	limiter := limit.NewFailures(watch.Now)
	for i := range 10 {
		if wait := limiter.Wait("192.0.2.1:99"); wait != 0 {
			t.Fatalf("attempt %d waits for %v", i, wait)
		}
		limiter.Failed(fmt.Sprintf("192.0.2.1:%d", i))
		limiter.Failed(fmt.Sprintf("[2001:db8::%x]:1", i)) // one network
	}
	for _, from := range []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", "192.0.2.1", "[2001:db8::ffff]:1", "[2001:db8:0:0:9::1%eth0]:1"} {
		if wait := limiter.Wait(from); wait != time.Minute {
			t.Errorf("%s waits for %v", from, wait)
		}
	}
	for _, from := range []string{"192.0.2.2:1", "[2001:db8:0:1::1]:1", "nonsense"} {
		if wait := limiter.Wait(from); wait != 0 {
			t.Errorf("%s waits for %v", from, wait)
		}
	}
	for i := range 30000 {
		limiter.Failed(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	watch.Pass(time.Minute)
	if wait := limiter.Wait("192.0.2.1:1"); wait != 0 {
		t.Errorf("a minute later it waits for %v", wait)
	}
}

func TestTheDelayOfFailuresGrows(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	limiter := limit.NewFailures(watch.Now)
	for range 10 {
		limiter.Failed("192.0.2.1:1")
	}
	for _, minutes := range []int{1, 2, 4, 8, 15, 15} {
		wait := limiter.Wait("192.0.2.1:1")
		if wait != time.Duration(minutes)*time.Minute {
			t.Fatalf("waits for %v, want %d minutes", wait, minutes)
		}
		watch.Pass(wait)
		if left := limiter.Wait("192.0.2.1:1"); left != 0 {
			t.Fatalf("after the wait there are %v left", left)
		}
		limiter.Failed("192.0.2.1:1")
	}
	watch.Pass(time.Hour + time.Second)
	limiter.Failed("192.0.2.1:1")
	if wait := limiter.Wait("192.0.2.1:1"); wait != 0 {
		t.Errorf("an hour of quiet is not forgiven: %v", wait)
	}
	// Somebody who errs now and then never waits.
	for range 100 {
		watch.Pass(10 * time.Second)
		limiter.Failed("192.0.2.9:1")
		if wait := limiter.Wait("192.0.2.9:1"); wait != 0 {
			t.Fatalf("six failures a minute wait for %v", wait)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names := limit.NewNames(3, 2)
	admit := func(key string, wanted bool, list ...string) {
		t.Helper()
		if got := names.Admit(key, slices.Values(list)); got != wanted {
			t.Errorf("%s %v: %v", key, list, got)
		}
	}
	admit("a", true, "x", "y")
	admit("a", true, "x", "y", "x")
	admit("a", false, "u", "v")
	admit("a", true, "z")
	admit("a", false, "u")
	admit("a", true, "x", "y", "z")
	admit("b", true, "u", "v", "w")
	admit("b", false, "u", "v", "w", "x")
	admit("c", true, "u") // one key too many: all start anew
	admit("b", true, "1", "2", "3")
}

func TestFairLeavesRoomToWhoeverComesNext(t *testing.T) {
	t.Parallel()
	fair := limit.NewFair(6400)
	fill := func(key string, amount int64, wanted int) {
		t.Helper()
		count := 0
		for fair.Take(key, amount) {
			count++
		}
		if count != wanted {
			t.Errorf("%s took %d times %d, want %d", key, count, amount, wanted)
		}
	}
	fill("a", 1, 1600)
	fill("a", 1, 0)
	if fair.HeldBy("a") != 1600 || fair.HeldBy("b") != 0 || fair.Held() != 1600 {
		t.Errorf("a holds %d, b %d, all %d", fair.HeldBy("a"), fair.HeldBy("b"), fair.Held())
	}
	fill("b", 1, 1200)
	fill("c", 1, 900) // and there are 2700 left
	if fair.Take("d", 700) {
		t.Error("somebody left less than three quarters")
	}
	for i := range 600 { // many come, and one more gets something
		if !fair.Take(fmt.Sprint(i), 1) {
			t.Fatalf("nothing was left for number %d", i)
		}
	}
	fair.Give("a", 1600)
	fill("a", 1, 925)
	if fair.Take("e", 2000) || fair.Take("e", 1<<62) {
		t.Error("more than there is")
	}
}

func TestFairIsGivenBack(t *testing.T) {
	t.Parallel()
	fair := limit.NewFair(100)
	var all sync.WaitGroup
	var most, now atomic.Int64
	for i := range 64 {
		all.Go(func() {
			key := fmt.Sprint(i % 3)
			for range 200 {
				if !fair.Take(key, 15) {
					continue
				}
				if held := now.Add(15); held > most.Load() {
					most.Store(held)
				}
				now.Add(-15)
				fair.Give(key, 15)
			}
		})
	}
	all.Wait()
	if most.Load() > 100 || fair.Held() != 0 {
		t.Errorf("at most %d were held, and %d are", most.Load(), fair.Held())
	}
	if !fair.Take("0", 25) || fair.Take("0", 1) {
		t.Error("it is not what it was")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := limit.Listen(inner, 2, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(bounded) }()
	dial := func() net.Conn {
		t.Helper()
		connection, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	ask := func(connection net.Conn) int {
		t.Helper()
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return 0 // it was closed already
		}
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			return 0
		}
		return response.StatusCode
	}
	first, second := dial(), dial()
	if ask(first) != 200 || ask(second) != 200 {
		t.Fatal("there was room for two")
	}
	third := dial()
	told, err := io.ReadAll(third)
	if err != nil || !strings.HasPrefix(string(told), "HTTP/1.1 503 ") || bounded.Shed() != 1 || bounded.Open() != 2 {
		t.Fatalf("one too many is told %q: %v (%d open, %d shed)", told, err, bounded.Open(), bounded.Shed())
	}
	if ask(first) != 200 {
		t.Error("those that were there first are disturbed")
	}
	first.Close()
	for deadline := time.Now().Add(5 * time.Minute); bounded.Open() > 1 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	if fourth := dial(); ask(fourth) != 200 {
		t.Error("a place that was given back stays empty")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if bounded.Open() != 0 {
		t.Errorf("%d connections are still counted", bounded.Open())
	}
}

func TestConnectionsGiveTheirPlaceBackOnce(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	bounded := limit.Listen(inner, 10, "")
	open := map[int]net.Conn{}
	for i := range 3 {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if open[i], err = bounded.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		for connection := range maps.Values(open) {
			connection.Close()
		}
	}
	if bounded.Open() != 0 {
		t.Errorf("%d connections are counted", bounded.Open())
	}
}

// arriving are connections from addresses of the test's choice.
type arriving struct {
	net.Listener
	from chan string
}

type arrived struct {
	net.Conn
	from string
}

func (a arriving) Accept() (net.Conn, error) {
	ours, theirs := net.Pipe()
	ours.Close()
	return arrived{theirs, <-a.from}, nil
}

func (a arrived) RemoteAddr() net.Addr { return address(a.from) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestOneAddressLeavesConnectionsToOthers(t *testing.T) {
	t.Parallel()
	arrivals := arriving{from: make(chan string, 200)}
	bounded := limit.Listen(arrivals, 16, "")
	var open []net.Conn
	accept := func(from ...string) {
		t.Helper()
		for _, one := range from {
			arrivals.from <- one
		}
		connection, err := bounded.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, connection)
	}
	for i := range 12 {
		accept(fmt.Sprintf("[2001:db8::%x]:1", i)) // one network
	}
	for i := range 4 {
		accept("[2001:db8::99]:1", fmt.Sprintf("192.0.2.%d:1", i)) // the first is refused
	}
	if bounded.Shed() != 4 || bounded.Open() != 16 {
		t.Errorf("%d were refused, and %d are open", bounded.Shed(), bounded.Open())
	}
	for _, connection := range open {
		connection.Close()
	}
	for range 2 { // this machine's own are no strangers
		accept("127.0.0.1:1")
	}
	for range 14 {
		accept("[::1]:1")
	}
	if bounded.Shed() != 4 || bounded.Open() != 16 {
		t.Errorf("%d were refused, and %d are open", bounded.Shed(), bounded.Open())
	}
}
