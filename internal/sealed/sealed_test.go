package sealed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// made is a new key in a file with the mode, and its recipient.
func made(t *testing.T, mode os.FileMode, postQuantum bool) (path, recipient string) {
	t.Helper()
	content, recipient, err := sealed.Create(postQuantum)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path, recipient
}

func TestOnlyFilesOfKeysThatAreOnesOwnAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		mode    os.FileMode
		content string
		trusted []string
		say     string
	}{
		"its own":            {mode: 0o600},
		"the group's too":    {mode: 0o640, say: "chmod 600"},
		"everybody's":        {mode: 0o604, say: "chmod 600"},
		"no key":             {mode: 0o600, content: "AGE-SECRET-KEY-1SHORT", say: "tandem keys create"},
		"a public key":       {mode: 0o600, content: "age1xyz", say: "tandem keys create"},
		"a wrong recipient":  {mode: 0o600, trusted: []string{"bob"}, say: `--recipient "bob"`},
		"two in one setting": {mode: 0o600, trusted: []string{"a\nb"}, say: "--recipient"},
	} {
		t.Run(name, func(t *testing.T) {
			path, recipient := made(t, test.mode, name == "its own")
			if test.content != "" {
				if err := os.WriteFile(path, []byte(test.content), test.mode); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := sealed.Read(path, test.trusted)
			if test.say == "" && (err != nil || keys.Recipients()[0] != recipient) {
				t.Errorf("got %v, %v", keys.Recipients(), err)
			}
			if test.say != "" && (err == nil || !strings.Contains(err.Error(), test.say) || strings.Contains(err.Error(), "SECRET")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A server that strips or changes the recipients gets nothing to read.
func TestWhatIsEncryptedAndToWhomIsTheOwnersWord(t *testing.T) {
	path, own := made(t, 0o600, false)
	_, friend := made(t, 0o600, false)
	_, stranger := made(t, 0o600, false)
	keys, err := sealed.Read(path, []string{friend})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		keys       *sealed.Keys
		recipients []string
		say        string
	}{
		"plain":                      {},
		"encrypted":                  {keys: keys, recipients: []string{own}},
		"to a friend besides":        {keys: keys, recipients: []string{own, friend}},
		"to a stranger besides":      {keys: keys, recipients: []string{own, stranger}, say: "--recipient"},
		"to a stranger":              {keys: keys, recipients: []string{stranger}, say: "does not hold"},
		"to a friend first":          {keys: keys, recipients: []string{friend, own}, say: "does not hold"},
		"the recipients were struck": {keys: keys, say: "encrypted studies only"},
		"no key":                     {recipients: []string{own}, say: "--identity FILE"},
	} {
		if reason := test.keys.Refuses(test.recipients); (reason == "") != (test.say == "") || !strings.Contains(reason, test.say) {
			t.Errorf("%s: %q", name, reason)
		}
	}
}

func TestRecipientsAreChecked(t *testing.T) {
	_, plain := made(t, 0o600, false)
	_, other := made(t, 0o600, false)
	_, hybrid := made(t, 0o600, true)
	for name, test := range map[string]struct {
		list []string
		at   int
		say  string
	}{
		"one":            {list: []string{plain}},
		"a hybrid":       {list: []string{hybrid}},
		"two":            {list: []string{plain, other}},
		"no key":         {list: []string{plain, "age1" + strings.Repeat("q", 58)}, at: 1, say: "tandem keys create"},
		"an identity":    {list: []string{"AGE-SECRET-KEY-1"}, say: "public key"},
		"twice":          {list: []string{plain, other, plain}, at: 2, say: "twice"},
		"of two kinds":   {list: []string{plain, hybrid}, at: 1, say: "do not mix"},
		"of other kinds": {list: []string{hybrid, plain}, at: 1, say: "do not mix"},
	} {
		if at, wrong := sealed.Check(test.list); at != test.at || (wrong == "") != (test.say == "") || !strings.Contains(wrong, test.say) {
			t.Errorf("%s: %d, %q", name, at, wrong)
		}
	}
}

func TestLabels(t *testing.T) {
	path, own := made(t, 0o600, false)
	keys, err := sealed.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := made(t, 0o600, false)
	others, err := sealed.Read(foreign, nil)
	if err != nil {
		t.Fatal(err)
	}
	label := sealed.Label{Study: "s", Trial: "t", Rung: 1, Epoch: 3}
	text, err := keys.Sign(label, own)
	if err != nil {
		t.Fatal(err)
	}
	if vouched, err := keys.Verify(text, label, own); !vouched || err != nil {
		t.Errorf("its own: %v, %v", vouched, err)
	}
	if vouched, err := others.Verify(text, label, own); vouched || err != nil {
		t.Errorf("without the key: %v, %v", vouched, err)
	}
	set, err := keys.Sign(sealed.Label{Dataset: "scans"}, own)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text string
		want sealed.Label
		say  string
	}{
		"another data set":           {set, sealed.Label{Dataset: "labels"}, "dataset_swapped"},
		"a data set as a checkpoint": {set, sealed.Label{}, "checkpoint_unlabelled"},
		"one that is renamed":        {strings.Replace(set, "dataset", "checkpoint", 1), sealed.Label{}, "dataset_swapped"},
		"a checkpoint as a data set": {text, sealed.Label{Dataset: "scans"}, "dataset_unlabelled"},
		"another trial":              {text, sealed.Label{Study: "s", Trial: "u", Rung: 1, Epoch: 3}, "checkpoint_swapped"},
		"another study":              {text, sealed.Label{Study: "r", Trial: "t", Rung: 1, Epoch: 3}, "checkpoint_swapped"},
		"an older epoch":             {text, sealed.Label{Study: "s", Trial: "t", Rung: 1, Epoch: 6}, "checkpoint_rolled_back"},
		"another rung":               {text, sealed.Label{Study: "s", Trial: "t", Rung: 2, Epoch: 3}, "checkpoint_rolled_back"},
		"changed":                    {strings.Replace(text, `"epoch":3`, `"epoch":6`, 1), sealed.Label{Study: "s", Trial: "t", Rung: 1, Epoch: 6}, "checkpoint_forged"},
		"without a code":             {strings.Replace(text, "v1 ", "v1 x", 1), label, "checkpoint_forged"},
		"no label":                   {"", label, "checkpoint_unlabelled"},
		"half a label":               {text[:len(text)-4], label, "checkpoint_unlabelled"},
	} {
		if _, err := keys.Verify(test.text, test.want, own); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
