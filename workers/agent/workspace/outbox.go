package workspace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Outbox keeps on disk what the server has not answered of a lease's reports, in
// their order, so that neither a server that is away for longer than the lease
// nor the death of this process loses them. It survives the process, not the
// machine: it is not synced. A nil outbox keeps nothing.
type Outbox struct {
	path  string
	mutex sync.Mutex
	file  *os.File // nil once it is closed
}

// outboxLine is a line of the file: what the lease is in the first one, then
// reports, and the epochs of those that were answered. A report of the same
// epoch replaces the one before.
type outboxLine struct {
	Lease    *protocol.HeldLease `json:"lease,omitempty"`
	Report   *protocol.Report    `json:"report,omitempty"`
	Answered int                 `json:"answered,omitempty"`
}

// Letter is what is still to be told of a lease.
type Letter struct {
	Held    protocol.HeldLease
	Reports []protocol.Report // in order
	End     protocol.FinishRequest
	Path    string // of the file it is in
}

const (
	outboxSuffix      = ".jsonl"
	longestLetterLine = 1 << 20
)

func (w *Workspace) outboxes() string { return filepath.Join(w.directory, "outbox") }

// OpenOutbox makes the outbox of a lease.
func (w *Workspace) OpenOutbox(held protocol.HeldLease) (*Outbox, error) {
	file, err := os.CreateTemp(w.outboxes(), "*"+outboxSuffix)
	if err != nil {
		return nil, err
	}
	o := &Outbox{path: file.Name(), file: file}
	return o, o.append(outboxLine{Lease: &held})
}

func (o *Outbox) append(line outboxLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.file == nil {
		return nil
	}
	_, err = o.file.Write(append(text, '\n'))
	return err
}

// Keep notes a report that is to be sent.
func (o *Outbox) Keep(report protocol.Report) error {
	if o == nil {
		return nil
	}
	return o.append(outboxLine{Report: &report})
}

// Answered notes that the server has answered the report of the epoch.
func (o *Outbox) Answered(epoch int) error {
	if o == nil {
		return nil
	}
	return o.append(outboxLine{Answered: epoch})
}

// Seal returns what is left to tell; nothing is added any more.
func (o *Outbox) Seal() (Letter, error) {
	if o == nil {
		return Letter{}, errors.New("there was no room for it on the disk")
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.file != nil {
		_ = o.file.Close() // what was written is read back below
		o.file = nil
	}
	return readLetter(o.path)
}

// Remove forgets all of it.
func (o *Outbox) Remove() {
	if o == nil {
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
	_ = os.Remove(o.path) // what stays is removed with the folder
}

// readLetter reads an outbox. The last line may be torn: its writer was killed.
func readLetter(path string) (Letter, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Letter{}, err
	}
	l := Letter{Path: path}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, longestLetterLine)
	for scanner.Scan() {
		var line outboxLine
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			break
		}
		l.take(line)
	}
	if l.Held.Trial == "" {
		return l, errors.New("it does not say which lease it is of")
	}
	return l, nil
}

func (l *Letter) take(line outboxLine) {
	epoch := line.Answered
	switch {
	case line.Lease != nil:
		l.Held = *line.Lease
		return
	case line.Report != nil:
		epoch = line.Report.Epoch
	}
	at := slices.IndexFunc(l.Reports, func(known protocol.Report) bool { return known.Epoch == epoch })
	switch {
	case line.Report == nil && at >= 0:
		l.Reports = slices.Delete(l.Reports, at, at+1)
	case line.Report != nil && at >= 0:
		l.Reports[at] = *line.Report
	case line.Report != nil:
		l.Reports = append(l.Reports, *line.Report)
	}
}

// lettersIn are what a dead agent has left to tell in its folder.
func lettersIn(folder string) []Letter {
	files, _ := fs.Glob(os.DirFS(folder), "outbox/*"+outboxSuffix) // the pattern is well formed
	var letters []Letter
	for _, file := range files {
		if l, err := readLetter(filepath.Join(folder, file)); err == nil {
			letters = append(letters, l)
		}
	}
	return letters
}

// adopt copies what a dead agent had to tell into this agent's folder, where it
// stays until it is told.
func (w *Workspace) adopt(letters []Letter) (adopted []Letter, err error) {
	for _, l := range letters {
		o, made := w.OpenOutbox(l.Held)
		for _, report := range l.Reports {
			if made == nil {
				made = o.Keep(report)
			}
		}
		if made != nil {
			err = errors.Join(err, made)
			continue
		}
		kept, read := o.Seal()
		if err = errors.Join(err, read); read == nil {
			adopted = append(adopted, kept)
		}
	}
	return adopted, err
}
