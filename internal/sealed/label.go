package sealed

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Label says of what a checkpoint is, or that it is a data set. It stands inside what is
// encrypted, so that its code, which nobody can make up without the workers' key, vouches
// for all that follows.
type Label struct {
	Study string `json:"study"`
	Trial string `json:"trial"`
	// Rung and Epoch are when it was taken.
	Rung  int `json:"rung"`
	Epoch int `json:"epoch"`
	// Dataset is the data set's name; empty: it is a checkpoint.
	Dataset string `json:"dataset,omitempty"`
}

// of is what such a file is called in what is said of it.
func (l Label) of() string {
	if l.Dataset != "" {
		return "dataset"
	}
	return "checkpoint"
}

func (l Label) begin() string { return "tandem " + l.of() + " v1 " }

// Sign is the label as text, with its code by the key, one that is held.
func (k *Keys) Sign(label Label, recipient string) (string, error) {
	text, err := json.Marshal(label)
	if err != nil {
		return "", fmt.Errorf("write a label: %w", err)
	}
	return label.begin() + hex.EncodeToString(code(k.secrets[recipient], text)) + " " + string(text), nil
}

func code(secret, text []byte) []byte {
	made := hmac.New(sha256.New, secret)
	made.Write(text) // never fails
	return made.Sum(nil)
}

// Verify refuses a text that is not the label's. vouched says that its code was checked:
// that takes the workers' key, the first of the study's recipients.
func (k *Keys) Verify(text string, wanted Label, recipient string) (vouched bool, err error) {
	said, document, _ := strings.Cut(strings.TrimPrefix(text, wanted.begin()), " ")
	var found Label
	if err := json.Unmarshal([]byte(document), &found); err != nil || !strings.HasPrefix(text, wanted.begin()) {
		return false, problem.New(problem.Invalid, "%s_unlabelled: neither a worker of this study nor 'tandem dataset encrypt' wrote it as one", wanted.of())
	}
	secret, held := k.secrets[recipient]
	if given, err := hex.DecodeString(said); held && (err != nil || !hmac.Equal(given, code(secret, []byte(document)))) {
		return false, problem.New(problem.Invalid, "%s_forged: no holder of the workers' key wrote it", wanted.of())
	}
	switch {
	case found.Dataset != wanted.Dataset:
		return false, problem.New(problem.Invalid, "dataset_swapped: it is the data set %q, not %q", found.Dataset, wanted.Dataset)
	case found.Study != wanted.Study || found.Trial != wanted.Trial:
		return false, problem.New(problem.Invalid, "checkpoint_swapped: it is of trial %s of study %s, not of trial %s of study %s", found.Trial, found.Study, wanted.Trial, wanted.Study)
	case found != wanted:
		return false, problem.New(problem.Invalid, "checkpoint_rolled_back: it is of epoch %d at rung %d, and the server promised epoch %d at rung %d", found.Epoch, found.Rung, wanted.Epoch, wanted.Rung)
	}
	return held, nil
}
