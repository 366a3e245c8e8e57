package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// A server that strikes the recipients of an encrypted study out, or adds its own, is
// refused before anything of the trial begins.
func TestAWorkerWithKeysRefusesWhatItsOwnerDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	content, own, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	_, servers, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		keys       *sealed.Keys
		recipients []string
		refused    bool
	}{
		"its own":         {keys, []string{own}, false},
		"in the clear":    {keys, nil, true},
		"the server's":    {keys, []string{own, servers}, true},
		"without keys":    {nil, []string{own}, true},
		"without section": {nil, nil, false},
	} {
		err := Rules{Keys: test.keys}.Allows(exec.Command("train"), protocol.Lease{Recipients: test.recipients})
		if refused := errors.As(err, new(Refusal)); refused != test.refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The owner of a worker names the data sets that it decrypts, and no server gives others.
func TestAWorkerUsesTheDataSetsThatItsOwnerAllows(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		refused bool
	}{"any": {nil, false}, "that one": {[]string{"beef"}, false}, "an older one": {[]string{"dead"}, true}} {
		err := Rules{Policy: Policy{Datasets: test.allowed}}.Allows(exec.Command("train"), protocol.Lease{Datasets: map[string]string{"scans": "beef"}})
		if refused := errors.As(err, new(Refusal)); refused != test.refused || refused && !strings.Contains(err.Error(), "--allow-dataset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
