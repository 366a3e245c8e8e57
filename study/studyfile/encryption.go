package studyfile

import (
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// mostRecipients bounds who can read a study's checkpoints: each costs room in each.
const mostRecipients = 8

// readEncryption reads to whom checkpoints are encrypted. A study without a command is
// trained by the caller's own process, which keeps them in the clear.
func readEncryption(s tree.Section, command []string) *definition.Encryption {
	n, at := s.Get("encryption")
	if n == nil {
		return nil
	}
	part, ok := s.Open(at, n, "recipients")
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
		one, ok := s.Written(tree.Index(at, i), item, maxArgument)
		if !ok {
			return nil
		}
		wanted = append(wanted, one)
	}
	if i, wrong := sealed.Check(wanted); wrong != "" {
		s.Fault(tree.Index(at, i), list.Items[i], "%s", wrong)
		return nil
	}
	return &definition.Encryption{Recipients: wanted}
}
