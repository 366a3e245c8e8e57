package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/format"
)

// WatchEvery is how often progress is asked for, and shown on a terminal.
const WatchEvery = time.Second

// Listing is what a listing command shows at one moment.
type Listing struct {
	// Print writes it for people, whole.
	Print func(io.Writer) error
	// Over says that nothing in it will change any more.
	Over bool
}

// AddWatchFlag lets a listing command show its listing again and again.
func AddWatchFlag(command *cobra.Command, on *bool) {
	command.Flags().BoolVarP(on, "watch", "w", false, "keep showing it, redrawn in place on a terminal")
}

// ErrWatched is why a listing is not watched: by a program.
var ErrWatched = errors.New("--watch redraws a terminal, and --json and pipes are for programs: leave it out; programs follow GET /api/v1/studies/{study}/events (docs/protocol.md)")

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
	screen, ok := terminalOf(out)
	if !ok {
		return Misuse("%w", ErrWatched)
	}
	show := &frame{out: out, size: func() (int, int) { return screen.columns(), screen.lines() }}
	return keepListing(ctx, show.show, WatchEvery, look)
}

// Answer is what a command shows of an answer of the server.
type Answer[T any] struct {
	// JSON and Watch are the command's flags of these names.
	JSON, Watch bool
	// Ask asks the server.
	Ask func(context.Context, *rest.Client) (T, error)
	// Print writes the answer for people, whole.
	Print func(io.Writer, T) error
}

// Show prints the answer as JSON, or as a listing that may be watched.
func (s Answer[T]) Show(command *cobra.Command, server *Connection) error {
	if s.Watch && s.JSON {
		return Misuse("%w", ErrWatched)
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
		return Listing{Print: func(out io.Writer) error { return s.Print(out, answer) }}, err
	})
}

func keepListing(ctx context.Context, show func(Listing) error, every time.Duration, look func(context.Context) (Listing, error)) error {
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

// Removal is a command that takes away one thing that the server has, named by its
// argument.
type Removal struct {
	Use, Short, Long, Example string
	// What the argument is, for whoever leaves it out.
	What string
	// Offer completes the argument; nil: nothing does.
	Offer Completion
	// Do asks the server to take it away.
	Do func(*rest.Client, context.Context, string) error
	// Done is the key of the answer in JSON, and Said the answer for people: a format
	// with the argument.
	Done, Said string
}

// Command is the one for cobra.
func (r Removal) Command(flags *Flags) *cobra.Command {
	return &cobra.Command{
		Use: r.Use, Short: r.Short, Long: r.Long, Example: r.Example, Args: Arguments(1, r.What), ValidArgsFunction: r.Offer,
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if err := r.Do(client, ctx, args[0]); err != nil {
				return err
			}
			return SayAnswer(out, flags.JSON, map[string]string{r.Done: args[0]}, r.Said+"\n", format.Plain(args[0]))
		}),
	}
}
