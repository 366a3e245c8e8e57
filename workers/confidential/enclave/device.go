package enclave

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// tsm is where Linux hands out reports.
const tsm = "sys/kernel/config/tsm/report"

// device has this machine's processor sign the data. The certificates are those that the
// host brought along; none with TDX.
type device func(data [64]byte) (report, certificates []byte, err error)

// Find is what signs on this machine, by the kind of machine that it is. The error says
// what is missing.
func Find(root string) (sign device, tee string, err error) {
	if sign, tee := fake(); sign != nil {
		return sign, tee, nil
	}
	folder := filepath.Join(root, tsm)
	if _, err := os.Stat(folder); err != nil {
		return nil, "", fmt.Errorf("no report can be had: %w: that takes a confidential virtual machine (AMD SEV-SNP or Intel TDX), Linux 6.7, configfs mounted, and its module sev-guest or tdx-guest", err)
	}
	sign = func(data [64]byte) (report, certificates []byte, err error) {
		report, certificates, tee, err = ask(folder, data, os.MkdirTemp)
		return report, certificates, err
	}
	if _, _, err = sign([64]byte{}); err != nil {
		return nil, "", fmt.Errorf("no report can be had: %w: the worker must be root in the machine", err)
	}
	return sign, tee, nil
}

// providers are the kinds of machines as Linux calls what makes their reports.
var providers = map[string]string{"sev_guest": evidence.SNP, "tdx_guest": evidence.TDX}

// ask has the kernel make one report, in an entry of its own.
func ask(folder string, data [64]byte, entry func(in, pattern string) (string, error)) (report, certificates []byte, tee string, err error) {
	at, err := entry(folder, "tandem-")
	if err != nil {
		return nil, nil, "", err
	}
	defer func() { err = errors.Join(err, os.Remove(at)) }()
	read := func(name string) (content []byte) {
		if err == nil {
			content, err = os.ReadFile(filepath.Join(at, name))
		}
		return content
	}
	if err := os.WriteFile(filepath.Join(at, "inblob"), data[:], 0o600); err != nil {
		return nil, nil, "", err
	}
	before, provider := read("generation"), strings.TrimSpace(string(read("provider")))
	report = read("outblob")
	if _, missing := os.Stat(filepath.Join(at, "auxblob")); !errors.Is(missing, fs.ErrNotExist) {
		certificates = read("auxblob") // TDX may have none
	}
	if after := read("generation"); err == nil && !bytes.Equal(before, after) {
		err = errors.New("somebody else used the entry meanwhile")
	}
	if tee = providers[provider]; err == nil && tee == "" {
		err = fmt.Errorf("reports of %q cannot be read: only those of SEV-SNP and TDX", provider)
	}
	return report, certificates, tee, err
}
