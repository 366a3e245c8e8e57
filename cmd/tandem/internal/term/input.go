package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadInput reads what somebody may still be typing; the context ends the wait.
func ReadInput[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := read()
		done <- outcome{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// ReadBounded reads a file of at most so many bytes; "-" is standard input.
func ReadBounded(path string, stdin io.Reader, most int64) ([]byte, error) {
	source := stdin
	if path != "-" || stdin == nil {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%s %w", path, ErrTooLarge)
	}
	return data, err
}

// ErrTooLarge is the error of a file above its bound.
var ErrTooLarge = errors.New("is larger than such a file can be")
