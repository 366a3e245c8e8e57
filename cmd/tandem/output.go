package main

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
)

// writeJSON prints a document for scripts.
func writeJSON(out io.Writer, document any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := io.WriteString(out, format.JSON(text.String()))
	return err
}

// printed writes an answer as JSON, or as people read it.
func printed[T any](out io.Writer, asJSON bool, answer T, text func(io.Writer, T) error) error {
	if asJSON {
		return writeJSON(out, answer)
	}
	return text(out, answer)
}

// shownTime is a time to the minute, or what is said when there is none.
func shownTime(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.Local().Format("2006-01-02 15:04")
}
