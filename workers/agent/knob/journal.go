package knob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/tandem-tune/tandem/internal/files"
)

// journal is a file with the settings of the machine as they were before they
// were changed. It is on the disk before the change is made, so that the next
// agent can put them back after this one was killed.
type journal struct {
	path    string
	entries []entry
}

// entry is a setting as it was before.
type entry struct {
	place
	Before string
}

func (j *journal) has(at place) bool {
	_, known := j.before(at)
	return known
}

func (j *journal) before(at place) (value string, known bool) {
	for _, one := range j.entries {
		if one.place == at {
			return one.Before, true
		}
	}
	return "", false
}

// add returns when the entries are on the disk.
func (j *journal) add(fresh []entry) error {
	if len(fresh) == 0 {
		return nil
	}
	return j.write(slices.Concat(j.entries, fresh))
}

func (j *journal) remove(at place) error {
	return j.write(slices.DeleteFunc(slices.Clone(j.entries), func(e entry) bool { return e.place == at }))
}

// write replaces the file. After an error the old one is there, and counts.
func (j *journal) write(entries []entry) error {
	content, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	if err := files.Write(j.path, bytes.NewReader(content), 0o600); err != nil {
		return err
	}
	j.entries = entries
	return nil
}

// Pending reports whether the journal has settings that are still to be put back.
func Pending(journal string) (bool, error) {
	entries, err := readJournal(journal)
	return len(entries) > 0, err
}

// readJournal returns what is to be put back; nothing where nothing was changed.
func readJournal(path string) ([]entry, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []entry
	if err := json.Unmarshal(content, &entries); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return entries, nil
}
