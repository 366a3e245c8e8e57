package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// rounds is how often the precisions of a model are measured, taking turns, so that what
// else the machine does falls on all of them.
const rounds = 5

// variant is the trained model in a precision.
type variant struct {
	file *os.File
	said trial.Precision
	key  string
	runs [][]emu.Run // by round
	// failed says why it is measured no more.
	failed error
}

// TakePrecision takes the trained model in a precision. With the last one it returns when
// the server knows them all; they are measured behind that.
func (e *Emulation) TakePrecision(ctx context.Context, body io.Reader, folder string, said trial.Precision, more bool) error {
	if e.Models == nil {
		return nil // which Take has said
	}
	file, err := receive(body, folder)
	if err != nil {
		return err
	}
	e.mutex.Lock()
	e.variants = slices.DeleteFunc(e.variants, func(one *variant) bool {
		again := one.said.Name == said.Name
		if again {
			one.file.Close()
		}
		return again
	})
	e.variants = append(e.variants, &variant{file: file, said: said})
	if more {
		e.mutex.Unlock()
		return nil
	}
	all := e.variants
	e.variants = nil
	e.mutex.Unlock()
	e.failed(ctx, e.compare(ctx, all))
	return nil
}

// compare tells the server of the precisions, and has them measured where it wants that.
func (e *Emulation) compare(ctx context.Context, all []*variant) error {
	var cells []protocol.InferenceCell
	var keys []string
	for _, one := range all {
		key, wanted, err := e.tell(ctx, one.file, &one.said)
		if one.failed = err; err != nil {
			e.failed(ctx, fmt.Errorf("in %s: %w", one.said.Name, err))
			continue
		}
		one.key, keys = key, append(keys, key)
		for _, cell := range wanted {
			if !slices.Contains(cells, cell) {
				cells = append(cells, cell)
			}
		}
	}
	if len(cells) == 0 {
		return closed(all)
	}
	if !e.Bench.run(strings.Join(keys, " "), func() {
		e.failed(e.Leaving, errors.Join(e.takeTurns(e.Leaving, all, cells), closed(all)))
	}) {
		e.Note("the precisions of this trial's model are not measured: they wait for that already, or %d others do", mostWaiting)
		return closed(all)
	}
	return nil
}

func closed(all []*variant) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.file.Close())
	}
	return errors.Join(errs...)
}

// takeTurns measures all variants in each round, and tells the server what that took. One
// that fails is measured no more.
func (e *Emulation) takeTurns(ctx context.Context, all []*variant, cells []protocol.InferenceCell) (failed error) {
	for range rounds {
		for _, one := range all {
			if one.failed != nil {
				continue
			}
			var runs []emu.Run
			runs, one.failed = e.run(ctx, one.file, cells, 1.0/rounds)
			one.runs = append(one.runs, runs)
		}
	}
	for _, one := range all {
		if one.key == "" {
			continue // which was said
		}
		failed = errors.Join(failed, one.failed, e.inferred(ctx, one.key, together(one.runs), one.failed))
	}
	return failed
}

// together is each setting over the rounds: the median of the medians, between the least
// and the most of them, which is how far measurements of the same vary.
func together(rounds [][]emu.Run) (list []emu.Run) {
	if len(rounds) == 0 {
		return nil
	}
	for _, first := range rounds[0] {
		var same []emu.Run
		for _, round := range rounds {
			for _, run := range round {
				if run.Batch == first.Batch && run.Threads == first.Threads && run.Provider == first.Provider {
					same = append(same, run)
				}
			}
		}
		slices.SortFunc(same, func(a, b emu.Run) int { return cmp.Compare(a.Joules, b.Joules) })
		joules := same[len(same)/2].Joules
		slices.SortFunc(same, func(a, b emu.Run) int { return cmp.Compare(a.Seconds, b.Seconds) })
		middle := same[len(same)/2]
		middle.Joules = joules
		if len(same) > 1 {
			middle.Low, middle.High = same[0].Seconds, same[len(same)-1].Seconds
		}
		middle.Repetitions = 0
		for _, one := range same {
			middle.Repetitions += one.Repetitions
		}
		list = append(list, middle)
	}
	return list
}
