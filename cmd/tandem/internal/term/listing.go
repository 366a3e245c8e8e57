package term

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

// WatchEvery is how often progress is asked for, and shown on a terminal.
const WatchEvery = time.Second

// Listing is what a listing command shows at one moment.
type Listing struct {
	// Print writes it for people, whole.
	Print func(io.Writer) error
	// Items are what it lists, for where it cannot be redrawn.
	Items []Item
	// Over says that nothing in it will change any more.
	Over bool
}

// Item is one of the things listed: a study, a trial, a worker.
type Item struct {
	// Key tells it from the others; Text is a line about it, without anything
	// that changes by the clock alone.
	Key, Text string
}

// AddWatchFlag lets a listing command show its listing again and again.
func AddWatchFlag(command *cobra.Command, on *bool) {
	command.Flags().BoolVarP(on, "watch", "w", false, "keep showing it: redrawn in place on a terminal, a line for each change in a pipe")
}

// ErrWatchedJSON is why a listing is not watched as JSON.
var ErrWatchedJSON = errors.New("--watch shows a listing to people, and --json is for programs: leave one of them out; programs follow GET /api/v1/studies/{study}/events (docs/protocol.md)")

// ShowListing prints a listing once, or keeps showing it until it is over or somebody
// interrupts. Watching says no more than the listing alone would.
func ShowListing(ctx context.Context, out io.Writer, watching bool, look func(context.Context) (Listing, error)) error {
	if !watching {
		seen, err := look(ctx)
		if err != nil {
			return err
		}
		return seen.Print(out)
	}
	return keepListing(ctx, out, WatchEvery, look)
}

// Answer is what a command shows of an answer of the server.
type Answer[T any] struct {
	// JSON and Watch are the command's flags of these names.
	JSON, Watch bool
	// Ask asks the server.
	Ask func(context.Context, *rest.Client) (T, error)
	// List is the answer as a listing.
	List func(T) Listing
}

// Show prints the answer as JSON, or as a listing that may be watched.
func (s Answer[T]) Show(command *cobra.Command, server *Connection) error {
	if s.Watch && s.JSON {
		return Misuse("%w", ErrWatchedJSON)
	}
	client, err := server.Open()
	if err != nil {
		return err
	}
	if s.JSON {
		answer, err := s.Ask(command.Context(), client)
		if err != nil {
			return err
		}
		return WriteJSON(command.OutOrStdout(), answer)
	}
	return ShowListing(command.Context(), command.OutOrStdout(), s.Watch, func(ctx context.Context) (Listing, error) {
		answer, err := s.Ask(ctx, client)
		return s.List(answer), err
	})
}

func keepListing(ctx context.Context, out io.Writer, every time.Duration, look func(context.Context) (Listing, error)) error {
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
		if err != nil || seen.Over {
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

func (f *frame) show(seen Listing) error {
	columns, most := f.size()
	whole := &page{width: columns}
	if err := seen.Print(whole); err != nil {
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
		fmt.Fprintf(&drawing, "%s\x1b[K\n", shorten(line, columns))
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

func (c *changes) show(seen Listing) error {
	now := make(map[string]string, len(seen.Items))
	var lines []string
	for _, one := range seen.Items {
		now[one.Key] = one.Text
		if before, was := c.known[one.Key]; !was || before != one.Text {
			lines = append(lines, one.Text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.known)) {
		if _, still := now[key]; !still {
			lines = append(lines, key+": no longer listed")
		}
	}
	if !c.begun && len(lines) == 0 { // say why there is nothing to watch yet
		c.begun = true
		return seen.Print(c.out)
	}
	c.known, c.begun = now, true
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.out, line); err != nil {
			return err
		}
	}
	return nil
}

// List is a command that lists what the server has of a kind, under its Key in JSON.
type List[T any] struct {
	Short, Example, Key string
	Get                 func(*rest.Client, context.Context) ([]T, error)
	Print               func(io.Writer, []T) error
}

// Command is the one for cobra.
func (l List[T]) Command(flags *Flags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: l.Short, Example: l.Example, Args: Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			list, err := l.Get(client, ctx)
			if err != nil {
				return err
			}
			if flags.JSON {
				return WriteJSON(out, map[string]any{l.Key: append([]T{}, list...)})
			}
			return l.Print(out, list)
		}),
	}
}
