package batching

import "math"

// Run is what is simulated, and how much of it.
type Run struct {
	Arrivals Arrivals
	// Requests is how many requests come, 0 for 200,000. Of random arrivals the first tenth is simulated and not counted:
	// a server that starts empty answers faster than later.
	Requests int
	// Seed determines everything that is random.
	Seed uint64
	// Observe, if not nil, is told every batch in the order of dispatch.
	Observe func(Dispatch)
}

// Dispatch is one batch of a simulation.
type Dispatch struct {
	First  int     // the number of its first request, from 0 in order of arrival
	Size   int     // how many requests it has: First, First+1, ...
	Start  float64 // seconds since the beginning
	Finish float64 // seconds; all its requests are answered then
}

const defaultRequests = 200_000

func (r Run) requests() int {
	if r.Requests == 0 {
		return defaultRequests
	}
	return r.Requests
}

// uncounted is how many of the first requests are not counted.
func (r Run) uncounted(requests int) int {
	if _, random := r.Arrivals.(Poisson); random {
		return requests / 10
	}
	return 0
}

// Simulate plays the policy against the arrivals, event by event. Requests are
// never lost: after the last arrival the queue is emptied, and batches that
// wait until they are full go as they are, since nobody else will come. An
// overloaded server is no error: [Result.Overloaded] says so.
func Simulate(server Server, policy Policy, run Run) Result {
	return newPlay(server, run).result(policy)
}

// play is one set of arrivals that policies are played against.
type play struct {
	server    Server
	run       Run
	times     []float64
	uncounted int
	responses []float64 // of the last policy played
}

func newPlay(server Server, run Run) *play {
	times := run.Arrivals.Times(run.requests(), run.Seed)
	return &play{
		server: server, run: run, times: times, uncounted: run.uncounted(len(times)),
		responses: make([]float64, len(times)),
	}
}

// tally is what one policy came to.
type tally struct {
	batches int
	busy    float64 // seconds
	joules  float64
	end     float64 // when the last batch was finished
}

// dispatch plays the policy: requests are served in order of arrival, so the
// next batch is all there is to decide at any time.
func (p *play) dispatch(policy Policy) tally {
	draw := service{curve: p.server.Curve, random: stream(p.run.Seed, serviceStream)}
	var sum tally
	for first := 0; first < len(p.times); {
		start := max(sum.end, p.ready(policy, first))
		last := first + 1
		for last < len(p.times) && last-first < policy.MaxBatch && p.times[last] <= start {
			last++
		}
		size := last - first
		seconds := draw.seconds(size)
		finish := start + seconds
		for i := first; i < last; i++ {
			p.responses[i] = finish - p.times[i]
		}
		sum.batches++
		sum.busy += seconds
		sum.end = finish
		if p.server.Curve.HasJoules() { // longer than usual is more work at the same power
			point := p.server.Curve.At(size)
			sum.joules += point.Joules * seconds / point.Seconds
		}
		if p.run.Observe != nil {
			p.run.Observe(Dispatch{First: first, Size: size, Start: start, Finish: finish})
		}
		first = last
	}
	return sum
}

// ready is when the batch that begins with the request may go, if the server is
// free.
func (p *play) ready(policy Policy, first int) float64 {
	full := math.Inf(1)
	if last := first + policy.MaxBatch - 1; last < len(p.times) {
		full = p.times[last]
	}
	if policy.UntilFull {
		return min(full, p.times[len(p.times)-1])
	}
	return min(full, p.times[first]+policy.WaitSeconds)
}
