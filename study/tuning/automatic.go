package tuning

import (
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// automatic reports whether the server chooses what is tuned.
func (s Study) automatic() bool { return s.Definition.System.Word == definition.Automatic }

// threads are the numbers of threads that automatic tuning tries there: powers of two
// up to the cores that a trial may keep busy, or what is given; nil for nothing.
func (s Study) threads(here allocator.Site) []space.Value {
	if given, _ := s.given(here); given > 0 {
		return []space.Value{space.Int(int64(given))}
	}
	if most := s.most(here); most > 1 {
		return system.UpTo(most)
	}
	return nil
}

// most is how many cores a trial may keep busy there.
func (s Study) most(here allocator.Site) int {
	most := here.Room.Machine
	if !here.Room.Elastic {
		most = here.Room.Share()
	}
	if asked := s.Definition.Asked().Cores; asked > 0 {
		most = min(most, asked)
	}
	return most
}

// loaders are the numbers of loader processes that automatic tuning tries there: what the
// script takes by itself, which is the default, none, and powers of two up to the cores,
// which the trial's processes divide.
func (s Study) loaders(here allocator.Site, own space.Value) []space.Value {
	values := []space.Value{own}
	for _, value := range append([]space.Value{space.Int(0)}, system.UpTo(s.most(here)/max(1, s.Definition.Processes))...) {
		if value != own {
			values = append(values, value)
		}
	}
	return values
}

// reads is what the script takes by itself of the knobs that it asks for, by the
// configuration of an epoch. What it was given it did not choose: then earlier runs tell.
func (s Study) reads(known *groundtruth.Machine, run groundtruth.Run, t trial.Trial, inForce system.Configuration) system.Configuration {
	value, read := inForce[system.LoaderWorkers]
	if !read || !s.automatic() {
		return nil
	}
	if _, given := t.Setting.Configuration[system.LoaderWorkers]; given {
		return known.Reads(run)
	}
	return system.Configuration{system.LoaderWorkers: value}
}

// given is the number of threads that a trial has there where automatic tuning leaves it
// alone, and why; else 0.
func (s Study) given(here allocator.Site) (threads int, why string) {
	if !s.automatic() {
		return 0, ""
	}
	if here.Threads > 0 {
		return here.Threads, "the worker's environment sets the threads, so they are not tuned"
	}
	asked := s.Definition.Asked()
	if gpus, _ := s.Definition.GPUsEach(); here.Room.MachineGPUs > 0 && gpus == 0 && asked.GPUs == nil {
		most := here.Room.Machine
		if asked.Cores > 0 {
			most = min(most, asked.Cores)
		}
		return most, "the worker has GPUs and resources.gpus is missing, so a trial has the whole machine"
	}
	return 0, ""
}
