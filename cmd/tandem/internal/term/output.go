package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
)

// WriteJSON prints a document for scripts.
func WriteJSON(out io.Writer, document any) error {
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

// PrintAnswer writes an answer as JSON, or as people read it.
func PrintAnswer[T any](out io.Writer, asJSON bool, answer T, text func(io.Writer, T) error) error {
	if asJSON {
		return WriteJSON(out, answer)
	}
	return text(out, answer)
}

// Answer is PrintAnswer for what a call returns.
func Answer[T any](out io.Writer, asJSON bool, text func(io.Writer, T) error) func(T, error) error {
	return func(answer T, err error) error {
		if err != nil {
			return err
		}
		return PrintAnswer(out, asJSON, answer, text)
	}
}

// SayAnswer writes an answer as JSON, or says it to people with a text as of fmt.Fprintf.
func SayAnswer(out io.Writer, asJSON bool, answer any, text string, arguments ...any) error {
	if asJSON {
		return WriteJSON(out, answer)
	}
	_, err := fmt.Fprintf(out, text, arguments...)
	return err
}

// FormatTime is a time to the minute, or what is said when there is none.
func FormatTime(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.Local().Format("2006-01-02 15:04")
}
