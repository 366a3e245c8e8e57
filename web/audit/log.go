package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Options bound a log.
type Options struct {
	// Now is the clock; nil: the wall clock.
	Now func() time.Time
	// FileBytes is how large a file grows before the next one is begun (0: 16
	// MiB), Files how many are kept (0: 16). Together they bound the log, but for
	// what one group of callers writes at once.
	FileBytes int64
	Files     int
}

const (
	defaultFileBytes = 16 << 20
	defaultFiles     = 16
)

// Log is an open log. It is safe for concurrent use; a folder has one at a time.
type Log struct {
	options Options

	// writing is held while lines go to the disk, mutex while they are made: who
	// comes meanwhile shares the next write.
	writing sync.Mutex
	folder  *folder

	mutex   sync.Mutex
	staged  end // of the chain with what waits for the disk
	waiting *batch
	broken  error
}

// end is where the chain ends.
type end struct {
	sequence int64
	hash     string
	bytes    int64 // of the newest file
	firsts   []int64
}

// batch is lines that go to the disk together.
type batch struct {
	lines []byte
	after end
	// rotates says that the lines begin a new file.
	rotates bool
	done    bool
	err     error
}

// Open opens the log in the folder, which it makes if there is none. A line that
// a crash left unfinished was acknowledged to nobody: it is cut off, and a line
// says so. A log whose newest line is damaged is refused.
func Open(path string, options Options) (*Log, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.FileBytes <= 0 {
		options.FileBytes = defaultFileBytes
	}
	if options.Files <= 0 {
		options.Files = defaultFiles
	}
	opened, torn, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	l := &Log{options: options, folder: opened, staged: opened.durable, waiting: &batch{}}
	if torn > 0 {
		err := l.Append(Entry{Action: "repair-audit-log", Outcome: Done, Detail: fmt.Sprintf("cut off %d bytes of a line that was not finished when the server died", torn)})
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Head is the sequence and the hash of the newest line. Whoever notes them
// elsewhere can tell later whether the log up to there is still the same.
func (l *Log) Head() (sequence int64, hash string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.staged.sequence, l.staged.hash
}

// Append writes an entry behind the others; its sequence, time and hashes are
// set here. When it returns nil, the line is on the disk. When the disk takes
// no more, nothing of it is, and a later entry may fit again; when the disk
// fails, nothing more is taken, since nobody knows what it holds.
func (l *Log) Append(entry Entry) error {
	mine, err := l.stage(entry.bounded())
	if err != nil {
		return err
	}
	return l.flush(mine)
}

// stage puts the entry into the batch that goes to the disk next.
func (l *Log) stage(entry Entry) (*batch, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	mine := l.waiting
	if len(mine.lines) == 0 && (l.staged.bytes >= l.options.FileBytes || len(l.staged.firsts) == 0) {
		if err := l.rotate(mine); err != nil {
			return nil, err
		}
	}
	return mine, l.extend(mine, entry)
}

// rotate makes the batch begin a new file. Its first line says which lines go
// with the oldest files, if any do.
func (l *Log) rotate(mine *batch) error {
	mine.rotates = true
	l.staged.bytes = 0
	l.staged.firsts = append(append([]int64{}, l.staged.firsts...), l.staged.sequence+1)
	surplus := len(l.staged.firsts) - l.options.Files
	if surplus <= 0 {
		return nil
	}
	removed := Entry{
		Action: rotation, Outcome: Done, On: lineRange(l.staged.firsts[0], l.staged.firsts[surplus]-1),
		Detail: fmt.Sprintf("the oldest lines were removed, as %d files are kept", l.options.Files),
	}
	l.staged.firsts = l.staged.firsts[surplus:]
	return l.extend(mine, removed)
}

// rotation is the action of a line that says which lines were removed.
const rotation = "rotate-audit-log"

func lineRange(first, last int64) string { return fmt.Sprintf("%d-%d", first, last) }

// extend adds the entry's line to the batch.
func (l *Log) extend(mine *batch, entry Entry) error {
	entry.Sequence, entry.At, entry.Previous = l.staged.sequence+1, l.options.Now().Round(0).UTC(), l.staged.hash
	line, hash, err := entry.line()
	if err != nil {
		return err // a text that cannot be encoded: bounded leaves none
	}
	mine.lines = append(append(mine.lines, line...), '\n')
	l.staged.sequence, l.staged.hash = entry.Sequence, hash
	l.staged.bytes += int64(len(line)) + 1
	mine.after = l.staged
	return nil
}

// flush writes the batch, unless somebody has done so meanwhile.
func (l *Log) flush(mine *batch) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if mine.done {
		return mine.err
	}
	l.mutex.Lock()
	l.waiting = &batch{}
	l.mutex.Unlock()
	mine.done = true
	full, failed := l.folder.write(mine)
	if full == nil && failed == nil {
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if failed != nil {
		mine.err = problem.New(problem.Unavailable, "the audit log failed (%w): what has to be logged is not done until the server is started again", failed)
		l.broken = mine.err
	} else {
		if errors.Is(full, syscall.ENOSPC) || errors.Is(full, syscall.EDQUOT) {
			full = fmt.Errorf("%w: %w", problem.ErrDiskFull, full)
		}
		mine.err = problem.New(problem.Unavailable, "the audit log cannot be written (%w): what has to be logged is not done; make room on its disk", full)
	}
	// What was staged meanwhile stands behind lines that there are not.
	l.waiting.done, l.waiting.err = true, mine.err
	l.waiting, l.staged = &batch{}, l.folder.durable
	return mine.err
}

// Close ends the log.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken == nil {
		l.broken = problem.New(problem.Unavailable, "the audit log is closed")
	}
	return l.folder.close()
}

// fileOf is the path of the file whose first line has the sequence: names sort
// as their lines do.
func fileOf(path string, first int64) string {
	return filepath.Join(path, fmt.Sprintf("%019d%s", first, suffix))
}

const suffix = ".jsonl"

// modes: who did what is nobody else's business on the machine.
const (
	folderMode os.FileMode = 0o700
	fileMode   os.FileMode = 0o600
)
