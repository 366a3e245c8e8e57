//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// armed is what shall happen at a point.
type armed struct {
	what   string // "panic", "error", "sleep" or "kill"
	span   time.Duration
	passes int // until it happens
}

// state is the process's failpoints, read when the first one is passed.
var state struct {
	once  sync.Once
	mutex sync.Mutex
	armed map[Point]armed
	fired string
}

// Here does what the environment says shall happen at this pass of the point.
func Here(point Point) error {
	state.once.Do(load)
	state.mutex.Lock()
	one, found := state.armed[point]
	if !found {
		state.mutex.Unlock()
		return nil
	}
	if one.passes--; one.passes > 0 {
		state.armed[point] = one
		state.mutex.Unlock()
		return nil
	}
	delete(state.armed, point)
	state.mutex.Unlock()
	if !claim(point) {
		return nil
	}
	switch one.what {
	case "panic":
		panic("failpoint " + string(point))
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // there is nobody left to hear of an error
		select {}
	case "sleep":
		time.Sleep(one.span)
		return nil
	}
	return fmt.Errorf("failpoint %s", point)
}

// claim says for all processes to come that the point has fired; false: it had.
func claim(point Point) bool {
	if state.fired == "" {
		return true
	}
	file, err := os.OpenFile(state.fired+"."+string(point), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// load reads the environment. A mistake in it ends the process: a test that
// does not harm what it means to is worse than none.
func load() {
	state.armed, state.fired = make(map[Point]armed), os.Getenv("TANDEM_FAILPOINTS_FIRED")
	for text := range strings.SplitSeq(os.Getenv("TANDEM_FAILPOINTS"), ",") {
		if text == "" {
			continue
		}
		point, one, err := parse(text)
		if err != nil {
			fmt.Fprintf(os.Stderr, "TANDEM_FAILPOINTS: %v\n", err)
			os.Exit(2)
		}
		state.armed[point] = one
	}
}

// parse reads POINT=WHAT[:SPAN][@PASS].
func parse(text string) (Point, armed, error) {
	name, what, found := strings.Cut(text, "=")
	what, pass, counted := strings.Cut(what, "@")
	what, span, _ := strings.Cut(what, ":")
	one := armed{what: what, passes: 1}
	var err error
	if counted {
		one.passes, err = strconv.Atoi(pass)
	}
	if err == nil && what == "sleep" {
		one.span, err = time.ParseDuration(span)
	}
	known := false
	for _, point := range Points {
		known = known || point == Point(name)
	}
	if !found || !known || err != nil || one.passes < 1 || !slices.Contains([]string{"panic", "error", "sleep", "kill"}, what) {
		return "", armed{}, fmt.Errorf("%q must be POINT=panic, POINT=error, POINT=kill or POINT=sleep:SPAN, with @PASS behind it, and the point one of %v", text, Points)
	}
	return Point(name), one, nil
}
