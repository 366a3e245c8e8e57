package launchcmd_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/launchcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/e2e/cluster"
)

func TestPodsAreNamedByFlags(t *testing.T) {
	url, folder := site(t)
	here := cluster.StartKubernetes(t, nil)
	for _, test := range []struct {
		line string
		code int
		says string
	}{
		{"doctor kubernetes --image x", 0, "yes  secrets                may create, delete, update"},
		{"doctor kubernetes --image x --priority-class nowhere", 0, "no   a worker's pod         is refused: "},
		{"doctor kubernetes", 1, "--image is missing"},
		{"doctor kubernetes --image x --name A.B", 1, "begin with a lower-case letter"},
		{"kubernetes --image x --dry-run --server " + url + " --token-file " + folder + "/token --logs " + folder + "/logs", 0, "would start 2 workers of the shape cpu"},
		{"kubernetes --dry-run --server " + url + " --token-file " + folder + "/token --logs " + folder + "/logs", 2, "--image is missing"},
		{"kubernetes --image x --worker-token-file " + folder + "/token", 2, "unknown flag"},
	} {
		var out bytes.Buffer
		code := term.Execute(t.Context(), launchcmd.Command(), append(strings.Fields(test.line), "--kubeconfig", here.Config), &out, &out)
		if code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: %d: %s", test.line, code, out.String())
		}
	}
	if pods, secrets := here.Objects(); len(pods)+len(secrets) > 0 {
		t.Errorf("there are %+v, %v", pods, secrets)
	}
}
