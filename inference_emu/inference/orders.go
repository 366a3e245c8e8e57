package inference

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
)

const (
	// lookAgain is how often it is looked whether what a deployment stands on is old.
	lookAgain = time.Hour
	// idleTerm is for how long a device with nothing to measure is not looked at again, unless
	// something changes that is told here: which trial is recommended is not.
	idleTerm = 10 * time.Second
	// mostSettled bounds the questions of which nothing is left to measure.
	mostSettled = 1 << 16
)

// idle is that there was nothing to measure, after so many changes.
type idle struct {
	changes int
	until   time.Time
}

// order is what a board measures.
type order struct {
	board string
	until time.Time
}

// settled is a question that no measurement answers better; again: whether those that the
// recommended deployment stands on still hold. Providers are those of the board.
type settled struct {
	key, device, section, providers string
	again                           bool
}

// orderFor is the next thing to measure on such a device; nil if there is nothing. Where
// nothing new is wanted, what recommended deployments stand on is measured again: once it is
// old, or the device changed.
func (s *Service) orderFor(ctx context.Context, ask emu.BoardAsk) (*emu.BoardOrder, error) {
	now := s.options.Now()
	s.mutex.Lock()
	known, changes := s.idle[ask.Device], s.changes
	s.mutex.Unlock()
	if known.changes == changes && now.Before(known.until) {
		return nil, nil
	}
	order, err := s.look(ctx, ask)
	if err != nil || order != nil {
		return order, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for at := range s.orders {
		if at.machine == ask.Device {
			return nil, nil // who has it may ask for it again
		}
	}
	if len(s.idle) >= mostBoards {
		clear(s.idle)
	}
	s.idle[ask.Device] = idle{changes, now.Add(idleTerm)}
	return nil, nil
}

// look looks at all that is wanted of the device.
func (s *Service) look(ctx context.Context, ask emu.BoardAsk) (*emu.BoardOrder, error) {
	more, err := s.also(ctx, ask.Device)
	if err != nil {
		return nil, err
	}
	wants := append(s.options.Wanted(ask.Device), more...)
	if order, err := s.firstOf(ctx, ask, wants, false); err != nil || order != nil {
		return order, err
	}
	deployed := make(map[string][]string)
	for _, led := range s.options.Leaders() {
		deployed[led.Study.ID] = WantedBy(led.Study, led.Trials).Keys
	}
	for i := range wants {
		// Those of all its trials count for its budget.
		wants[i].Recommended = deployed[wants[i].Study]
	}
	return s.firstOf(ctx, ask, wants, true)
}

// firstOf is the first order of what is wanted; again: of what is deployed, for the second time.
func (s *Service) firstOf(ctx context.Context, ask emu.BoardAsk, wants []Wanted, again bool) (*emu.BoardOrder, error) {
	for _, want := range wants {
		settings, err := want.Definition.Inference.Settings()
		if err != nil || want.Settled && !again {
			continue // a later version's: its own server measures for it
		}
		if spent, err := s.Unmeasured(ctx, want); err != nil {
			return nil, err
		} else if spent != "" {
			continue
		}
		section, err := json.Marshal(want.Definition.Inference)
		if err != nil {
			return nil, err
		}
		keys := want.Keys
		if again {
			keys = want.Recommended
		}
		for _, key := range keys {
			asked := settled{key, ask.Device, string(section), strings.Join(ask.Site.Providers, " "), again}
			if !s.take(ask.Board, asked) {
				continue
			}
			order, err := s.toMeasure(ctx, *want.Definition.Inference, asked, settings)
			if err == nil && order == nil && !again {
				err = s.refresh(ctx, ask.Device, key, "", "")
			}
			if err != nil || order == nil {
				s.release(ask.Board, asked, err == nil)
			}
			if err != nil || order != nil {
				return order, err
			}
		}
	}
	return nil, nil
}

// take makes the architecture the board's to measure, unless all is known of it or another
// board is at it.
func (s *Service) take(name string, asked settled) bool {
	now := s.options.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := claim{asked.key, asked.device}
	held, ok := s.orders[at]
	until, known := s.settled[asked]
	if known && (until.IsZero() || now.Before(until)) || s.failures[at] >= mostFailures || ok && held.board != name && now.Before(held.until) {
		return false
	}
	maps.DeleteFunc(s.orders, func(_ claim, one order) bool { return one.board == name || now.After(one.until) })
	s.orders[at] = order{name, now.Add(orderTerm)}
	s.change(name, func(one *emu.Board) { one.Measuring = asked.key })
	return true
}

// release lets the architecture go, with what was found of it.
func (s *Service) release(name string, asked settled, all bool) {
	until := time.Time{}
	if asked.again {
		until = s.options.Now().Add(lookAgain)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.orders, claim{asked.key, asked.device})
	s.change(name, func(one *emu.Board) { one.Measuring = "" })
	if all {
		if len(s.settled) >= mostSettled {
			clear(s.settled) // each is looked at once more
		}
		s.settled[asked] = until
	}
}

// toMeasure is what a board shall measure to answer; nil for nothing.
func (s *Service) toMeasure(ctx context.Context, section definition.Inference, asked settled, settings deployment.Settings) (*emu.BoardOrder, error) {
	a, target, others, err := s.lookAt(ctx, section, looked{key: asked.key, device: asked.device, fresh: !asked.again})
	if err != nil || a.Skeleton == nil {
		return nil, err
	}
	s.mutex.Lock()
	target.Providers = slices.DeleteFunc(strings.Fields(asked.providers), func(name string) bool { return s.failures[claim{asked.key + name, asked.device}] >= mostFailures })
	s.mutex.Unlock()
	if err := s.searching.Enter(ctx); err != nil {
		return nil, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	var cells []deployment.Cell
	if asked.again {
		by := deployment.Checking{Now: s.options.Now()}
		for _, one := range s.boardsOf(asked.device) {
			if one.Site.Software != "" {
				by.Software = append(by.Software, one.Site.Software)
			}
		}
		cells, err = deployment.Again(a, target, others, settings, by)
	} else {
		cells, err = deployment.Next(a, target, others, settings, orderCells)
	}
	s.searching.Leave()
	if err != nil || len(cells) == 0 {
		return nil, err
	}
	order := &emu.BoardOrder{Key: asked.key, Skeleton: a.Skeleton}
	for _, cell := range cells[:min(len(cells), orderCells)] {
		if cell.Provider == cells[0].Provider {
			order.Cells = append(order.Cells, emu.Cell{Batch: cell.Batch, Threads: cell.Threads, Provider: cell.Provider})
		}
	}
	return order, nil
}
