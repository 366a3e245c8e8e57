package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Enrolments is the folder in which the token of each launch waits for its worker, on a
// disk that all nodes have. Only the user of the launcher reads it.
type Enrolments string

// Open makes the folder, and refuses one that others can read.
func (e Enrolments) Open() error {
	if err := os.MkdirAll(string(e), 0o700); err != nil {
		return err
	}
	return checkPrivate(string(e))
}

// Keep writes the token of a launch, in place of an earlier one.
func (e Enrolments) Keep(launch, token string) error {
	file, err := os.CreateTemp(string(e), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.WriteString(token + "\n")
	now := time.Now() // by which its age is told, and not by the clock of the disk
	err = errors.Join(err, file.Close(), os.Chtimes(file.Name(), now, now))
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(e), launch))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Drop removes the token of a launch, which may have been used.
func (e Enrolments) Drop(launch string) error {
	if err := os.Remove(filepath.Join(string(e), launch)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Kept returns when the tokens were written that are there, by launch.
func (e Enrolments) Kept() (map[string]time.Time, error) {
	entries, err := os.ReadDir(string(e))
	kept := map[string]time.Time{}
	for _, one := range entries {
		if info, err := one.Info(); err == nil { // its worker may just have used it
			kept[one.Name()] = info.ModTime()
		}
	}
	return kept, err
}
