package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxLine bounds a line that is read: what is longer is no line of ours.
const maxLine = 64 << 10

// Report says what a log was found to be.
type Report struct {
	// Files and Lines are how many there are; First and Last the sequences of the
	// first and the last line.
	Files int   `json:"files"`
	Lines int64 `json:"lines"`
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Head is the hash of the last line.
	Head string `json:"head"`
	// Unfinished says that bytes follow the last line: one that is being written,
	// or was when the server died.
	Unfinished bool `json:"unfinished"`
}

// Fault is where a log is not what was written.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // in the file, from 1; 0: the file as a whole
	Reason string `json:"reason"`
}

// Error says where and what.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Reason
	}
	return fmt.Sprintf("%s, line %d: %s", f.File, f.Line, f.Reason)
}

// Newest returns up to so many of the newest lines, the oldest first.
func Newest(path string, most int) (entries []Entry, err error) {
	list, err := firsts(path)
	if err != nil {
		return nil, err
	}
	for i := len(list) - 1; i >= 0 && len(entries) < most; i-- {
		var some []Entry
		if _, err := scanFile(path, filepath.Base(fileOf(path, list[i])), func(_ string, _ int, line []byte) error {
			if entry, err := parseLine(line); err == nil || entry.Sequence > 0 {
				some = append(some, entry)
			}
			if len(some) >= 2*most {
				some = append(some[:0], some[len(some)-most:]...)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		entries = append(some, entries...)
	}
	return entries[max(0, len(entries)-most):], nil
}

// Verify checks that every line is as it was written and stands where it was.
// The error is a [*Fault] at the first that is not.
//
// Whoever can write the files can also make a whole new chain, or cut the end
// off. Against that helps a hash that was noted elsewhere, of any line: expect,
// if not empty, must be among the lines.
func Verify(path, expect string) (Report, error) {
	v := verifier{expect: expect}
	err := scan(path, v.line, func() { v.Unfinished = true })
	if err != nil {
		return v.Report, err
	}
	list, err := firsts(path)
	if err != nil {
		return v.Report, err
	}
	v.Files = len(list)
	switch {
	case v.First > 1 && v.removed != v.First-1:
		return v.Report, &Fault{File: filepath.Base(fileOf(path, v.First)), Line: 1,
			Reason: fmt.Sprintf("lines 1 to %d are missing, and no line says that they were removed when the log had become too long", v.First-1)}
	case expect != "" && !v.found:
		return v.Report, &Fault{File: path, Reason: "no line has the hash " + expect + ": the log was cut off before that line, or written anew"}
	}
	return v.Report, nil
}

// verifier follows the chain.
type verifier struct {
	Report
	expect  string
	found   bool
	removed int64 // the last line that the log says was removed
}

func (v *verifier) line(file string, number int, line []byte) error {
	fault := func(format string, args ...any) error {
		return &Fault{File: file, Line: number, Reason: fmt.Errorf(format, args...).Error()}
	}
	entry, err := parseLine(line)
	if err != nil {
		return fault("%w", err)
	}
	switch {
	case v.Lines == 0:
		v.First = entry.Sequence
		if entry.Sequence == 1 && entry.Previous != "" {
			return fault("it is the first line and names one before it")
		}
	case entry.Sequence != v.Last+1:
		return fault("it is line %d of the log, and stands behind line %d: lines were removed, put in or moved", entry.Sequence, v.Last)
	case entry.Previous != v.Head:
		return fault("it was not written behind the line that stands before it: that line was changed or replaced")
	}
	if number == 1 {
		if named := filepath.Base(fileOf("", entry.Sequence)); named != file {
			return fault("the file begins with line %d of the log and should be called %s: lines at its beginning were removed", entry.Sequence, named)
		}
	}
	if _, last, ok := strings.Cut(entry.On, "-"); ok && entry.Action == rotation {
		if v.removed, err = strconv.ParseInt(last, 10, 64); err != nil {
			return fault("it does not say which lines were removed")
		}
	}
	v.Lines, v.Last, v.Head = v.Lines+1, entry.Sequence, entry.Hash
	v.found = v.found || entry.Hash == v.expect
	return nil
}

// scan visits the lines of all files in order, and calls unfinished if bytes
// without a line break follow the last one.
func scan(path string, visit func(file string, number int, line []byte) error, unfinished func()) error {
	list, err := firsts(path)
	if err != nil {
		return err
	}
	for i, first := range list {
		name := filepath.Base(fileOf(path, first))
		rest, err := scanFile(path, name, visit)
		if errors.Is(err, os.ErrNotExist) && i == 0 {
			continue // removed meanwhile, as the oldest
		}
		if err != nil {
			return err
		}
		if rest && i < len(list)-1 {
			return &Fault{File: name, Reason: "its last line is not whole, and another file follows"}
		}
		if rest && unfinished != nil {
			unfinished()
		}
	}
	return nil
}

// scanFile visits the lines of one file, and reports whether it ends in one that
// is not whole.
func scanFile(path, name string, visit func(file string, number int, line []byte) error) (rest bool, err error) {
	file, err := os.Open(filepath.Join(path, name))
	if err != nil {
		return false, err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, maxLine)
	for number := 1; ; number++ {
		line, err := reader.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return len(line) > 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return false, &Fault{File: name, Line: number, Reason: fmt.Sprintf("it has more than %d bytes: it is not a line of this log", maxLine)}
		case err != nil:
			return false, fmt.Errorf("read the audit log: %w", err)
		}
		if err := visit(name, number, line[:len(line)-1]); err != nil {
			return false, err
		}
	}
}
