package poolcmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// QuotaCommand is "tandem quota".
func QuotaCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "quota",
		Short: "Bound what users have of the workers, and see what they have",
		Long: `Bound what users have of the workers, and see what they have. A trial that would
go beyond its user's quota waits, and its study says why. docs/sharing.md tells
how users share what there is.`,
	}, quotaSetCommand(&flags), quotaListCommand(&flags), quotaRemoveCommand(&flags))
}

func quotaSetCommand(flags *term.Flags) *cobra.Command {
	var quota protocol.Quota
	var hours, gibibytes float64
	command := &cobra.Command{
		Use:   "set USER",
		Short: "Set a user's quota, in place of the one before",
		Long: `Set a user's quota, in place of the one before: what is not given is not
bounded. "admin" is the quota of the administrators' own studies.`,
		Example: `  tandem quota set ada --gpus 4 --gpu-hours-a-day 24
  tandem quota set bob --trials 8 --weight 2
  tandem quota set carol --preempt`,
		Args: term.Arguments(1, "the name of a user"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if err := checkQuota(quota, hours, gibibytes); err != nil {
				return err
			}
			quota.GPUSecondsADay, quota.DatasetBytes = 3600*hours, int64(gibibytes*(1<<30))
			view, err := client.SetQuota(ctx, args[0], quota)
			if err != nil {
				return err
			}
			said := fmt.Sprintf("User %s: %s\n", format.Plain(view.User), shownQuota(view.Quota))
			if view.UserAbsent {
				said += absentUser(view.User)
			}
			return term.SayAnswer(out, flags.JSON, view, "%s", said)
		}),
	}
	command.Flags().IntVar(&quota.Trials, "trials", 0, "trials at once; 0: no bound")
	command.Flags().IntVar(&quota.GPUs, "gpus", 0, "GPUs at once; 0: no bound")
	command.Flags().Float64Var(&hours, "gpu-hours-a-day", 0, "GPUs times hours in a day (UTC); 0: no bound")
	command.Flags().Float64Var(&quota.JoulesADay, "joules-a-day", 0, "energy in a day (UTC), as workers report it; 0: no bound")
	command.Flags().Float64Var(&quota.CostADay, "cost-a-day", 0, "money in a day (UTC), by the server's prices; 0: no bound")
	command.Flags().Float64Var(&quota.Weight, "weight", 0, "fair share against users with weight 1; 0: 1")
	command.Flags().Float64Var(&gibibytes, "dataset-gib", 0, "encrypted data sets together, in GiB; 0: no bound")
	command.Flags().BoolVar(&quota.Preempt, "preempt", false, "let the user's studies say preempt: trials of lower priority then make way for theirs")
	return command
}

// checkQuota refuses what is no bound.
func checkQuota(quota protocol.Quota, hours, gibibytes float64) error {
	for _, one := range []struct {
		flag  string
		value float64
	}{
		{"--trials", float64(quota.Trials)}, {"--gpus", float64(quota.GPUs)}, {"--gpu-hours-a-day", hours}, {"--joules-a-day", quota.JoulesADay}, {"--cost-a-day", quota.CostADay}, {"--weight", quota.Weight}, {"--dataset-gib", gibibytes},
	} {
		if !(one.value >= 0) || math.IsInf(one.value, 1) { // NaN is not
			return term.Misuse("%s (%g) must be a number of at least 0, which is the default", one.flag, one.value)
		}
	}
	return nil
}

// absentUser says that nobody has the name.
func absentUser(user string) string {
	return fmt.Sprintf("No token is user %s's now ('tandem token list' says whose there are)\n", format.Plain(user))
}

// shownQuota is a quota in words.
func shownQuota(quota *protocol.Quota) string {
	if quota == nil {
		return "no quota"
	}
	var parts []string
	add := func(has bool, format string, value any) {
		if has {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(quota.Trials > 0, "%s at once", format.Count(quota.Trials, "trial"))
	add(quota.GPUs > 0, "%s at once", format.Count(quota.GPUs, "GPU"))
	hours := "%.4g GPU-hours a day"
	if quota.GPUSecondsADay == 3600 {
		hours = "%.4g GPU-hour a day"
	}
	add(quota.GPUSecondsADay > 0, hours, quota.GPUSecondsADay/3600)
	add(quota.JoulesADay > 0, "%.4g J a day", quota.JoulesADay)
	add(quota.CostADay > 0, "a cost of %.4g a day", quota.CostADay)
	add(quota.Weight > 0, "weight %g", quota.Weight)
	add(quota.DatasetBytes > 0, "%s of data sets", format.Size(quota.DatasetBytes))
	if quota.Preempt {
		parts = append(parts, "may preempt")
	}
	if len(parts) == 0 {
		return "no bound"
	}
	return strings.Join(parts, ", ")
}

// shownLimits is a user's quota in the list.
func shownLimits(one protocol.QuotaView) string {
	if one.UserAbsent {
		return shownQuota(one.Quota) + "; no token is the user's"
	}
	return shownQuota(one.Quota)
}

func quotaListCommand(flags *term.Flags) *cobra.Command {
	return term.List[protocol.QuotaView]{
		Short: "List the quotas, with what the users' trials have and used today", Example: `  tandem quota list`, Key: "quotas",
		Get: (*rest.Client).Quotas, Print: printQuotas,
	}.Command(flags)
}

func printQuotas(out io.Writer, quotas []protocol.QuotaView) error {
	heading := []string{"USER", "TRIALS", "GPUS", "CORES", "SHARE", "GPU-HOURS TODAY", "J TODAY", "QUOTA"}
	return term.Rows(out, quotas, "No user has a quota, and no trial runs", heading, func(one protocol.QuotaView) []string {
		uses := one.Uses
		return []string{
			format.Plain(one.User), strconv.Itoa(uses.Trials), fmt.Sprintf("%.3g", uses.GPUs), strconv.Itoa(uses.Cores), fmt.Sprintf("%.0f %%", 100*uses.DominantShare),
			fmt.Sprintf("%.3g", uses.GPUSecondsToday/3600), fmt.Sprintf("%.4g", uses.JoulesToday), shownLimits(one),
		}
	})
}

func quotaRemoveCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "remove USER", Short: "Remove a user's quota", Example: `  tandem quota remove ada`,
		What: "the name of a user",
		Do:   (*rest.Client).RemoveQuota, Done: "removed", Said: "User %s has no quota any more",
	}.Command(flags)
}
