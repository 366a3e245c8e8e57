package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestStudyOverTLS(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "encrypted", threeRungs, "0", 3)
	at := newSite(t, "--tls")
	if !strings.HasPrefix(at.server.URL, "https://") || !strings.Contains(at.server.Output(), "fingerprint: ") {
		t.Fatalf("the server says:\n%s", at.server.Output())
	}
	// Whoever does not know the authority is told what to do, and sends nothing.
	without := []string{"TANDEM_SERVER=" + at.server.URL, "TANDEM_TOKEN=" + at.token, "TANDEM_CA="}
	if got := cli(t, without, "study", "list"); got.code != 4 || !strings.Contains(got.stderr, "--ca FILE") {
		t.Errorf("without the authority: exit code %d, %s", got.code, got.stderr)
	}
	plain := []string{"TANDEM_SERVER=http://" + at.listen, "TANDEM_TOKEN=" + at.token, "TANDEM_CA="}
	if got := cli(t, plain, "study", "list"); got.code != 4 || !strings.Contains(got.stderr, "use https://") {
		t.Errorf("in plain text: exit code %d, %s", got.code, got.stderr)
	}
	if got := at.cli("study", "list", "--ca", s.file); got.code != 2 || !strings.Contains(got.stderr, "BEGIN CERTIFICATE") {
		t.Errorf("with a file that is none: exit code %d, %s", got.code, got.stderr)
	}

	at.worker()
	at.must("study", "create", s.file)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted {
		t.Errorf("the study is %s", found.Study.Status)
	}
	checkBooks(t, s, at.books(s.name))

	// The authority is the same after a restart, so that clients keep their file.
	if err := at.server.Stop(); err != nil {
		t.Fatal(err)
	}
	at.start()
	at.must("study", "show", s.name)
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	// With the authority of another server, the field, the file and what to do are said.
	wrong := filepath.Join(newSite(t, "--tls").data, "tls", "authority.pem")
	theirs := []string{"TANDEM_SERVER=" + at.server.URL, "TANDEM_TOKEN=" + at.token, "TANDEM_CA=" + wrong}
	for _, c := range []struct {
		program, says string
		environment   []string
	}{
		{"tandem.Client(patience=0).studies()", "ca (or TANDEM_CA): nobody in '" + wrong + "' has signed the certificate of " + at.server.URL + ": copy authority.pem", theirs},
		{"print([s.name for s in tandem.Client(ca='" + filepath.Join(at.data, "tls", "authority.pem") + "').studies()])", "['encrypted']", theirs},
		{"print([s.name for s in tandem.Client().studies()])", "['encrypted']", at.environment()},
		{"tandem.Client(patience=0).studies()", "ca=FILE", without},
		{"tandem.Client(patience=0).studies()", "use https://", plain},
	} {
		command := exec.CommandContext(t.Context(), "python3", "-c", "import tandem; "+c.program)
		command.Env = append(append(os.Environ(), c.environment...), "PYTHONPATH="+client)
		if output, _ := command.CombinedOutput(); !strings.Contains(string(output), c.says) {
			t.Errorf("%s: want %q in:\n%s", c.program, c.says, output)
		}
	}
}

func TestTokensDoNotCrossTheNetworkInPlainText(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "tuning.invalid:0"} {
		got := cli(t, nil, "serve", "--data", t.TempDir(), "--listen", listen)
		if got.code != 2 || !strings.Contains(got.stderr, "--tls") || !strings.Contains(got.stderr, "--plain-http") {
			t.Errorf("--listen %s: exit code %d, %s", listen, got.code, got.stderr)
		}
	}
	for _, flags := range [][]string{{"--tls", "--tls-cert", "x", "--tls-key", "y"}, {"--tls-cert", "x"}, {"--tls-key", "x"}} {
		if got := cli(t, nil, append([]string{"serve", "--data", t.TempDir()}, flags...)...); got.code != 2 {
			t.Errorf("%v: exit code %d, %s", flags, got.code, got.stderr)
		}
	}
}
