package studycmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
)

// The command line tells a script from the same command with other code by the files that
// the command names and the modules beside them.
func TestAChangedScriptHasAnotherHash(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(command ...string) string {
		t.Helper()
		def, err := InFolderOf(filepath.Join(folder, "study.yaml"), definition.Definition{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		return def.Code
	}
	write("train.py", "import model")
	write("model.py", "layers = 2")
	first := hash("python3", "train.py")
	if first == "" || first != hash("python3", filepath.Join(folder, "train.py")) {
		t.Errorf("the hash is %q, by the whole path %q", first, hash("python3", filepath.Join(folder, "train.py")))
	}
	write("notes.txt", "no code")
	if again := hash("python3", "train.py"); again != first {
		t.Errorf("a file of another kind changes the hash from %s to %s", first, again)
	}
	write("model.py", "layers = 3")
	second := hash("python3", "train.py")
	write("train.py", "import model as m")
	if third := hash("python3", "train.py"); second == first || third == second || third == first {
		t.Errorf("the hashes are %s, with another module %s, with another script %s", first, second, third)
	}
	write("huge.py", string(make([]byte, maxCodeBytes)))
	if hash("python3", "train.py") == "" {
		t.Error("a file that is too large takes the hash away")
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(folder), "outside.py"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"python3", "-m", "train"}, {"python3", "../outside.py"}, nil} {
		if found := hash(command...); found != "" {
			t.Errorf("%q names no file of the folder and has the hash %s", command, found)
		}
	}
}

// A command whose script is misspelt is told with the file that was meant.
func TestAMisspeltScriptIsFound(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"train.py", "run.sh"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for want, commands := range map[string][][]string{
		"": {nil, {"python", "train.py"}, {"python3.12", "-m", "trainer"}, {"./run.sh", "missing.py"}, {"python", filepath.Join(folder, "train.py")}, {"my-trainer", "trian.py"}, {"python"}},
		"the command's file trian.py is not in " + folder + "; did you mean train.py?": {{"python", "trian.py"}, {"python3.12", "trian.py", "--x"}},
		"the command's file ./rnu.sh is not in " + folder + "; did you mean run.sh?":   {{"./rnu.sh"}},
		"the command's file sub/x.py is not in " + filepath.Join(folder, "sub"):        {{"python", "sub/x.py"}},
	} {
		for _, command := range commands {
			if got := MissingFile(definition.Definition{Command: command, Directory: folder}); got != want {
				t.Errorf("%q: %q, not %q", command, got, want)
			}
		}
	}
}
