package launchcmd_test

import (
	"bytes"
	"os"
	"regexp"
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

// TestTheManifestsAreUnderstood: the launcher of deploy/kubernetes knows its flags, and the
// shapes beside it are some.
func TestTheManifestsAreUnderstood(t *testing.T) {
	url, folder := site(t)
	here := cluster.StartKubernetes(t, nil)
	const deploy = "../../../../deploy/kubernetes/"
	content, err := os.ReadFile(deploy + "base/launcher.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +- (--\S+)$`).FindAllStringSubmatch(string(content), -1)
	if len(found) < 8 {
		t.Fatalf("its flags are %v", found)
	}
	for _, shapes := range []string{"base/shapes.yaml", "overlays/gpu/shapes.yaml"} {
		line := []string{"kubernetes"}
		for _, one := range found {
			line = append(line, one[1])
		}
		line = append(line, "--queue=tandem", "--server="+url, "--ca=", "--token-file="+folder+"/token", "--logs="+folder+"/logs", "--namespace="+here.Namespace, "--shapes="+deploy+shapes, "--kubeconfig="+here.Config, "--dry-run")
		var out bytes.Buffer
		if code := term.Execute(t.Context(), launchcmd.Command(), line, &out, &out); code != 0 || !strings.Contains(out.String(), "of the shape cpu") {
			t.Errorf("%s: %d: %s", shapes, code, out.String())
		}
	}
}
