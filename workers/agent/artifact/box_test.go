package artifact

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
)

// aBox is a box with a new key.
func aBox(t *testing.T) Box {
	t.Helper()
	content, recipient, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Box{keys, []string{recipient}}
}

func (b Box) mustPack(t *testing.T, folder string, label sealed.Label) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := b.Pack(folder, &out, roomy, label); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const canary = "what the model has learned"

var aLabel = sealed.Label{Study: "s", Trial: "t", Rung: 1, Epoch: 3}

func TestABoxGivesBackWhatOnlyItCanRead(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	fill(t, from, map[string]string{"state": canary, "a/b": strings.Repeat("weights ", 50_000)})
	b := aBox(t)
	content := b.mustPack(t, from, aLabel)
	if bytes.Contains(content, []byte(canary)) || !bytes.HasPrefix(content, []byte(sealed.Magic)) {
		t.Error("it is not encrypted")
	}
	if again := b.mustPack(t, from, aLabel); bytes.Equal(content, again) {
		t.Error("equal files can be told")
	}
	if vouched, err := b.Open(bytes.NewReader(content), to, roomy, aLabel); err != nil || !vouched {
		t.Fatalf("got %v, %v", vouched, err)
	}
	if !bytes.Equal(packed(t, from), packed(t, to)) {
		t.Error("what came back is not what was packed")
	}
	opened, err := b.Keys.Decrypt(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	archive, names := tar.NewReader(opened), []string{}
	for header, err := archive.Next(); !errors.Is(err, io.EOF); header, err = archive.Next() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if len(names) != 4 { // the label, and "a", "a/b", "state"
		t.Errorf("another program that reads tar files sees %v", names)
	}
	plain := Box{}.mustPack(t, from, aLabel)
	if !bytes.Equal(plain, packed(t, from)) {
		t.Error("without recipients the bytes are not as they were")
	}
}

// What the server, or its disk, makes of a checkpoint is noticed before a script
// trains from it.
func TestABoxRefusesWhatIsNotTheCheckpoint(t *testing.T) {
	from := t.TempDir()
	fill(t, from, map[string]string{"state": canary})
	b := aBox(t)
	content := b.mustPack(t, from, aLabel)
	var plain, forged bytes.Buffer
	if err := pack(from, &plain, roomy); err != nil {
		t.Fatal(err)
	}
	out, err := sealed.Encrypt(&forged, b.Recipients) // which takes no secret
	if err == nil {
		_, err = out.Write(plain.Bytes())
	}
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	thief := aBox(t)
	thief.Recipients = slices.Concat(thief.Recipients, b.Recipients)
	changed := bytes.Clone(content)
	changed[len(changed)-100] ^= 1
	head := bytes.Clone(content)
	head[len(sealed.Magic)+20] ^= 1
	swapped, older := aLabel, aLabel
	swapped.Trial, older.Epoch = "u", 2
	for name, test := range map[string]struct {
		box     Box
		content []byte
		say     string
	}{
		"a bit of the content": {b, changed, "damaged"},
		"a bit of the head":    {b, head, "cannot be decrypted"},
		"cut short":            {b, content[:len(content)-1], "damaged"},
		"cut in the head":      {b, content[:40], "cannot be decrypted"},
		"nothing":              {b, nil, "cannot be decrypted"},
		"in the clear":         {b, plain.Bytes(), "cannot be decrypted"},
		"another trial's":      {b, b.mustPack(t, from, swapped), "checkpoint_swapped"},
		"an older one":         {b, b.mustPack(t, from, older), "checkpoint_rolled_back"},
		"without a label":      {b, forged.Bytes(), "checkpoint_unlabelled"},
		"of another key":       {b, thief.mustPack(t, from, aLabel), "checkpoint_forged"},
		"no identity":          {Box{nil, b.Recipients}, content, "--identity"},
		"another identity":     {Box{thief.Keys, b.Recipients}, content, "cannot be decrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			if _, err := test.box.Open(bytes.NewReader(test.content), to, roomy, aLabel); !spoilt(err) || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A worker knows by itself how far it brought a trial.
func TestAWorkerIsToldOfNoOlderCheckpointThanItCommitted(t *testing.T) {
	var memory Memory
	lease := protocol.Lease{Trial: "t", Rung: 1, Recipients: []string{"age1"}, Checkpoint: &trial.Checkpoint{Epoch: 6}}
	memory.note(lease, 6)
	older, higher, none, scratch, plain, other := lease, lease, lease, lease, lease, lease
	older.Checkpoint = &trial.Checkpoint{Epoch: 5}
	none.Checkpoint = nil
	higher.Rung, higher.Checkpoint = 2, &trial.Checkpoint{Epoch: 3}
	scratch.Rung, scratch.Checkpoint = 2, nil
	plain.Recipients, plain.Checkpoint = nil, nil
	other.Trial, other.Checkpoint = "u", nil
	for name, test := range map[string]struct {
		lease   protocol.Lease
		refused bool
	}{
		"the same": {lease: lease}, "an older one": {older, true}, "none": {none, true}, "an older one, higher": {higher, true},
		"a rung from scratch": {lease: scratch}, "a study in the clear": {lease: plain}, "another trial": {lease: other},
	} {
		if err := memory.check(test.lease); test.refused != problem.Is(err, problem.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	memory.forget("t") // nobody can go on from it
	if err := memory.check(older); err != nil {
		t.Error(err)
	}
	for n := range 2 * mostRemembered {
		memory.note(protocol.Lease{Trial: trial.ID(rune(n)), Recipients: lease.Recipients}, 1)
	}
	if len(memory.newest) > mostRemembered {
		t.Errorf("%d trials are remembered", len(memory.newest))
	}
}
