package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-tune/tandem/internal/files"
)

// moved is the file that says where a folder's artifacts are instead.
const moved = "moved-to"

// Elsewhere is the bucket that has the folder's artifacts; empty if they are in the folder.
func Elsewhere(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, moved))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look where the artifacts are: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Move says, durably, that the artifacts of the folder are in the bucket from now on.
func Move(dir, bucket string) error {
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return fmt.Errorf("say where the artifacts are: %w", err)
	}
	if err := files.Write(filepath.Join(dir, moved), strings.NewReader(bucket+"\n"), fileMode); err != nil {
		return fmt.Errorf("say where the artifacts are: %w", err)
	}
	return files.SyncFolder(dir)
}
