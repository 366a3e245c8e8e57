package term

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/format"
)

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
	// Do asks the server to take it away.
	Do func(*rest.Client, context.Context, string) error
	// Done is the key of the answer in JSON, and Said the answer for people: a format
	// with the argument.
	Done, Said string
}

// Command is the one for cobra.
func (r Removal) Command(flags *Flags) *cobra.Command {
	return &cobra.Command{
		Use: r.Use, Short: r.Short, Long: r.Long, Example: r.Example, Args: Arguments(1, r.What),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if err := r.Do(client, ctx, args[0]); err != nil {
				return err
			}
			return SayAnswer(out, flags.JSON, map[string]string{r.Done: args[0]}, r.Said+"\n", format.Plain(args[0]))
		}),
	}
}
