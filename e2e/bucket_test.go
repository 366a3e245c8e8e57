package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/bucket/buckettest"
	"github.com/tandem-tune/tandem/trial"
)

// keyed is a site whose server keeps artifacts in a bucket.
type keyed struct {
	*site
	service *buckettest.Service
	bucket  string
	client  *minio.Client
}

func (k *keyed) begin(args ...string) {
	k.t.Helper()
	var err error
	if k.server, err = launch.ServeIn(k.service.Environment, binary, k.data, append([]string{"--listen", k.listen, "--lease-seconds", "3", "--heartbeat-seconds", "1"}, args...)...); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(k.server.Kill)
	if k.token == "" {
		k.token = k.server.Token
	}
}

// objects counts those of artifacts.
func (k *keyed) objects() int { return k.under("site/sha256/") }

func (k *keyed) under(prefix string) (count int) {
	k.t.Helper()
	for one := range k.client.ListObjectsIter(k.t.Context(), k.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if one.Err != nil {
			k.t.Fatal(one.Err)
		}
		count++
	}
	return count
}

// inFolder counts the artifacts in the data folder.
func (k *keyed) inFolder() int {
	files, err := filepath.Glob(filepath.Join(k.data, "artifacts", "sha256", "*", "*"))
	if err != nil {
		k.t.Fatal(err)
	}
	return len(files)
}

// TestCheckpointsAreInABucket begins a study on a server that keeps checkpoints in its data
// folder, and ends it on the same server with a bucket: the folder's go there, later ones
// are kept there, trials go on from them in another worker, which reads them from the
// bucket itself and sends them there. A backup is of the database alone, and the server does not start without
// the bucket.
func TestCheckpointsAreInABucket(t *testing.T) {
	t.Parallel()
	service := buckettest.Open(t)
	name, client := service.Bucket(t)
	k := &keyed{&site{t: t, listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), data: t.TempDir()}, service, name, client}
	k.begin()
	s := newStudy(t, "bucketed", "epochs, epochs: {min: 30, max: 30}, eta: 3", "0.3", 1)
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Replace(string(content), "environment: {", `environment: {CHECKPOINT_BYTES: "2000000", `, 1)
	if err := os.WriteFile(s.file, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	k.must("study", "create", s.file)
	first := k.worker("--name", "first", "--slots", "1")
	until(t, "a checkpoint", func() bool {
		trials := k.books(s.name).Trials
		return len(trials) > 0 && trials[0].Checkpoint != nil && k.inFolder() > 0
	})
	first.Kill() // in the middle of a trial
	if k.objects() != 0 {
		t.Error("a server without --artifacts wrote into the bucket")
	}
	if err := k.server.Stop(); err != nil {
		t.Fatal(err)
	}

	k.begin("--artifacts", "s3://"+name+"/site", "--artifacts-endpoint", service.Endpoint)
	if in, there := k.inFolder(), k.objects(); in != 0 || there == 0 {
		t.Errorf("after the move %d artifacts are in the folder and %d in the bucket", in, there)
	}
	k.worker("--name", "second", "--slots", "1")
	found := read[result](t, k.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Created != 1 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	if in, there := k.inFolder(), k.objects(); in != 0 || there == 0 {
		t.Errorf("after the study %d artifacts are in the folder and %d in the bucket", in, there)
	}
	if service.Fake && (service.Linked.Load() == 0 || service.Sent.Load() < 2) { // the server's own try is one
		t.Errorf("the worker read %d checkpoints from the bucket itself and sent %d there", service.Linked.Load(), service.Sent.Load()-1)
	}
	if left := k.under("site/incoming/"); left != 0 {
		t.Errorf("%d uploads were not taken", left)
	}
	output := filepath.Join(t.TempDir(), "winner")
	k.must("study", "checkpoint", s.name, "--output", output)
	if content, err := os.ReadDir(output); err != nil || len(content) == 0 {
		t.Errorf("the winner's checkpoint is %v, %v", content, err)
	}
	saved := filepath.Join(t.TempDir(), "saved.tar")
	if told := k.must("backup", saved, "--data", k.data); !strings.Contains(told, "s3://"+name+"/site, which is not part of this") {
		t.Errorf("the backup says\n%s", told)
	}
	k.must("verify", k.data)
	if err := k.server.Stop(); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	k.must("restore", saved, "--data", restored)
	k.data = restored
	without := cli(t, service.Environment, "serve", "--data", restored, "--listen", k.listen)
	if without.code == 0 || !strings.Contains(without.stderr, "start with --artifacts s3://"+name+"/site") {
		t.Errorf("without the bucket it said %s", without.stderr)
	}
	k.begin("--artifacts", "s3://"+name+"/site", "--artifacts-endpoint", service.Endpoint)
	if view := read[protocol.StudyView](t, k.must("study", "show", s.name, "--json")); view.Status != protocol.StudyCompleted {
		t.Errorf("restored, the study is %s", view.Status)
	}
	k.must("study", "checkpoint", s.name, "--output", output+"-again")
}
