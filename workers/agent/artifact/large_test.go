package artifact

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// Neither encryption nor the archive has a limit near 4 GiB, which is all that a server takes.
func TestFilesOfMoreThanFourGiBAreEncrypted(t *testing.T) {
	if os.Getenv(effort.Variable) == "" {
		t.Skip("encrypts and decrypts 8 GiB: only in the long run")
	}
	text, recipient, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	const size = 8<<30 + 12345 // a tar file needs another form for it, too
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "large"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(folder, "large"), size); err != nil { // it is sparse
		t.Fatal(err)
	}
	fill(t, folder, map[string]string{"zz": "the end"})
	in, out := io.Pipe()
	go func() {
		_ = out.CloseWithError(Box{keys, []string{recipient}}.Pack(folder, out, Limits{Bytes: 1 << 40, Files: 2}, sealed.Label{Dataset: "large"}))
	}()
	opened, err := keys.Decrypt(in)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	archive := tar.NewReader(opened)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.Copy(io.Discard, archive); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(io.Discard, opened); err != nil {
		t.Error(err)
	}
	if found["large"] != size || found["zz"] != 7 {
		t.Errorf("it has %v", found)
	}
}
