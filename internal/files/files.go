// Package files answers: how is a file put in place so that a crash leaves the old one or
// the whole new one?
package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts the content at the path, in place of what is there. Whatever stops it, a
// power cut too: there is the old file or the whole new one.
func Write(path string, content io.Reader, mode fs.FileMode) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	if _, err = io.Copy(fresh, content); err == nil && mode != 0o600 {
		err = fresh.Chmod(mode)
	}
	if err == nil {
		err = fresh.Sync()
	}
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		os.Remove(fresh.Name()) //nolint:errcheck // the first error is the one to tell
		return err
	}
	_ = SyncFolder(filepath.Dir(path)) // not every file system can
	return nil
}

// Keep writes a document as JSON for its owner's eyes only, and makes its folder.
func Keep(path string, document any) error {
	content, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Write(path, bytes.NewReader(content), 0o600)
}

// SyncFolder makes the names in a folder outlast a power cut.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("make the names in %s durable: %w", path, err)
	}
	return nil
}

// Sum is the SHA-256 of a file in hexadecimal digits.
func Sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
