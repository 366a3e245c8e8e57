// Package proctest makes files of the kernel for tests.
package proctest

import (
	"os"
	"path/filepath"
	"testing"
)

// Write makes the files below a folder, which it returns.
func Write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		Put(t, root, name, content)
	}
	return root
}

// Put makes one file below the folder, and the folders that it needs.
func Put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Remove removes a file or folder below the folder.
func Remove(t *testing.T, root, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}
