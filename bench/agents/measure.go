package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// result is one run. Latencies are in milliseconds.
type result struct {
	Agents       int     `json:"agents"`
	Studies      int     `json:"studies"`
	StartSeconds float64 `json:"start_seconds"`
	Seconds      float64 `json:"seconds"`
	Heartbeats   latency `json:"heartbeats"`
	Reports      latency `json:"reports"`
	// Failed are attempts without an answer while it was measured, Refused
	// leases that the server called lost, FalseLost trials that it took away.
	Failed    int64 `json:"failed"`
	Refused   int64 `json:"refused"`
	FalseLost int   `json:"false_lost"`
	// CPU is how many cores the server used, PeakMiB its largest resident size.
	CPU     float64 `json:"server_cores"`
	PeakMiB float64 `json:"server_peak_mib"`
	// Stampede is what happened when the server was away.
	Stampede *recovery `json:"stampede,omitempty"`
}

// latency is how long answers took.
type latency struct {
	Count  int     `json:"count"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Most   float64 `json:"max_ms"`
	Second float64 `json:"per_second"`
}

// recovery is how long after the new server's start the agents were back: had
// a heartbeat answered by it.
type recovery struct {
	AwaySeconds  float64 `json:"away_seconds"`
	StartSeconds float64 `json:"start_seconds"` // until the server answered
	Half         float64 `json:"half_seconds"`
	Most         float64 `json:"99_percent_seconds"`
	All          float64 `json:"all_seconds"`
	// Calm is when the heartbeats answered within a second had a p99 of at most
	// half a second, and all agents were back; after the new server's start.
	Calm       float64 `json:"calm_seconds"`
	PeakMiB    float64 `json:"server_peak_mib"`
	Heartbeats latency `json:"heartbeats"` // of the minute after its start
}

func latencyOf(list []time.Duration, span time.Duration) latency {
	if len(list) == 0 {
		return latency{}
	}
	slices.Sort(list)
	at := func(q float64) float64 {
		return list[min(int(q*float64(len(list))), len(list)-1)].Seconds() * 1000
	}
	return latency{Count: len(list), P50: at(0.5), P99: at(0.99), Most: at(1), Second: float64(len(list)) / span.Seconds()}
}

func (r result) print() {
	fmt.Printf(`
agents          %d of %d studies, started in %.0f s
heartbeats      %s
reports         %s
no answer       %d; leases called lost %d; trials taken away %d
server          %.2f cores, at most %.0f MiB
`, r.Agents, r.Studies, r.StartSeconds, r.Heartbeats, r.Reports, r.Failed, r.Refused, r.FalseLost, r.CPU, r.PeakMiB)
	if s := r.Stampede; s != nil {
		fmt.Printf(`after %.0f s without a server, which then took %.1f s to start
  back          half of the agents after %.1f s, 99%% after %.1f s, all after %.1f s, calm after %.1f s
  heartbeats    %s
  server        at most %.0f MiB
`, s.AwaySeconds, s.StartSeconds, s.Half, s.Most, s.All, s.Calm, s.Heartbeats, s.PeakMiB)
	}
}

func (l latency) String() string {
	return fmt.Sprintf("%.0f/s, p50 %.1f ms, p99 %.1f ms, at most %.0f ms", l.Second, l.P50, l.P99, l.Most)
}

// site is the server.
type site struct {
	options      options
	binary, data string
	listen       string
	token        string
	server       *launch.Server
}

// serve starts a server, always on the same port.
func (s *site) serve() error {
	if s.listen == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.listen = listener.Addr().String()
		if err := listener.Close(); err != nil {
			return err
		}
	}
	server, err := launch.Serve(s.binary, s.data, "--listen", s.listen,
		"--lease-seconds", fmt.Sprint(s.options.lease), "--heartbeat-seconds", fmt.Sprint(s.options.heartbeat))
	if err != nil {
		return err
	}
	s.server = server
	if server.Token != "" {
		s.token = server.Token
	}
	return nil
}

// measure lets the agents work and notes what they and the server take.
func (s *site) measure(ctx context.Context, c *crew, found *result) error {
	before, err := cpuSeconds(s.server.PID())
	if err != nil {
		return err
	}
	failed, began := c.failed.Load(), time.Now()
	c.heartbeats.gather(true)
	c.reports.gather(true)
	if !wait(ctx, s.options.seconds) {
		return ctx.Err()
	}
	span := time.Since(began)
	found.Seconds = span.Seconds()
	found.Heartbeats, found.Reports = latencyOf(c.heartbeats.gather(false), span), latencyOf(c.reports.gather(false), span)
	found.Failed = c.failed.Load() - failed
	after, err := cpuSeconds(s.server.PID())
	if err != nil {
		return err
	}
	found.CPU = (after - before) / span.Seconds()
	found.PeakMiB, err = peakMiB(s.server.PID())
	return err
}

// stampede kills the server, and starts another one while all agents knock.
func (s *site) stampede(ctx context.Context, c *crew, found *result) error {
	s.server.Kill()
	if !wait(ctx, s.options.away) {
		return ctx.Err()
	}
	r := &recovery{AwaySeconds: s.options.away.Seconds()}
	began := time.Now()
	if err := s.serve(); err != nil {
		return err
	}
	r.StartSeconds = time.Since(began).Seconds()
	c.heartbeats.gather(true)
	var all []time.Duration
	for r.Calm == 0 && time.Since(began) < 5*time.Minute {
		if !wait(ctx, time.Second) {
			return ctx.Err()
		}
		back, passed := c.back(began), time.Since(began).Seconds()
		last := c.heartbeats.gather(true)
		all = append(all, last...)
		for _, mark := range []struct {
			share float64
			at    *float64
		}{{0.5, &r.Half}, {0.99, &r.Most}, {1, &r.All}} {
			if *mark.at == 0 && float64(back) >= mark.share*float64(len(c.agents)) {
				*mark.at = passed
			}
		}
		if r.All > 0 && latencyOf(last, time.Second).P99 <= 500 {
			r.Calm = passed
		}
	}
	r.Heartbeats = latencyOf(all, time.Since(began))
	c.heartbeats.gather(false)
	var err error
	r.PeakMiB, err = peakMiB(s.server.PID())
	found.Stampede = r
	if err == nil && r.Calm == 0 {
		err = fmt.Errorf("%d of %d agents were back 5 minutes after the server", c.back(began), len(c.agents))
	}
	return err
}

// cpuSeconds is the processor time that a process has used.
func cpuSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // a name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	sum := 0.0
	for _, field := range fields[11:13] { // utime and stime, in hundredths
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		sum += ticks / 100
	}
	return sum, nil
}

// peakMiB is the largest resident size that a process has had.
func peakMiB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/%d/status does not tell VmHWM", pid)
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
}
