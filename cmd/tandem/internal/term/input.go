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

// SaveAs writes a file whole or not at all.
func SaveAs(path string, content io.Reader) error {
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, content); err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(part) //nolint:errcheck // the first error is the one to tell
		return err
	}
	return os.Rename(part, path)
}
