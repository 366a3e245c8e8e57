package scheduler

import (
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// Field is the workers that wait, in classes of those that no study tells apart: what
// is asked of thousands of workers for each of a thousand studies is asked of a few.
type Field struct {
	Stands []allocator.Stand
	of     []int // the class of each
	First  []int // the first of each class
	// answers are those that were given of the classes.
	answers map[string]*Answer
}

// Answer says of each worker whether it may.
type Answer struct {
	May []bool // not to be changed: studies share it
	// First is the first that may, -1 for none, and Trials how many those ask for
	// together that may.
	First, Trials int
}

// FieldOf sorts the workers into classes. A worker without a kind is a class of its own.
func FieldOf(stands []allocator.Stand) *Field {
	type class struct {
		kind   string
		caller access.Caller
	}
	f := &Field{Stands: stands, of: make([]int, len(stands)), answers: map[string]*Answer{}}
	known := map[class]int{}
	for i := range stands {
		key := class{stands[i].Kind, stands[i].Caller}
		at, some := known[key]
		if !some || key.kind == "" {
			at = len(f.First)
			known[key] = at
			f.First = append(f.First, i)
		}
		f.of[i] = at
	}
	return f
}

// Answer is what holds of the workers where this holds of their classes.
func (f *Field) Answer(classes []byte) *Answer {
	if known, some := f.answers[string(classes)]; some {
		return known
	}
	made := &Answer{May: make([]bool, len(f.Stands)), First: -1}
	for i, class := range f.of {
		if made.May[i] = classes[class] == 1; made.May[i] {
			made.Trials += f.Stands[i].Trials
			if made.First < 0 {
				made.First = i
			}
		}
	}
	f.answers[string(classes)] = made
	return made
}

// Types are the types of machine there are, each once, in their order.
func Types(stands []allocator.Stand) []string {
	types, last := map[string]bool{}, ""
	for i := range stands {
		if machine := stands[i].Machine; i == 0 || machine != last {
			types[machine], last = true, machine
		}
	}
	return slices.Sorted(maps.Keys(types))
}
