package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestTheComposeFileServes starts the server as deploy/compose.yaml does, on a PostgreSQL
// without a container, and a study ends there.
func TestTheComposeFileServes(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Volumes     []string
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	server, database := file.Services["server"], file.Services["database"]
	if server.Environment["PGPASSWORD"] == "" || database.Environment["POSTGRES_USER"] != "tandem" || !slices.Contains(server.Volumes, "tandem:/var/lib/tandem") {
		t.Errorf("the services are %+v and %+v", server, database)
	}
	_, address := newDatabase(t)
	folder := t.TempDir()
	// Inside, the names of services and folders are others.
	here := map[string]string{"--data=/var/lib/tandem": "", "--database=postgres://tandem@database/tandem?sslmode=disable": "--database=" + address, "--listen=0.0.0.0:7171": ""}
	var flags []string
	for _, one := range server.Command[1:] {
		other, differs := here[one]
		if delete(here, one); !differs {
			flags = append(flags, one)
		} else if other != "" {
			flags = append(flags, other)
		}
	}
	if len(here) > 0 || server.Command[0] != "serve" {
		t.Fatalf("the command is %v, without %v", server.Command, here)
	}
	started, err := launch.ServeIn([]string{"PGPASSWORD=" + zero48}, binary, folder, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Kill)
	at := &site{t: t, listen: strings.TrimPrefix(started.URL, "http://"), data: folder, server: started, token: started.Token}
	s := newStudy(t, "composed", nineEpochs, "0.02", 3)
	at.worker("--slots", "1")
	at.must("study", "create", s.file)
	if found := read[result](t, at.must("study", "watch", s.name, "--json")); found.Study.Status != protocol.StudyCompleted {
		t.Errorf("the study is %s", found.Study.Status)
	}
}
