package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/workload"
)

// mostKept bounds the kinds of machines that a home which several of them share
// keeps probes of.
const mostKept = 64

// keptFile is the file of what the probing tasks took.
type keptFile struct {
	// Version is that of the tasks.
	Version int `json:"version"`
	// Machines has the probes of each kind of machine.
	Machines map[string]keptMachine `json:"machines"`
}

type keptMachine struct {
	At     time.Time        `json:"at"`
	Probes []protocol.Probe `json:"probes"`
}

// DefaultFile is where a user's workers keep what the probing tasks took.
func DefaultFile() (string, error) {
	state, err := workspace.StateDirectory()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(state), "probes.json"), nil
}

func nothingKept() keptFile {
	return keptFile{Version: workload.Version, Machines: map[string]keptMachine{}}
}

// readKept reads the file. One that is not there, or is of other tasks, has
// nothing in it.
func readKept(path string) (keptFile, error) {
	none := nothingKept()
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var kept keptFile
	if err := json.Unmarshal(content, &kept); err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	if kept.Version != workload.Version || kept.Machines == nil {
		return none, nil
	}
	return kept, nil
}

// keep adds a machine's probes to the file, in place of what it had of them.
func keep(path, kind string, probes []protocol.Probe, at time.Time) error {
	kept, err := readKept(path)
	if err != nil {
		kept = nothingKept() // what cannot be read is of no use to anybody
	}
	kept.Machines[kind] = keptMachine{At: at.UTC(), Probes: probes}
	for len(kept.Machines) > mostKept {
		oldest := kind
		for name, one := range kept.Machines {
			if one.At.Before(kept.Machines[oldest].At) {
				oldest = name
			}
		}
		delete(kept.Machines, oldest)
	}
	return files.Keep(path, kept)
}

const (
	// turnPatience is how long a worker waits for others on the machine to be
	// done with probing, turnEvery how often it asks.
	turnPatience = time.Minute
	turnEvery    = 100 * time.Millisecond
)

// takeTurn waits until no other worker on this machine is probing, and keeps
// others from it until it is released. The turn is a name that the kernel gives
// to one process at a time, and takes back when that ends.
func takeTurn(ctx context.Context, name string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	for {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@"+name)
		if err == nil {
			return func() { _ = listener.Close() }, nil // there is no file that could stay
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
		if clock.Sleep(ctx, turnEvery); ctx.Err() != nil {
			return nil, fmt.Errorf("another worker on this machine has been probing for %v", turnPatience)
		}
	}
}

// turnName is the name of the turn.
const turnName = "tandem-probing"

// Run is what the probing tasks took on this machine, as far as the mode lets them
// run. No trial runs yet. That they can't run is no fault: what is not known of a
// machine is learned from trials.
func (p Prober) Run(ctx context.Context) []protocol.Probe {
	if p.Mode == Never {
		return nil
	}
	logger := p.Logger
	release, err := takeTurn(ctx, turnName)
	if err != nil {
		logger.Warn("the probing tasks do not run now", "error", err)
		return nil
	}
	defer release()
	if p.Mode == Once {
		kept, err := readKept(p.File)
		if err != nil {
			logger.Warn("cannot read what the probing tasks took before", "error", err)
		}
		if one, known := kept.Machines[p.kind()]; known {
			return one.Probes
		}
	}
	logger.Info("running the probing tasks: that takes a few seconds, once on a machine (--probe never leaves them out)")
	found, reasons, err := p.runTasks(ctx)
	for _, reason := range reasons {
		logger.Info("probing: " + reason)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && p.Mode == Once:
		logger.Warn("what the probing tasks took does not count, and they run again when the worker starts next", "reason", err)
		return nil
	case err != nil:
		logger.Warn("the probing tasks were disturbed: what they took may be too much", "reason", err)
		return found
	}
	if err := keep(p.File, p.kind(), found, time.Now()); err != nil {
		logger.Warn("cannot keep what the probing tasks took: they run again when the worker starts next", "error", err)
	}
	return found
}
