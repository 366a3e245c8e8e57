package deflate

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// Policy is how the engine treats a job of higher priority that comes while one
// of lower runs.
type Policy int

// The policies.
const (
	// NonPreemptive lets the running job end.
	NonPreemptive Policy = iota
	// Evicting ends it and begins it again from its start later, as engines
	// without checkpoints do: the baseline of section 4.4.
	Evicting
)

// Outcome is what jobs of a class met with.
type Outcome struct {
	Jobs int
	// Mean and Tail (of 95%) are response times in seconds.
	Mean, Tail float64
	// Wasted is the share of the engine's busy time, of all classes, that was
	// spent on runs that were evicted.
	Wasted float64
}

// sample draws what one job takes.
func (p Phases) sample(random *rand.Rand) float64 {
	phase, draw := -1, random.Float64()
	for i, probability := range p.Begin {
		if draw -= probability; draw < 0 {
			phase = i
			break
		}
	}
	seconds := 0.0
	for phase >= 0 {
		out := p.out(phase)
		seconds += random.ExpFloat64() / out
		draw = random.Float64() * out
		next := -1
		if draw -= p.Done[phase]; draw >= 0 {
			for _, step := range p.Next[phase] {
				next = step.To // the last one where rounding leaves something over
				if draw -= step.Rate; draw < 0 {
					break
				}
			}
		}
		phase = next
	}
	return seconds
}

type waitingJob struct {
	class   int
	arrived float64
	needs   float64
	order   int
}

// line is the jobs that wait: the highest class first, then the oldest.
type line []waitingJob

func (l line) Len() int { return len(l) }
func (l line) Less(a, b int) bool {
	if l[a].class != l[b].class {
		return l[a].class > l[b].class
	}
	return l[a].order < l[b].order
}
func (l line) Swap(a, b int) { l[a], l[b] = l[b], l[a] }

// Push and Pop are those of container/heap.
func (l *line) Push(x any) { *l = append(*l, x.(waitingJob)) }

// Pop takes the last.
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// Play simulates so many jobs after a tenth as many to warm up, event by event.
func Play(classes []Class, policy Policy, jobs int, seed uint64) []Outcome {
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // what is drawn has to repeat
	next := make([]float64, len(classes))
	for k, class := range classes {
		next[k] = random.ExpFloat64() / class.Rate
	}
	var waiting line
	var running *waitingJob
	began, ends := 0.0, math.Inf(1)
	responses := make([][]float64, len(classes))
	busy, wasted := 0.0, 0.0
	warm := jobs / 10
	start := func(at float64) {
		if running != nil || waiting.Len() == 0 {
			return
		}
		job := heap.Pop(&waiting).(waitingJob)
		running, began, ends = &job, at, at+job.needs
	}
	for arrived, done := 0, 0; done < jobs+warm; {
		class := 0
		for k := range next {
			if next[k] < next[class] {
				class = k
			}
		}
		if ends <= next[class] {
			if done >= warm {
				responses[running.class] = append(responses[running.class], ends-running.arrived)
			}
			busy += ends - began
			done++
			at := ends
			running, ends = nil, math.Inf(1)
			start(at)
			continue
		}
		at := next[class]
		next[class] = at + random.ExpFloat64()/classes[class].Rate
		heap.Push(&waiting, waitingJob{class, at, classes[class].Service.sample(random), arrived})
		arrived++
		if policy == Evicting && running != nil && running.class < class {
			busy += at - began
			wasted += at - began
			heap.Push(&waiting, *running)
			running, ends = nil, math.Inf(1)
		}
		start(at)
	}
	return outcomesOf(responses, wasted/max(busy, 1e-300))
}

// outcomesOf sums up the responses of each class.
func outcomesOf(responses [][]float64, wasted float64) []Outcome {
	outcomes := make([]Outcome, len(responses))
	for k, list := range responses {
		slices.Sort(list)
		o := Outcome{Jobs: len(list), Wasted: wasted}
		for _, one := range list {
			o.Mean += one / float64(len(list))
		}
		if len(list) > 0 {
			o.Tail = list[min(len(list)-1, int(tail*float64(len(list))))]
		}
		outcomes[k] = o
	}
	return outcomes
}
