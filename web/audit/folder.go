package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
)

// folder is the log's files on the disk.
type folder struct {
	path    string
	lock    *os.File
	file    *os.File // the newest; nil before the first line
	durable end
}

// openFolder opens the log for writing: for one at a time. It returns how many
// bytes of an unfinished line it has cut off.
func openFolder(path string) (opened *folder, torn int64, err error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, 0, fmt.Errorf("make the folder of the audit log: %w", err)
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, 0, err
	}
	f := &folder{path: path, lock: lock}
	if torn, err = f.resume(); err != nil {
		return nil, 0, errors.Join(err, f.close())
	}
	return f, torn, nil
}

// resume opens the newest file behind its last whole line, and returns how many
// bytes of an unfinished one it has cut off.
func (f *folder) resume() (torn int64, err error) {
	path := f.path
	if f.durable.firsts, err = firsts(path); err != nil {
		return 0, err
	}
	for len(f.durable.firsts) > 0 {
		newest := f.durable.firsts[len(f.durable.firsts)-1]
		content, err := os.ReadFile(fileOf(path, newest))
		if err != nil {
			return 0, fmt.Errorf("read the audit log: %w", err)
		}
		whole := bytes.LastIndexByte(content, '\n') + 1
		torn += int64(len(content) - whole)
		if whole == 0 { // a crash came before its first line was whole
			if err := os.Remove(fileOf(path, newest)); err != nil {
				return 0, fmt.Errorf("repair the audit log: %w", err)
			}
			f.durable.firsts = f.durable.firsts[:len(f.durable.firsts)-1]
			continue
		}
		lines := bytes.Split(content[:whole-1], []byte("\n"))
		last, err := parseLine(lines[len(lines)-1])
		if err != nil {
			return 0, damaged(path, fmt.Errorf("line %d of %s: %w", len(lines), filepath.Base(fileOf(path, newest)), err))
		}
		f.durable.sequence, f.durable.hash, f.durable.bytes = last.Sequence, last.Hash, int64(whole)
		return torn, f.reopen(newest)
	}
	return torn, nil
}

// acquire takes the right to write the log, which the kernel takes back when
// the process dies, however it dies.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the audit log: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = problem.New(problem.Conflict, "another process writes the audit log in %s: give each server a --data folder of its own", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func damaged(path string, err error) error {
	return problem.New(problem.Unavailable,
		"the audit log in %[1]s is damaged (%[2]w). 'tandem audit verify' says where; to go on with a new one, move %[1]s away", path, err)
}

// reopen opens a file and cuts it to what is durable.
func (f *folder) reopen(first int64) error {
	file, err := os.OpenFile(fileOf(f.path, first), os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	f.file = file
	if err := errors.Join(f.cut(), file.Sync()); err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	return nil
}

// cut leaves in the newest file what is durable.
func (f *folder) cut() error {
	if err := f.file.Truncate(f.durable.bytes); err != nil {
		return err
	}
	_, err := f.file.Seek(f.durable.bytes, io.SeekStart)
	return err
}

// write puts the batch on the disk. full says why nothing of it is there;
// failed, that nobody knows what is.
func (f *folder) write(b *batch) (full, failed error) {
	file := f.file
	if b.rotates {
		path := fileOf(f.path, b.after.firsts[len(b.after.firsts)-1])
		var err error
		if file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode); err != nil {
			return err, nil
		}
		if _, err := file.Write(b.lines); err != nil {
			return errors.Join(err, file.Close(), os.Remove(path)), nil
		}
	} else if _, err := file.Write(b.lines); err != nil {
		return err, f.cut()
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	before := f.durable.firsts
	f.durable = b.after
	if !b.rotates {
		return nil, nil
	}
	f.file, file = file, f.file
	if err := files.SyncFolder(f.path); err != nil {
		return nil, err
	}
	if file != nil {
		failed = file.Close()
	}
	return nil, errors.Join(failed, f.remove(before))
}

// remove deletes the files that belong to the log no more. The lines that say
// so are on the disk by now.
func (f *folder) remove(before []int64) error {
	var failures []error
	for _, first := range before {
		if !slices.Contains(f.durable.firsts, first) {
			failures = append(failures, os.Remove(fileOf(f.path, first)))
		}
	}
	return errors.Join(failures...)
}

// close ends the writing and gives the right up: explicitly, since a command
// that is being started at this moment holds what it inherited a little longer.
func (f *folder) close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	if f.lock != nil {
		err = errors.Join(err, syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN), f.lock.Close())
		f.lock = nil
	}
	return err
}

// firsts lists the log's files by the sequence of their first line, the oldest
// first.
func firsts(path string) ([]int64, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list the audit log, of the server's --data: %w", err)
	}
	var list []int64
	for _, entry := range entries {
		digits, ok := strings.CutSuffix(entry.Name(), suffix)
		if first, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && first > 0 && len(digits) == 19 {
			list = append(list, first)
		}
	}
	slices.Sort(list)
	return list, nil
}
