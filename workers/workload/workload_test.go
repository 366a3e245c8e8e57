package workload

import (
	"math"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-4*math.Abs(want) }

// naive clusters the points as the textbook says, in float64.
func naive(p points, clusters, rounds int) float64 {
	centers := make([][]float64, clusters)
	for c := range centers {
		for _, x := range p.at(c) {
			centers[c] = append(centers[c], float64(x))
		}
	}
	mean := 0.0
	for range rounds {
		totals, counts := make([][]float64, clusters), make([]float64, clusters)
		for c := range totals {
			totals[c] = make([]float64, p.dimensions)
		}
		mean = 0
		for i := range p.count {
			nearest, least := 0, math.Inf(1)
			for c, center := range centers {
				distance := 0.0
				for j, x := range p.at(i) {
					distance += (float64(x) - center[j]) * (float64(x) - center[j])
				}
				if distance < least {
					nearest, least = c, distance
				}
			}
			mean += least / float64(p.count)
			counts[nearest]++
			for j, x := range p.at(i) {
				totals[nearest][j] += float64(x)
			}
		}
		for c := range centers {
			for j := range centers[c] {
				if counts[c] > 0 {
					centers[c][j] = totals[c][j] / counts[c]
				}
			}
		}
	}
	return mean
}

func TestLloydIsKMeans(t *testing.T) {
	p := shape{500, 8}.make()
	before := math.Inf(1)
	for _, rounds := range []int{1, 2, 5} {
		want := naive(p, 6, rounds)
		if want >= before {
			t.Fatalf("after %d rounds the distance is %g, before %g: the test compares nothing", rounds, want, before)
		}
		before = want
		for _, threads := range []int{1, 3, 600} {
			if got := lloyd(p, 6, rounds)(threads); !near(got, want) {
				t.Errorf("%d rounds on %d threads: got %g, want %g", rounds, threads, got, want)
			}
		}
	}
}

// The draws reach all points, and are the same ones on any number of threads.
func TestSampledDrawsThePoints(t *testing.T) {
	p := shape{64, 4}.make()
	reached := map[uint64]bool{}
	for i := range 2000 {
		draw := generator{uint64(i)}
		reached[draw.next()%64] = true
	}
	if len(reached) != 64 {
		t.Errorf("2,000 draws reach %d of 64 points", len(reached))
	}
	one, three := sampled(p, 2, 2000)(1), sampled(p, 2, 2000)(3)
	if !near(one, three) {
		t.Errorf("on one thread %g, on three %g", one, three)
	}
	if all := naive(p, 2, 1); math.Abs(one-all) > 0.1*all {
		t.Errorf("the mean distance of the drawn points is %g, of all %g", one, all)
	}
}

func product(left, right []float32, rows, inner, columns int) []float32 {
	result := make([]float32, rows*columns)
	for i := range rows {
		for j := range columns {
			total := 0.0
			for k := range inner {
				total += float64(left[i*inner+k]) * float64(right[k*columns+j])
			}
			result[i*columns+j] = float32(total)
		}
	}
	return result
}

func TestMatricesAreMultiplied(t *testing.T) {
	want := sum(product(numbers(3*40, 4), numbers(40*17, 5), 3, 40, 17))
	for _, threads := range []int{1, 2, 50} {
		if got := byColumns(3, 40, 17)(threads); !near(got, want) {
			t.Errorf("by columns on %d threads: got %g, want %g", threads, got, want)
		}
	}
	const size = 24
	first, second := numbers(size*size, 2), numbers(size*size, 3)
	factor := make([]float32, size*size) // by rows
	for i := range size {
		for j := range size {
			factor[i*size+j] = second[j*size+i] * 2 / size
		}
	}
	left := first
	for range 3 {
		left = product(left, factor, size, size, size)
	}
	for _, threads := range []int{1, 5} {
		work := blocked(size, 3)
		if got := work(threads); !near(got, sum(left)) {
			t.Errorf("in the caches on %d threads: got %g, want %g", threads, got, sum(left))
		}
		if got := work(threads); !near(got, sum(left)) {
			t.Errorf("once more: got %g, want %g: it is not the same work", got, sum(left))
		}
	}
}

// What says that it is bound by memory has to be larger than the caches of most
// machines, and what says that it computes has to fit into one core's.
func TestTasksAreOfTheirSize(t *testing.T) {
	names := map[string]bool{}
	for _, task := range Tasks() {
		if names[task.Name] {
			t.Errorf("there are two tasks %s", task.Name)
		}
		names[task.Name] = true
		if inMemory := task.Name[len(task.Name)-len("memory"):] == "memory"; inMemory != (task.Bytes >= 64<<20) || !inMemory && task.Bytes > 1<<20 {
			t.Errorf("%s needs %d bytes", task.Name, task.Bytes)
		}
	}
	if len(names) != 4 {
		t.Errorf("%d tasks", len(names))
	}
}
