package study

import (
	"context"
	"sync"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/system"
	"github.com/tandem-tune/tandem/system/advice"
	"github.com/tandem-tune/tandem/trial"
)

// knowledge is the ground truth of one type of machine in memory: what the store
// has of it. Its lock is taken last, and never held across a call of the store.
type knowledge struct {
	mutex  sync.Mutex
	memory *similarity.Memory
	// runs are the records of runs that go on, by ID.
	runs map[string]similarity.Record
	// puts counts what was learned, and starts are answers to what a new trial
	// starts with: they hold until a twentieth of what is known is new.
	puts   int
	starts map[startQuestion]startAnswer
}

// startQuestion is what the start of a study's new trials depends on beside what
// is known.
type startQuestion struct {
	study string
	at    advice.Situation
}

type startAnswer struct {
	setting trial.Setting
	until   int // puts
}

// start is advice.Start, asked again only when enough has been learned since.
func (k *knowledge) start(of startQuestion, settings system.Settings, constants system.Configuration) trial.Setting {
	if known, ok := k.starts[of]; ok && k.puts < known.until {
		return known.setting
	}
	if len(k.starts) >= maxStarts {
		clear(k.starts)
	}
	setting := advice.Start(k.memory, settings, constants, of.at)
	k.starts[of] = startAnswer{setting, k.puts + 1 + k.memory.Len()/20}
	return setting
}

const maxStarts = 1024

// maxRuns bounds the records of runs that are kept at hand; one that is not is
// found in the memory.
const maxRuns = 4096

// knowledge returns what is known of the type of machine.
func (s *Service) knowledge(ctx context.Context, machine string) (*knowledge, error) {
	for {
		s.mutex.Lock()
		known, ok := s.known[machine]
		lessons := s.lessons
		s.mutex.Unlock()
		if ok {
			return known, nil
		}
		if known, err := s.recall(ctx, machine, lessons); known != nil || err != nil {
			return known, err
		}
	}
}

// recall loads what is known of the type of machine, unless something was
// learned or forgotten meanwhile that may be missing in it: then it is nil.
func (s *Service) recall(ctx context.Context, machine string, lessons int) (*knowledge, error) {
	records, err := s.store.Records(ctx, machine)
	if err != nil {
		return nil, err
	}
	loaded := &knowledge{memory: similarity.NewMemory(similarity.Options{}), runs: map[string]similarity.Record{}, starts: map[startQuestion]startAnswer{}}
	for _, record := range records {
		loaded.memory.Put(record)
		loaded.runs[record.ID] = record
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.known[machine]; ok { // somebody else was faster
		return known, nil
	}
	if s.lessons != lessons {
		return nil, nil
	}
	s.known[machine] = loaded
	return loaded, nil
}

// learned takes records that are durable into what is known.
func (s *Service) learned(records []similarity.Record) {
	for _, record := range records {
		s.mutex.Lock()
		known, ok := s.known[record.Machine]
		if !ok {
			s.lessons++
		}
		s.mutex.Unlock()
		if !ok {
			continue // it is loaded when somebody asks
		}
		known.mutex.Lock()
		known.memory.Put(record)
		known.puts++
		if len(known.runs) >= maxRuns {
			clear(known.runs)
			for _, kept := range known.memory.Records() {
				known.runs[kept.ID] = kept
			}
		}
		known.runs[record.ID] = record
		known.mutex.Unlock()
	}
}

// forgot drops what is known of the type of machine, or of all types if it is
// empty, once it is gone from the store.
func (s *Service) forgot(machine string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lessons++
	if machine == "" {
		clear(s.known)
		return
	}
	delete(s.known, machine)
}
