package artifact

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A trial may go from a worker to a Python process and back, so both have to
// read what the other has packed.
func TestPythonClientReadsAndWritesTheSameArchives(t *testing.T) {
	client, err := filepath.Abs("../../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	python := func(program, directory string, in []byte) ([]byte, error) {
		command := exec.Command("python3", "-c", "import io, pathlib, sys\nfrom tandem import archive\n"+program, directory)
		command.Env = append(os.Environ(), "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1")
		command.Stdin = bytes.NewReader(in)
		return command.Output()
	}
	if _, err := python("", "", nil); err != nil {
		t.Skipf("no Python that the client runs with: %v", err)
	}
	from, to, back := t.TempDir(), t.TempDir(), t.TempDir()
	fill(t, from, map[string]string{
		"state": "1", "empty": "", "a/b/c": "deep", "größe é": "not ASCII",
		strings.Repeat("long-", 40) + "/" + strings.Repeat("name-", 40): "longer than the first tar could",
	})
	if err := os.Mkdir(filepath.Join(from, "no files in it"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := packed(t, from)
	if _, err := python("archive.unpack(io.BytesIO(sys.stdin.buffer.read()), pathlib.Path(sys.argv[1]))", to, want); err != nil {
		t.Fatalf("Python cannot read it: %s", stderr(err))
	}
	written, err := python("out = io.BytesIO(); archive.pack(pathlib.Path(sys.argv[1]), out); sys.stdout.buffer.write(out.getvalue())", to, nil)
	if err != nil {
		t.Fatalf("Python cannot pack it: %s", stderr(err))
	}
	if err := unpack(bytes.NewReader(written), back, roomy, nil); err != nil {
		t.Fatalf("what Python packed cannot be read: %v", err)
	}
	if !bytes.Equal(packed(t, back), want) {
		t.Error("what came back is not what was packed")
	}
}

// stderr is what a command said when it failed.
func stderr(err error) string {
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return string(failed.Stderr)
	}
	return err.Error()
}
