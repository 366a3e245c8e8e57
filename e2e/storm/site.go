package storm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/problem"
)

// site is the processes of a storm.
type site struct {
	options Options
	listen  string
	server  *launch.Server
	token   string
	// client waits for a server that is away, impatient does not.
	client, impatient *rest.Client
	study             string
	agents            []*launch.Process
	result            Result
}

func newSite(options Options) (*site, error) {
	if options.Agents < 1 || options.Slots < 1 || options.Trials < 9 || options.LeaseSeconds <= 0 {
		return nil, problem.New(problem.Invalid, "a storm needs at least 1 agent with 1 slot, 9 trials and a lease, not %d, %d, %d and %g s",
			options.Agents, options.Slots, options.Trials, options.LeaseSeconds)
	}
	// The port is free now. Should somebody else get it between two servers,
	// the start is tried again.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{options: options, listen: listener.Addr().String(), agents: make([]*launch.Process, options.Agents), result: Result{Blows: make(map[string]int)}}
	if s.options.Serve == nil {
		s.options.Serve = s.serve
	}
	return s, listener.Close()
}

// serve is the server where nobody says otherwise.
func (s *site) serve(listen string) (*launch.Server, error) {
	return launch.ServeIn(s.options.Environment, s.options.Binary, s.data(), Flags(listen, s.options.LeaseSeconds)...)
}

// Flags are what every server of a storm is started with.
func Flags(listen string, leaseSeconds float64) []string {
	return []string{"--listen", listen, "--lease-seconds", fmt.Sprint(leaseSeconds), "--heartbeat-seconds", fmt.Sprint(leaseSeconds / 4)}
}

func (s *site) data() string { return filepath.Join(s.options.Folder, "data") }

// start starts a server, for up to a minute: what it stands on may be away too.
func (s *site) start() error {
	began := time.Now()
	for {
		server, err := s.options.Serve(s.listen)
		if err == nil {
			s.server = server
			break
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("start the server: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.result.Starts = append(s.result.Starts, time.Since(began).Seconds())
	if s.token != "" {
		return nil
	}
	s.token = s.server.Token
	var err error
	if s.client, err = newClient("http://"+s.listen, s.token, 2*time.Minute); err != nil {
		return err
	}
	s.impatient, err = newClient("http://"+s.listen, s.token, -1)
	return err
}

// startAgent starts a worker in the place of the one before, with the folder
// that one has left.
func (s *site) startAgent(at int) error {
	name := fmt.Sprintf("agent-%d", at+1)
	if err := os.MkdirAll(filepath.Dir(s.ledger()), 0o700); err != nil {
		return err
	}
	environment := append([]string{"TANDEM_SERVER=http://" + s.listen, "TANDEM_TOKEN=" + s.token}, s.options.Environment...)
	agent, err := launch.Start(s.options.Binary, environment,
		"worker", "--probe", "never", "--name", name, "--scratch", filepath.Join(s.options.Folder, name), "--slots", fmt.Sprint(s.options.Slots), "--drain", "5s", "--no-profile", "--no-models",
		"--allow-write", filepath.Dir(s.ledger()))
	if err != nil {
		return fmt.Errorf("start an agent: %w", err)
	}
	s.agents[at] = agent
	return nil
}

// tend starts others in the place of processes that have ended by themselves.
func (s *site) tend() error {
	if s.server.Ended() {
		s.died("the server", s.server.Process)
		if err := s.start(); err != nil {
			return err
		}
	}
	for at, agent := range s.agents {
		if !agent.Ended() {
			continue
		}
		s.died("an agent", agent)
		if err := s.startAgent(at); err != nil {
			return err
		}
	}
	return nil
}

// died notes a process that has ended by itself, with the end of what it said.
func (s *site) died(who string, process *launch.Process) {
	said := process.Output()
	death := who + " ended by itself: " + said[max(0, len(said)-2000):]
	s.result.Deaths = append(s.result.Deaths, death)
	s.tell("%s", death)
}

// strike does one thing to the processes, and returns what it did.
func (s *site) strike(ctx context.Context, random *rand.Rand) (string, error) {
	lease := time.Duration(s.options.LeaseSeconds * float64(time.Second))
	span := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	kinds := 5
	if s.options.Disturb != nil {
		kinds++
	}
	agent := random.IntN(len(s.agents))
	switch random.IntN(kinds) {
	case 0:
		s.server.Kill()
		time.Sleep(span(time.Second))
		return "kill -9 of the server", s.start()
	case 1:
		return "server stopped for a while", freeze(s.server.Process, span(lease*3/2))
	case 2:
		s.agents[agent].Kill()
		return "kill -9 of an agent", s.startAgent(agent)
	case 3:
		return "agent stopped for a while", freeze(s.agents[agent], span(lease*2))
	case 4:
		s.agents[agent].Kill()
		s.server.Kill()
		return "kill -9 of an agent and the server", errors.Join(s.start(), s.startAgent(agent))
	default:
		return s.options.Disturb(ctx)
	}
}

// freeze lets a process stand still for the span.
func freeze(process *launch.Process, span time.Duration) error {
	if err := syscall.Kill(process.PID(), syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", process.PID(), err)
	}
	time.Sleep(span)
	if err := syscall.Kill(process.PID(), syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue process %d: %w", process.PID(), err)
	}
	return nil
}

// close ends everything. What the server cannot end cleanly is an error.
func (s *site) close() error {
	var failures []error
	for _, agent := range s.agents {
		if agent != nil {
			agent.Kill()
		}
	}
	if s.server != nil {
		if err := s.server.Stop(); err != nil {
			failures = append(failures, fmt.Errorf("the server did not end cleanly: %w\n%s", err, s.server.Output()))
		}
	}
	left, err := filepath.Glob(filepath.Join(s.data(), "artifacts", "temporary", "*"))
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("uploads were left behind: %s", strings.Join(left, ", ")))
	}
	return errors.Join(append(failures, err)...)
}

// fetch returns the SHA-256 of what the server has under the name; empty where
// it has nothing.
func fetch(ctx context.Context, client *rest.Client, name string) (string, error) {
	body, err := client.Artifact(ctx, name)
	if problem.Is(err, problem.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, body)
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, body.Close())
}
