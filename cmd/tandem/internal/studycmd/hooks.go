package studycmd

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/hook"
)

func hooksCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:     "hooks STUDY",
		Short:   "Show what became of telling hooks of a study: the last try and its answer",
		Example: `  tandem study hooks lenet-fashion-mnist`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		list, err := client.StudyHooks(ctx, study)
		if err != nil {
			return err
		}
		if flags.JSON {
			return term.WriteJSON(out, map[string]any{"hooks": list})
		}
		return printDeliveries(out, list)
	})
}

func printDeliveries(out io.Writer, list []hook.HookDelivery) error {
	heading := []string{"HOOK", "TO", "TOLD", "WAITING", "GIVEN UP", "LAST TRIED", "LAST ANSWER"}
	return term.Rows(out, list, "No hook is told of this study", heading, func(one hook.HookDelivery) []string {
		state := format.Plain(one.Answer)
		if one.Failing != nil {
			state += ", failing since " + term.FormatTime(one.Failing, "")
		}
		return []string{one.Name, format.Plain(one.To), strconv.Itoa(one.Told), strconv.Itoa(one.Waiting), strconv.Itoa(one.Dropped), term.FormatTime(one.Tried, "never"), state}
	})
}
