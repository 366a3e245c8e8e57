package term

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// Logging are the flags about what a server or a worker writes to standard error.
type Logging struct {
	verbose bool
	format  string
}

// AddLogFlags adds the flags about the log.
func AddLogFlags(command *cobra.Command, log *Logging) {
	command.Flags().BoolVar(&log.verbose, "verbose", false, "log every request and report")
	command.Flags().StringVar(&log.format, "log-format", "text", "text, or json: one object a line, for programs that collect logs")
}

// Logger returns the logger that the flags describe.
func (l Logging) Logger(out io.Writer) (*slog.Logger, error) {
	level := slog.LevelInfo
	if l.verbose {
		level = slog.LevelDebug
	}
	switch l.format {
	case "text":
		return NewLogger(out, level), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, Misuse("--log-format must be text or json, not %q", l.format)
}

// NewLogger returns a logger for people.
func NewLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
