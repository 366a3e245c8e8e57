package poolcmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// ReservationCommand is "tandem reservation".
func ReservationCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "reservation",
		Short: "Keep workers or GPUs for a user or a study, from a time to a time",
		Long: `Keep workers or GPUs for a user or a study, from a time to a time. What runs when
a reservation begins goes on to the end of its rung; nothing else begins there.`,
	}, reservationMakeCommand(&flags), reservationListCommand(&flags), reservationRemoveCommand(&flags))
}

func reservationMakeCommand(flags *term.Flags) *cobra.Command {
	var ask protocol.ReservationRequest
	var from, to string
	var last time.Duration
	command := &cobra.Command{
		Use:   "make",
		Short: "Make a reservation",
		Example: `  tandem reservation make --user ada --worker rack-7 --for 8h
  tandem reservation make --study alice:lenet --gpus 4 --from 2026-12-01T08:00:00Z --to 2026-12-02T08:00:00Z`,
		Args: term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			begin, err := reservedTimes(&ask, from, to, last)
			if err != nil {
				return err
			}
			ask.From = begin
			made, err := client.Reserve(ctx, ask)
			if err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, made, "Reservation %s: %s for %s, %s to %s\n%s", made.ID, shownReserved(made), shownBeneficiary(made), term.FormatTime(&made.From, ""), term.FormatTime(&made.To, ""), shownAbsent(made))
		}),
	}
	command.Flags().StringVar(&ask.User, "user", "", "the user it is for")
	command.Flags().StringVar(&ask.Study, "study", "", "or the study it is for, by name or id")
	command.Flags().StringVar(&ask.Worker, "worker", "", "the name of the worker that is kept")
	command.Flags().IntVar(&ask.GPUs, "gpus", 0, "or how many GPUs are kept, of whatever workers")
	command.Flags().StringVar(&from, "from", "", "when it begins, such as 2026-12-01T08:00:00Z (default now)")
	command.Flags().StringVar(&to, "to", "", "when it is over")
	command.Flags().DurationVar(&last, "for", 0, "or how long it lasts, such as 8h")
	return command
}

// reservedTimes reads when the reservation begins, nil for at once, and when it ends.
func reservedTimes(ask *protocol.ReservationRequest, from, to string, last time.Duration) (begin *time.Time, err error) {
	start := time.Now()
	if from != "" {
		if start, err = time.Parse(time.RFC3339, from); err != nil {
			return nil, term.Misuse("--from %q is no time: write it as 2026-12-01T08:00:00Z or 2026-12-01T09:00:00+01:00", from)
		}
		begin = &start
	}
	switch {
	case (to == "") == (last == 0):
		return nil, term.Misuse("give --to, when it is over, or --for, how long it lasts: one of them")
	case last < 0:
		return nil, term.Misuse("--for (%v) must be above 0, such as 8h", last)
	case last > 0:
		ask.To = start.Add(last)
	default:
		if ask.To, err = time.Parse(time.RFC3339, to); err != nil {
			return nil, term.Misuse("--to %q is no time: write it as 2026-12-01T08:00:00Z or 2026-12-01T09:00:00+01:00", to)
		}
	}
	return begin, nil
}

// shownReserved says what is kept.
func shownReserved(one protocol.Reservation) string {
	if one.Worker != "" {
		return "worker " + format.Plain(one.Worker)
	}
	return format.Count(one.GPUs, "GPU")
}

// shownBeneficiary says who it is kept for.
func shownBeneficiary(one protocol.Reservation) string {
	switch {
	case one.User != "":
		return "user " + format.Plain(one.User)
	case one.Study != "":
		return "study " + format.Plain(one.Study)
	}
	return "a study of another user"
}

// shownAbsent says what it names that is not there now, a line for each.
func shownAbsent(one protocol.Reservation) string {
	said := ""
	if one.WorkerAbsent {
		said += fmt.Sprintf("No worker named %s is connected now: nothing is kept until one is ('tandem workers' lists them)\n", format.Plain(one.Worker))
	}
	if one.GPUsAbsent > 0 {
		said += fmt.Sprintf("The connected workers have %s in all: while it holds, nobody else begins a trial with GPUs\n", format.Count(one.GPUs-one.GPUsAbsent, "GPU"))
	}
	if one.UserAbsent {
		said += absentUser(one.User)
	}
	return said
}

func reservationListCommand(flags *term.Flags) *cobra.Command {
	return term.List[protocol.Reservation]{
		Short: "List the reservations that hold or will, by when they begin", Example: `  tandem reservation list`, Key: "reservations",
		Get: (*rest.Client).Reservations, Print: printReservations,
	}.Command(flags)
}

func printReservations(out io.Writer, list []protocol.Reservation) error {
	return term.Rows(out, list, "Nothing is reserved", []string{"ID", "KEPT", "FOR", "FROM", "TO", "STATE"}, func(one protocol.Reservation) []string {
		state := "to come"
		if one.Active {
			state = "holds"
		}
		switch {
		case one.WorkerAbsent:
			state += "; no such worker is connected"
		case one.GPUsAbsent > 0:
			state += "; the connected workers have " + format.Count(one.GPUs-one.GPUsAbsent, "GPU")
		}
		if one.UserAbsent {
			state += "; no token is the user's"
		}
		return []string{one.ID, shownReserved(one), shownBeneficiary(one), term.FormatTime(&one.From, ""), term.FormatTime(&one.To, ""), state}
	})
}

func reservationRemoveCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "remove ID", Short: "End a reservation before its time", Example: `  tandem reservation remove k3vqh8w2mz`,
		What: "the id of a reservation, as 'tandem reservation list' shows it",
		Do:   (*rest.Client).Unreserve, Done: "removed", Said: "Reservation %s is over",
	}.Command(flags)
}
