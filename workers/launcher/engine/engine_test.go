package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATokenThatOthersCanReadIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "private")
	path := filepath.Join(folder, "token")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckTokenFile(path); err != nil {
		t.Error(err)
	}
	for _, one := range []string{path, folder} {
		if err := os.Chmod(one, 0o750); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
		if err := CheckTokenFile(path); err == nil || !strings.Contains(err.Error(), "chmod go= "+one) {
			t.Errorf("%s: %v", one, err)
		}
		if err := os.Chmod(one, 0o700); err != nil { //nolint:gosec // a folder of the test
			t.Fatal(err)
		}
	}
}
