// Package workload answers: what is the work by which machines are compared?
//
// It has the two families of probing tasks of HEATS (I. Rocha's thesis,
// Neuchâtel 2021, section 3.3.1), k-means clustering and matrix multiplication,
// each once in a size that stays in the caches and is bound by the cores, and
// once in one that has to come from memory (the thesis has the former only). Its
// one invariant: a task is the same arithmetic on the same data wherever it runs
// and on however many threads, so that times and energies of two machines differ
// by nothing but the machines. It measures nothing itself.
package workload

import "sync"

// Version is raised with every change of a task: what older ones took cannot be
// compared any more.
const Version = 1

// Task is work that is the same everywhere.
type Task struct {
	// Name ends with what bounds it: "compute" or "memory".
	Name string
	// Bytes is the memory that it needs.
	Bytes int64
	// Prepare makes its data and returns the work, which can be done any number
	// of times, by so many threads. The work's answer is the same for any number
	// of threads but for rounding.
	Prepare func() func(threads int) float64
}

// Tasks are the probing tasks. Each takes a core between a fortieth and a
// fifth of a second.
func Tasks() []Task {
	return []Task{
		{"k-means-compute", cachedPoints.bytes(), func() func(int) float64 { return lloyd(cachedPoints.make(), 32, 12) }},
		{"k-means-memory", scatteredPoints.bytes(), func() func(int) float64 { return sampled(scatteredPoints.make(), 2, 1<<19) }},
		{"matrix-multiplication-compute", 2 * 320 * 320 * bytesOfNumber, func() func(int) float64 { return blocked(320, 3) }},
		{"matrix-multiplication-memory", 2048 * 8192 * bytesOfNumber, func() func(int) float64 { return byColumns(2, 2048, 8192) }},
	}
}

// bytesOfNumber is the size of a float32, in which all of it is done.
const bytesOfNumber = 4

// generator makes numbers that look random and are the same everywhere
// (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
type generator struct{ state uint64 }

func (g *generator) next() uint64 {
	g.state += 0x9e3779b97f4a7c15
	z := g.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// number is from 0 to below 1.
func (g *generator) number() float32 { return float32(g.next()>>40) / (1 << 24) }

func numbers(count int, seed uint64) []float32 {
	g := generator{seed}
	list := make([]float32, count)
	for i := range list {
		list[i] = g.number()
	}
	return list
}

// split does the part of each thread, from its first up to its last item of so
// many, at once.
func split(items, threads int, part func(thread, first, end int)) {
	threads = max(1, min(threads, items))
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() { part(thread, thread*items/threads, (thread+1)*items/threads) })
	}
	all.Wait()
}
