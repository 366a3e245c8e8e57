// Package unlike answers: what do real workers on unlike machines do with a
// study?
//
// A [Site] is a real server and real workers on this machine, each held to limits
// of its own ([limits]) and each with the power that its owner says it draws. The
// trials' command is the calling program itself: it must call [Train] first of
// all when [IsScript] says so. [Site.Books] is what the server says of a study,
// by worker, with what does not add up. The package knows the command line and
// REST, and nothing behind them.
package unlike

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/limits"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// Place is where a worker runs.
type Place struct {
	// Name is the worker's too.
	Name   string
	Limits limits.Limits
	// BusyWatts and IdleWatts are what a core draws, as its owner says; 0: the
	// usual estimate.
	BusyWatts, IdleWatts float64
	// Network is the number of its own network namespace; 0: this machine's.
	Network int
}

// Places are three that differ as much as one machine allows: one with all of
// it, one that is slow and draws little, and one with little memory. Each has a
// network namespace of its own.
func Places() []Place {
	return []Place{
		{Name: "fast", Network: 1},
		{Name: "frugal", Limits: limits.Limits{Cores: 0.4}, BusyWatts: 2, IdleWatts: 0.1, Network: 2},
		{Name: "small", Limits: limits.Limits{Cores: 1, MemoryBytes: 248 << 20}, Network: 3},
	}
}

// Options make a [Site].
type Options struct {
	// Binary is tandem's, Script the program that trains.
	Binary, Script string
	// Folder gets the server's data and the workers' folders.
	Folder string
	// Probe is when the workers probe, as their flag has it.
	Probe string
	// Tell is told what happens; nil: nobody.
	Tell func(what string)
}

// Site is a running server with its workers.
type Site struct {
	Client  *rest.Client
	options Options
	server  *launch.Server
	places  map[string]Place
	workers map[string]*launch.Process
	// names are those of the workers, by id.
	names   map[string]string
	cleanup []func()
}

// Open starts a server.
func Open(options Options) (*Site, error) {
	if options.Tell == nil {
		options.Tell = func(string) {}
	}
	s := &Site{options: options, places: map[string]Place{}, workers: map[string]*launch.Process{}, names: map[string]string{}}
	var err error
	if s.server, err = launch.Serve(options.Binary, filepath.Join(options.Folder, "data")); err != nil {
		return nil, err
	}
	if s.Client, err = rest.New(rest.Options{URL: s.server.URL, Token: s.server.Token}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Start starts a worker and waits until the server knows it. An error that wraps
// [ErrLimits] says that this machine can't be limited so.
func (s *Site) Start(ctx context.Context, place Place) (protocol.Worker, error) {
	group, err := limits.NewGroup(fmt.Sprintf("tandem-unlike-%s-%s", s.server.URL[strings.LastIndexByte(s.server.URL, ':')+1:], place.Name), place.Limits)
	if err != nil {
		return protocol.Worker{}, fmt.Errorf("%w: %w", ErrLimits, err)
	}
	s.cleanup = append(s.cleanup, group.Remove)
	into, url, err := s.connect(place)
	if err != nil {
		return protocol.Worker{}, err
	}
	line := slices.Concat(group.Within(), into, []string{s.options.Binary, "worker", "--insecure", "--server", url, "--name", place.Name, "--slots", "1", "--drain", "5s", "--no-models",
		"--scratch", filepath.Join(s.options.Folder, place.Name), "--probe", s.options.Probe})
	if place.BusyWatts > 0 {
		line = append(line, "--watts-per-core", fmt.Sprint(place.BusyWatts), "--idle-watts-per-core", fmt.Sprint(place.IdleWatts))
	}
	// Each is a machine of its own, with its own memory of what it probed.
	environment := []string{"TANDEM_TOKEN=" + s.server.Token, "XDG_STATE_HOME=" + filepath.Join(s.options.Folder, place.Name+"-state")}
	process, err := launch.Start(line[0], environment, line[1:]...)
	if err != nil {
		return protocol.Worker{}, err
	}
	s.workers[place.Name], s.places[place.Name] = process, place
	return s.arrival(ctx, place.Name)
}

// connect makes the place's network, where this machine makes some: into is the
// command line that enters it, and url where the server is seen from there.
func (s *Site) connect(place Place) (into []string, url string, err error) {
	if place.Network == 0 {
		return nil, s.server.URL, nil
	}
	network, err := limits.NewNetwork(place.Network)
	if err != nil {
		s.options.Tell(fmt.Sprintf("%s has no network of its own: %v", place.Name, err))
		return nil, s.server.URL, nil
	}
	s.cleanup = append(s.cleanup, network.Remove)
	listener, err := network.Forward(strings.TrimPrefix(s.server.URL, "http://"))
	if err != nil {
		return nil, "", err
	}
	s.cleanup = append(s.cleanup, func() { _ = listener.Close() }) // nothing more comes through
	return network.Within(), "http://" + listener.Addr().String(), nil
}

// ErrLimits says that this machine can't hold a process to less than it has.
var ErrLimits = errors.New("this machine can't play several")

// arrival waits for a worker that was started.
func (s *Site) arrival(ctx context.Context, name string) (protocol.Worker, error) {
	for ctx.Err() == nil {
		workers, err := s.Client.Workers(ctx)
		if err != nil {
			return protocol.Worker{}, err
		}
		for _, one := range workers {
			if one.Name == name && one.Alive {
				s.names[one.ID] = name
				s.options.Tell(fmt.Sprintf("worker %s is a machine of type %s", name, one.Machine.Type()))
				return one, nil
			}
		}
		if s.workers[name].Ended() {
			return protocol.Worker{}, fmt.Errorf("worker %s has ended:\n%s", name, s.workers[name].Output())
		}
		pause(ctx, 50*time.Millisecond)
	}
	return protocol.Worker{}, fmt.Errorf("worker %s has not arrived: %w\n%s", name, ctx.Err(), s.workers[name].Output())
}

// Log is what a worker has printed so far.
func (s *Site) Log(name string) string { return s.workers[name].Output() }

func pause(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}

// Close ends workers and server, and removes what held them.
func (s *Site) Close() error {
	var failed error
	for name, worker := range s.workers {
		if err := worker.Stop(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("worker %s: %w\n%s", name, err, worker.Output()))
		}
	}
	if err := s.server.Stop(); err != nil {
		failed = errors.Join(failed, fmt.Errorf("server: %w\n%s", err, s.server.Output()))
	}
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		s.cleanup[i]()
	}
	return failed
}
