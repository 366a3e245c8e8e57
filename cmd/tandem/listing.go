package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
)

// watchEvery is how often progress is asked for, and shown on a terminal.
const watchEvery = time.Second

// listing is what a listing command shows at one moment.
type listing struct {
	// print writes it for people, whole.
	print func(io.Writer) error
	// things are what it lists, for where it cannot be redrawn.
	things []thing
	// over says that nothing in it will change any more.
	over bool
}

// thing is one of the things listed: a study, a trial, a worker.
type thing struct {
	// key tells it from the others; said is a line about it, without anything
	// that changes by the clock alone.
	key, said string
}

// watchFlag lets a listing command show its listing again and again.
func watchFlag(command *cobra.Command, on *bool) {
	command.Flags().BoolVarP(on, "watch", "w", false, "keep showing it: redrawn in place on a terminal, a line for each change in a pipe")
}

// errWatchedJSON is why a listing is not watched as JSON.
var errWatchedJSON = errors.New("--watch shows a listing to people, and --json is for programs: leave one of them out; programs follow GET /api/v1/studies/{study}/events (docs/protocol.md)")

// list prints a listing once, or keeps showing it until it is over or somebody
// interrupts. Watching says no more than the listing alone would.
func list(ctx context.Context, out io.Writer, watching bool, look func(context.Context) (listing, error)) error {
	if !watching {
		seen, err := look(ctx)
		if err != nil {
			return err
		}
		return seen.print(out)
	}
	return keepListing(ctx, out, watchEvery, look)
}

// shown is what a command shows of an answer of the server.
type shown[T any] struct {
	asJSON, watching bool
	ask              func(context.Context, *rest.Client) (T, error)
	listing          func(T) listing
}

// show prints the answer as JSON, or as a listing that may be watched.
func (s shown[T]) show(command *cobra.Command, server *connection) error {
	if s.watching && s.asJSON {
		return misuse("%w", errWatchedJSON)
	}
	client, err := server.open()
	if err != nil {
		return err
	}
	if s.asJSON {
		answer, err := s.ask(command.Context(), client)
		if err != nil {
			return err
		}
		return writeJSON(command.OutOrStdout(), answer)
	}
	return list(command.Context(), command.OutOrStdout(), s.watching, func(ctx context.Context) (listing, error) {
		answer, err := s.ask(ctx, client)
		return s.listing(answer), err
	})
}

func keepListing(ctx context.Context, out io.Writer, every time.Duration, look func(context.Context) (listing, error)) error {
	show := (&changes{out: out}).show
	if screen, ok := terminalOf(out); ok {
		show = (&frame{out: out, size: func() (int, int) { return screen.columns(), screen.lines() }}).show
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		seen, err := look(ctx)
		if err == nil {
			err = show(seen)
		}
		if err != nil || seen.over {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// frame redraws a listing in its place.
type frame struct {
	out   io.Writer
	size  func() (columns, lines int)
	drawn int // lines of the last drawing
}

func (f *frame) show(seen listing) error {
	columns, most := f.size()
	whole := &page{width: columns}
	if err := seen.print(whole); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(whole.String(), "\n"), "\n")
	// What has scrolled away cannot be redrawn, and a line that wraps is two.
	if room := max(most-1, 2); len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("and %d more lines; a higher terminal shows them", left))
	}
	var drawing strings.Builder
	if f.drawn > 0 {
		fmt.Fprintf(&drawing, "\x1b[%dF", f.drawn)
	}
	for _, line := range lines {
		fmt.Fprintf(&drawing, "%s\x1b[K\n", shortened(line, columns))
	}
	drawing.WriteString("\x1b[J")
	f.drawn = len(lines)
	_, err := io.WriteString(f.out, drawing.String())
	return err
}

// changes prints a line for each thing that is new, other than before, or gone.
type changes struct {
	out   io.Writer
	known map[string]string
	begun bool
}

func (c *changes) show(seen listing) error {
	now := make(map[string]string, len(seen.things))
	var lines []string
	for _, one := range seen.things {
		now[one.key] = one.said
		if before, was := c.known[one.key]; !was || before != one.said {
			lines = append(lines, one.said)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.known)) {
		if _, still := now[key]; !still {
			lines = append(lines, key+": no longer listed")
		}
	}
	if !c.begun && len(lines) == 0 { // say why there is nothing to watch yet
		c.begun = true
		return seen.print(c.out)
	}
	c.known, c.begun = now, true
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.out, line); err != nil {
			return err
		}
	}
	return nil
}
