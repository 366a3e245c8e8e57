// Command agents measures one server with thousands of workers: each has a
// trial, sends heartbeats and reports an epoch now and then.
//
//	go run ./bench/agents                          # 5,000 agents for 60 s, heartbeats every 10 s
//	go run ./bench/agents -seconds 300s -runs 3
//	go run ./bench/agents -agents 20000 -studies 1000 -heartbeat-seconds 30 -lease-seconds 120 -epoch 60s -ramp 120s
//	go run ./bench/agents -stampede                # and the server is killed, and comes back after 60 s
//
// The server is a real process with its data on a disk (-data says where). The
// agents are in this process, each with a connection of its own over the
// loopback, and share the machine with the server. They speak REST as workers
// do, and train nothing. Latencies are what an agent waits for an answer; those
// of the first -warm seconds do not count. The exit code is 1 if a trial was
// taken from an agent that was well.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
)

type options struct {
	agents, runs  int
	studies       int
	seconds, warm time.Duration
	ramp, epoch   time.Duration
	heartbeat     float64
	lease         float64
	stampede      bool
	away          time.Duration
	data          string
}

func main() {
	var o options
	flag.IntVar(&o.agents, "agents", 5000, "workers, each with one trial")
	flag.IntVar(&o.studies, "studies", 1, "studies that share them; agents ask for a trial of any")
	flag.IntVar(&o.runs, "runs", 1, "how often to repeat, each time with new data")
	flag.DurationVar(&o.seconds, "seconds", time.Minute, "how long to measure, such as 300s")
	flag.DurationVar(&o.warm, "warm", 15*time.Second, "how long the agents run before that")
	flag.DurationVar(&o.ramp, "ramp", 20*time.Second, "over how long they are started")
	flag.DurationVar(&o.epoch, "epoch", 10*time.Second, "how often each reports")
	flag.Float64Var(&o.heartbeat, "heartbeat-seconds", 10, "how often each sends a heartbeat")
	flag.Float64Var(&o.lease, "lease-seconds", 60, "how long a silent worker keeps its trial")
	flag.BoolVar(&o.stampede, "stampede", false, "then kill the server, start it again and measure how long the agents take to be back")
	flag.DurationVar(&o.away, "away", time.Minute, "how long there is no server then")
	flag.StringVar(&o.data, "data", "", "folder on the disk to measure; the system's temporary folder when empty")
	flag.Parse()
	debug.SetGCPercent(400) // the agents share the processors with what is measured
	program.Run("bench/agents", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	if err := enoughDescriptors(o.agents); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(o.data, "tandem-agents-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	var failures []error
	for i := range o.runs {
		found, err := once(ctx, o, binary, filepath.Join(folder, fmt.Sprintf("data-%d", i)))
		if err != nil {
			return err
		}
		line, err := json.Marshal(found)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		found.print()
		if found.FalseLost > 0 {
			failures = append(failures, fmt.Errorf("%d trials were taken from agents that were well", found.FalseLost))
		}
	}
	return errors.Join(failures...)
}

// enoughDescriptors makes sure that every agent can have its connection.
func enoughDescriptors(agents int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := uint64(agents + 200); limit.Max < need {
		return fmt.Errorf("%d agents need %d open files, and this process may have %d: raise ulimit -n, or take fewer -agents", agents, need, limit.Max)
	}
	return nil
}

// once is one run on new data.
func once(ctx context.Context, o options, binary, data string) (found result, err error) {
	s := &site{options: o, binary: binary, data: data}
	if err := s.serve(); err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, s.server.Stop()) }()
	people, err := rest.New(rest.Options{URL: s.server.URL, Token: s.token})
	if err != nil {
		return result{}, err
	}
	for i := range o.studies {
		if _, err := people.CreateStudy(ctx, fmt.Appendf(nil, studyFile, i, (o.agents+o.studies-1)/o.studies), "application/yaml"); err != nil {
			return result{}, err
		}
	}
	crew, err := newCrew(o, s.server.URL, s.token)
	if err != nil {
		return result{}, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	if err := crew.start(working); err != nil {
		return result{}, err
	}
	found = result{Agents: o.agents, Studies: o.studies, StartSeconds: time.Since(began).Seconds()}
	if !wait(ctx, o.warm) {
		return result{}, ctx.Err()
	}
	if err := s.measure(ctx, crew, &found); err != nil {
		return result{}, err
	}
	if o.stampede {
		if err := s.stampede(ctx, crew, &found); err != nil {
			return result{}, err
		}
	}
	stop()
	crew.group.Wait()
	found.Refused = crew.refused.Load()
	for i := range o.studies {
		lost, err := losses(ctx, people, fmt.Sprint("agents-", i))
		if found.FalseLost += lost; err != nil {
			return result{}, err
		}
	}
	return found, nil
}

// wait waits unless the context ends first.
func wait(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
