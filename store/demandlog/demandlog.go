// Package demandlog keeps the minutes of demand in files: one a day, a line of
// JSON for each minute, written to the disk before the next one.
//
// Its one invariant: what was written is never changed, and a line that cannot be
// read (the last one, of a machine that lost its power) is a minute that is not
// there, not an error. Files older than what is kept are deleted.
package demandlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/demand"
)

const (
	nameLayout = "2006-01-02"
	ending     = ".jsonl"
	// longestLine bounds a minute: 100 owners with names of 128 characters.
	longestLine = 1 << 20
)

// Log is a folder of such files. It belongs to one process, and is not safe for
// concurrent use.
type Log struct {
	folder string
	file   *os.File
	day    string
}

// Open makes the folder if it is not there.
func Open(folder string) (*Log, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the demand: %w", err)
	}
	return &Log{folder: folder}, nil
}

// Read returns the minutes that are kept, by file and line; broken is how many
// lines could not be read. It deletes files in which nothing is kept any more.
func (l *Log) Read(now time.Time) (minutes []demand.Minute, broken int, err error) {
	entries, err := os.ReadDir(l.folder)
	if err != nil {
		return nil, 0, err
	}
	oldest := now.UTC().Add(-demand.Kept)
	for _, entry := range entries { // by name, which is by day
		day, err := time.Parse(nameLayout+ending, entry.Name())
		if err != nil || entry.IsDir() {
			continue // nothing of ours
		}
		path := filepath.Join(l.folder, entry.Name())
		if day.AddDate(0, 0, 1).Before(oldest) {
			if err := os.Remove(path); err != nil {
				return nil, 0, err
			}
			continue
		}
		found, unread, err := readDay(path)
		if err != nil {
			return nil, 0, err
		}
		minutes, broken = append(minutes, found...), broken+unread
	}
	return minutes, broken, nil
}

func readDay(path string) (minutes []demand.Minute, broken int, err error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		var one demand.Minute
		if err := json.Unmarshal([]byte(text), &one); err != nil || one.At.IsZero() || one.At.Second() != 0 {
			broken++
			continue
		}
		one.At = one.At.UTC()
		minutes = append(minutes, one)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return minutes, broken + 1, nil
	}
	return minutes, broken, lines.Err()
}

// Append writes a minute to the disk. After an error nothing, or a part of the
// line, was written: what comes next begins a line of its own.
func (l *Log) Append(one demand.Minute) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	day := one.At.UTC().Format(nameLayout)
	if l.file == nil || l.day != day {
		if err := l.turn(day); err != nil {
			return err
		}
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return errors.Join(fmt.Errorf("write the demand: %w", err), l.Close())
	}
	return l.file.Sync()
}

// turn goes on with the file of the day. It begins a line: the one before may
// have been cut off.
func (l *Log) turn(day string) error {
	if err := l.Close(); err != nil {
		return err
	}
	path := filepath.Join(l.folder, day+ending)
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the demand of the day: %w", err)
	}
	if about, err := file.Stat(); err != nil || about.Size() > 0 {
		if _, err := file.WriteString("\n"); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	l.file, l.day = file, day
	return nil
}

// Close lets go of the file. The next minute opens it again.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
