package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logging are the flags about what a server or a worker writes to standard error.
type logging struct {
	verbose bool
	format  string
}

func logFlags(command *cobra.Command, log *logging) {
	command.Flags().BoolVar(&log.verbose, "verbose", false, "log every request and report")
	command.Flags().StringVar(&log.format, "log-format", "text", "text, or json: one object a line, for programs that collect logs")
}

// open returns the logger that the flags describe.
func (l logging) open(out io.Writer) (*slog.Logger, error) {
	level := slog.LevelInfo
	if l.verbose {
		level = slog.LevelDebug
	}
	switch l.format {
	case "text":
		return loggerAt(out, level), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, misuse("--log-format must be text or json, not %q", l.format)
}

// loggerAt returns a logger for people.
func loggerAt(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
