package broker

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// The files of a broker's folder.
const (
	logFile     = "audit.jsonl"
	signingFile = "signing.key"
	tokenFile   = "token"
)

// maxLine bounds a line of the log.
const maxLine = 64 << 10

// Line is one outcome in the log. Each names the hash of the line before it, so that none
// can be taken out unseen but the last ones.
type Line struct {
	Time     time.Time `json:"time"`
	Result   string    `json:"result"` // a signed token, which release.Read reads
	Previous string    `json:"previous"`
}

// Log is the broker's audit log, and all that it keeps of what was released.
type Log struct {
	file     *os.File
	previous string
	broken   error // a write that failed: nothing more is released
}

// ReadLog reads a broker's log and checks that it is whole and signed by the key. A last
// line without an end was never acted on; its place is where the log goes on.
func ReadLog(folder string, key ed25519.PublicKey, each func(Line, release.Result)) (previous string, end int64, err error) {
	file, err := os.Open(filepath.Join(folder, logFile))
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, maxLine)
	for number := 1; ; number++ {
		text, err := reader.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return previous, end, nil
		}
		var line Line
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		var result release.Result
		if err == nil {
			result, err = release.Read(line.Result, key)
		}
		if err == nil && line.Previous != previous {
			err = errors.New("a line before it is missing or was changed")
		}
		if err != nil {
			return previous, end, fmt.Errorf("%s, line %d: %w: restore it from a copy", file.Name(), number, err)
		}
		sum := sha256.Sum256(bytes.TrimSuffix(text, []byte("\n")))
		previous, end = hex.EncodeToString(sum[:]), end+int64(len(text))
		each(line, result)
	}
}

// openLog takes the log for this process alone, and tells what was released before.
func openLog(folder string, key ed25519.PublicKey, ledger *release.Ledger) (*Log, error) {
	file, err := os.OpenFile(filepath.Join(folder, logFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another broker uses %s: end it, or name another folder", folder), file.Close())
	}
	previous, end, err := ReadLog(folder, key, func(line Line, result release.Result) {
		if result.Code == "" {
			ledger.Recall(result.Request, line.Time)
		}
	})
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err = errors.Join(err, files.SyncFolder(folder)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Log{file: file, previous: previous}, nil
}

// append writes a line, durably. After a failure nothing more is written.
func (l *Log) append(result string, now time.Time) error {
	if l.broken != nil {
		return l.broken
	}
	text, err := json.Marshal(Line{Time: now.UTC(), Result: result, Previous: l.previous})
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.broken = fmt.Errorf("the audit log cannot be written, so no key goes: %w", err)
		return l.broken
	}
	sum := sha256.Sum256(text)
	l.previous = hex.EncodeToString(sum[:])
	return nil
}

// secret reads the folder's file of 32 bytes, in hexadecimal, or makes it.
func secret(folder, name string, create bool) ([]byte, error) {
	path := filepath.Join(folder, name)
	text, err := os.ReadFile(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		made := make([]byte, 32)
		_, _ = rand.Read(made) // never fails
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = file.WriteString(hex.EncodeToString(made) + "\n")
		return made, errors.Join(err, file.Sync(), file.Close(), files.SyncFolder(folder))
	}
	if err != nil {
		return nil, err
	}
	found, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if info, e := os.Stat(path); err != nil || len(found) != 32 || e != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s must hold 64 hexadecimal digits that nobody else can read: restore it, and chmod 600 it", path)
	}
	return found, nil
}
