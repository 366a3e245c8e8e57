package startcmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

// build is what the binary was built from. Commit and date are those of the
// commit, and absent where the build was not told them.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"`
	// Changed says that files differed from the commit.
	Changed  bool   `json:"changed,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// VersionCommand is "tandem version".
func VersionCommand() *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and date of this binary",
		Example: "  tandem version\n  tandem version --json | jq -r .commit",
		Args:    term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			b := build{Version: term.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					switch setting.Key {
					case "vcs.revision":
						b.Commit = setting.Value
					case "vcs.time":
						b.Date = setting.Value
					case "vcs.modified":
						b.Changed = setting.Value == "true"
					}
				}
			}
			text := "tandem " + b.Version
			if b.Commit != "" {
				text += fmt.Sprintf(", commit %.12s of %s", b.Commit, b.Date)
			}
			if b.Changed {
				text += ", with changes"
			}
			return term.SayAnswer(command.OutOrStdout(), asJSON, b, "%s, %s, %s\n", text, b.Go, b.Platform)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}
