// Package encryption reads the section encryption of study files.
package encryption

import (
	"regexp"

	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// mostRecipients bounds who can read a study's checkpoints: each costs room in each.
const mostRecipients = 8

// mostText bounds a key: post-quantum ones have about 2,000 characters.
const mostText = 4096

// Read reads to whom checkpoints are encrypted. A study without a command is
// trained by the caller's own process, which keeps them in the clear.
func Read(s tree.Section, command []string) *definition.Encryption {
	n, at := s.Get("encryption")
	if n == nil {
		return nil
	}
	part, ok := s.Open(at, n, "recipients", "datasets")
	if !ok {
		return nil
	}
	if len(command) == 0 {
		s.Fault(at, n, "needs a command: a process that asks for trials itself cannot encrypt, so start the script by workers, or leave encryption out")
		return nil
	}
	list, at := part.Need("recipients", "it must be a list of public keys, the workers' first")
	if list == nil {
		return nil
	}
	if list.Kind != tree.List || len(list.Items) == 0 || len(list.Items) > mostRecipients {
		s.Wrong(at, list, "a list of 1 to 8 public keys, the workers' first, such as [age1...]; 'tandem keys create' prints one")
		return nil
	}
	wanted := make([]string, 0, len(list.Items))
	for i, item := range list.Items {
		one, ok := s.Written(tree.Index(at, i), item, mostText)
		if !ok {
			return nil
		}
		wanted = append(wanted, one)
	}
	if i, wrong := sealed.Check(wanted); wrong != "" {
		s.Fault(tree.Index(at, i), list.Items[i], "%s", wrong)
		return nil
	}
	return &definition.Encryption{Recipients: wanted, Datasets: readDatasets(part)}
}

// mostDatasets bounds the data sets of a study.
const mostDatasets = 32

// readDatasets reads which data sets commands get. The SHA-256 tells one from all others
// of its name, so that nobody can give an older one.
func readDatasets(part tree.Section) map[string]string {
	n, at := part.Get("datasets")
	if n == nil {
		return nil
	}
	if n.Kind != tree.Mapping || len(n.Entries) == 0 || len(n.Entries) > mostDatasets {
		part.Wrong(at, n, "1 to 32 data sets, each a name with its SHA-256, such as {scans: 3f7a...}; 'tandem dataset publish' prints the line")
		return nil
	}
	wanted := make(map[string]string, len(n.Entries))
	for _, entry := range n.Entries {
		where := tree.Join(at, entry.Key)
		hash, ok := part.Written(where, entry.Value, mostText)
		switch {
		case !ok:
		case !definition.DatasetName.MatchString(entry.Key):
			part.Fault(where, entry.Value, "must be named by 1 to 40 lower-case letters, digits and _, a letter first")
		case !sha256Form.MatchString(hash):
			part.Wrong(where, entry.Value, "the SHA-256 of the encrypted file, 64 hexadecimal digits; 'tandem dataset publish' prints it")
		default:
			wanted[entry.Key] = hash
		}
	}
	return wanted
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)
