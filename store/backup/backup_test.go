package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/backup"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/demand"
)

// folder is a data folder with a server's stores open on it.
type folder struct {
	data      string
	store     *sqlite.Store
	artifacts *artifact.Store
}

func open(t *testing.T, data string) folder {
	t.Helper()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(data, backup.Database), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	artifacts, err := artifact.Open(filepath.Join(data, backup.Artifacts))
	if err != nil {
		t.Fatal(err)
	}
	return folder{data, store, artifacts}
}

func source(data string) backup.Source {
	return backup.Source{Data: data, Program: "test", Now: func() time.Time { return time.Unix(1_000_000, 0) }}
}

func bytesOf(study string, number int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%s %d\n", study, number), 300)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// step trains a trial once more: its checkpoint is put, then a change refers to
// it, and nothing refers to the one before any more.
func (f folder) step(ctx context.Context, id string, number int) error {
	data := bytesOf(id, number)
	if _, err := f.artifacts.Put(ctx, hashOf(data), bytes.NewReader(data), 1<<20); err != nil {
		return err
	}
	one := trial.Trial{
		ID: trial.ID(id + "-trial"), Study: id, State: trial.Queued, LeaseEpoch: trial.LeaseEpoch(number),
		Checkpoint: &trial.Checkpoint{Epoch: number, Artifact: hashOf(data), Bytes: int64(len(data))},
	}
	write := journal.TrialWrite{Trial: one}
	if number > 0 {
		write.Guard = &journal.Guard{State: trial.Queued, LeaseEpoch: trial.LeaseEpoch(number - 1)}
	}
	return f.store.Apply(ctx, journal.Change{
		Trials:  []journal.TrialWrite{write},
		Reports: []trial.Report{{Trial: one.ID, Epoch: number + 1, Metrics: map[string]trial.Float{"loss": trial.Float(number)}}},
		Events:  []journal.Event{{Study: id, Sequence: int64(number) + 1, Kind: journal.TrialState, Trial: one.ID, State: "queued"}},
	})
}

func (f folder) insert(ctx context.Context, id string) error {
	return f.store.Apply(ctx, journal.Change{Insert: &journal.Study{ID: id, Definition: definition.Definition{Name: id}, Created: time.Unix(1, 0)}})
}

// sweep removes what no checkpoint refers to and was put before the time, as a
// server does.
func (f folder) sweep(ctx context.Context, studies []string, cutoff time.Time) error {
	used := map[string]bool{}
	for _, id := range studies {
		trials, err := f.store.Trials(ctx, id)
		if err != nil {
			return err
		}
		for _, one := range trials {
			used[one.Checkpoint.Artifact] = true
		}
	}
	for entry, err := range f.artifacts.All() {
		if err != nil {
			return err
		}
		if used[entry.SHA256] {
			continue
		}
		if _, err := f.artifacts.DeleteBefore(entry.SHA256, cutoff); err != nil {
			return err
		}
	}
	return nil
}

// Four write while backups are taken. Each backup has, of every writer, what was
// acknowledged to it before the backup began, nothing that was not sent before it
// ended, and no half of anything.
func TestBackupUnderLoadIsAPrefixOfWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	live := open(t, filepath.Join(t.TempDir(), "live"))
	ctx := context.WithoutCancel(t.Context())
	studies := []string{"a", "b", "c", "d"}
	var begun, acknowledged [4]atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	defer func() {
		close(stop)
		group.Wait()
	}()
	var sweeping sync.Mutex // a sweep takes a checkpoint that was put and not committed yet for an old one
	for writer, id := range studies {
		if err := live.insert(ctx, id); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for number := 0; ; number++ {
				select {
				case <-stop:
					return
				default:
				}
				begun[writer].Add(1)
				sweeping.Lock()
				err := live.step(ctx, id, number)
				sweeping.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[writer].Add(1)
			}
		})
	}
	// A server spares what is younger than some minutes; here it is what is
	// younger than the backup. The clock of the file system may lag.
	var cutoff atomic.Int64
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			sweeping.Lock()
			err := live.sweep(ctx, studies, time.Unix(0, cutoff.Load()))
			sweeping.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3 {
		var before [4]int64
		for writer := range studies {
			before[writer] = acknowledged[writer].Load()
		}
		sweeping.Lock() // while no artifact is being put
		cutoff.Store(time.Now().Add(-50 * time.Millisecond).UnixNano())
		sweeping.Unlock()
		file := filepath.Join(t.TempDir(), "backup.tar")
		if _, err := source(live.data).Write(ctx, file); err != nil {
			t.Fatal(err)
		}
		restored := filepath.Join(t.TempDir(), "restored")
		if _, err := backup.Restore(ctx, file, restored); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Verify(ctx, restored); err != nil {
			t.Error(err)
		}
		copied := open(t, restored)
		for writer, id := range studies {
			wantPrefix(t, copied, id, before[writer], begun[writer].Load())
		}
	}
	if left, err := filepath.Glob(filepath.Join(live.data, backup.Artifacts, "temporary", "held-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func wantPrefix(t *testing.T, copied folder, id string, least, most int64) {
	t.Helper()
	events, err := copied.store.Events(t.Context(), id, 0, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	count := int64(len(events))
	if count < least || count > most {
		t.Errorf("study %s has %d events: %d were acknowledged before the backup, and %d sent until its end", id, count, least, most)
	}
	if count == 0 {
		return
	}
	reports, err := copied.store.Reports(t.Context(), trial.ID(id+"-trial"))
	if err != nil || int64(len(reports)) != count {
		t.Errorf("study %s has %d events and %d reports: %v", id, count, len(reports), err)
	}
	one, err := copied.store.Trial(t.Context(), trial.ID(id+"-trial"))
	if err != nil || int64(one.LeaseEpoch) != count-1 {
		t.Fatalf("study %s has %d events, and its trial is %+v: %v", id, count, one, err)
	}
	file, _, err := copied.artifacts.Open(one.Checkpoint.Artifact)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if data, err := io.ReadAll(file); err != nil || !bytes.Equal(data, bytesOf(id, int(count)-1)) {
		t.Errorf("the checkpoint of study %s has other bytes: %v", id, err)
	}
}

// filled is a stopped server's folder.
func filled(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	f := open(t, data)
	for _, id := range []string{"a", "b"} {
		if err := f.insert(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for number := range 3 {
			if err := f.step(t.Context(), id, number); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	return data
}

func taken(t *testing.T, data string) (string, backup.Manifest) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.tar")
	manifest, err := source(data).Write(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return file, manifest
}

func picture(t *testing.T, data string) string {
	t.Helper()
	f := open(t, data)
	defer f.store.Close() //nolint:errcheck // closed again at the test's end
	return storetest.Picture(t, f.store)
}

func TestRestoredFolderIsTheOneThatWasBackedUp(t *testing.T) {
	t.Parallel()
	data := filled(t)
	file, manifest := taken(t, data)
	if manifest.Contents.Rows["report"] != 6 || manifest.Artifacts != 2 || manifest.Contents.Schema == 0 || !manifest.Created.Equal(time.Unix(1_000_000, 0)) {
		t.Errorf("the backup says %+v", manifest)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v: others may read it", info, err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	got, err := backup.Restore(t.Context(), file, restored)
	if err != nil || got.SHA256 != manifest.SHA256 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, want := picture(t, restored), picture(t, data); got != want {
		t.Errorf("restored is\n%s\nwant\n%s", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(restored, "restoring*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	again, _ := taken(t, restored)
	if first, second := entries(t, file), entries(t, again); !slices.Equal(first, second) {
		t.Errorf("a backup of what was restored has %v, want %v", second, first)
	}
}

// entries are the names and lengths in an archive, which any tar program lists.
func entries(t *testing.T, file string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, header.Name)
	}
}

// What a server recorded of the demand for GPUs goes with its studies.
func TestRecordedDemandIsInTheBackup(t *testing.T) {
	t.Parallel()
	live := open(t, filepath.Join(t.TempDir(), "live"))
	record, now := forecasting.NewRecord(live.store), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var want []demand.Minute
	for i := range 130 {
		one := demand.Minute{At: now.Add(time.Duration(i) * time.Minute), Want: demand.Want{Running: float64(i % 7)}, Capacity: 8, Told: []float64{1, 2}}
		want = append(want, one)
		if err := record.Append(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	file, _ := taken(t, live.data)
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := backup.Restore(t.Context(), file, restored); err != nil {
		t.Fatal(err)
	}
	got, err := forecasting.NewRecord(open(t, restored).store).Read(t.Context(), now)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d minutes of %d: %v", len(got), len(want), err)
	}
}

func TestNothingIsReplaced(t *testing.T) {
	t.Parallel()
	data := filled(t)
	before := picture(t, data)
	file, _ := taken(t, data)
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source(data).Write(t.Context(), file); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), file) {
		t.Errorf("a backup over another one: %v", err)
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, kept) {
		t.Errorf("the first backup was changed: %v", err)
	}
	if _, err := backup.Restore(t.Context(), file, data); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a restore over a server's data: %v", err)
	}
	if after := picture(t, data); after != before {
		t.Errorf("the data is\n%s\nwant\n%s", after, before)
	}
}

func TestMountedVolumeCanBeRestoredTo(t *testing.T) {
	t.Parallel()
	file, _ := taken(t, filled(t))
	volume := t.TempDir() // there, and cannot be renamed to
	for _, name := range []string{"lost+found", "restoring/artifacts"} {
		if err := os.MkdirAll(filepath.Join(volume, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backup.Restore(t.Context(), file, volume); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Verify(t.Context(), volume); err != nil {
		t.Error(err)
	}
}

// Whatever is wrong with a backup, nothing that could be taken for data comes of
// it.
func TestDamagedBackupsAreRefused(t *testing.T) {
	t.Parallel()
	file, _ := taken(t, filled(t))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{
		"empty": nil, "no archive": []byte(strings.Repeat("photo", 1000)),
		"without its end": data[:len(data)-1024-3000], "half": data[:len(data)/2], "without its first block": data[512:],
	}
	for at := 700; at < len(data)-1024; at += len(data) / 40 {
		flipped := bytes.Clone(data)
		flipped[at] ^= 0x10
		cases[fmt.Sprintf("a bit at %d", at)] = flipped
	}
	var refused int
	for name, content := range cases {
		damaged := filepath.Join(t.TempDir(), "damaged.tar")
		if err := os.WriteFile(damaged, content, 0o600); err != nil {
			t.Fatal(err)
		}
		restored := filepath.Join(t.TempDir(), "restored")
		_, err := backup.Restore(t.Context(), damaged, restored)
		if err == nil { // the bit was padding, or a time
			if got, want := picture(t, restored), picture(t, restoredFrom(t, file)); got != want {
				t.Errorf("%s: restored is\n%s\nwant\n%s", name, got, want)
			}
			continue
		}
		refused++
		if !problem.Is(err, problem.Invalid) && !problem.Is(err, problem.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if foreign := slices.Contains([]string{"empty", "no archive", "without its first block"}, name); foreign && !strings.Contains(err.Error(), damaged+" is no backup of tandem's") {
			t.Errorf("%s: the file is not named: %v", name, err)
		}
		if left, err := os.ReadDir(restored); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", name, left, err)
		}
	}
	if refused < 30 {
		t.Errorf("only %d of %d were refused", refused, len(cases))
	}
}

func restoredFrom(t *testing.T, file string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "restored")
	if _, err := backup.Restore(t.Context(), file, data); err != nil {
		t.Fatal(err)
	}
	return data
}

// Names in an archive lead nowhere else.
func TestArchiveOfAnEnemyWritesNothingOutside(t *testing.T) {
	t.Parallel()
	file, _ := taken(t, filled(t))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../escaped", "artifacts/../../escaped", "/tmp/escaped", "tandem.db/../../escaped", "manifest.json"} {
		var evil bytes.Buffer
		in, out := tar.NewReader(bytes.NewReader(data)), tar.NewWriter(&evil)
		for {
			header, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := out.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(out, in); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		outer := t.TempDir()
		path, restored := filepath.Join(t.TempDir(), "evil.tar"), filepath.Join(outer, "data")
		if err := os.WriteFile(path, evil.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), path, restored); err == nil {
			t.Errorf("%s was restored", name)
		}
		if left, err := filepath.Glob(filepath.Join(outer, "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", name, left, err)
		}
	}
}

func TestVerifySaysWhatIsDamaged(t *testing.T) {
	t.Parallel()
	data := filled(t)
	seen, err := backup.Verify(t.Context(), data)
	if err != nil || seen.Contents.Rows["trial"] != 2 || seen.Artifacts != 6 {
		t.Fatalf("%+v, %v", seen, err)
	}
	last := hashOf(bytesOf("a", 2))
	path := filepath.Join(data, backup.Artifacts, "sha256", last[:2], last)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Verify(t.Context(), data); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), last) {
		t.Errorf("a damaged artifact: %v", err)
	}
	if _, err := source(data).Write(t.Context(), filepath.Join(t.TempDir(), "b.tar")); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), last) {
		t.Errorf("a backup of a damaged artifact: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.tar")
	for what, check := range map[string]func() error{
		"verify": func() error { _, err := backup.Verify(t.Context(), data); return err },
		"backup": func() error { _, err := source(data).Write(t.Context(), file); return err },
	} {
		if err := check(); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), last) {
			t.Errorf("%s of a folder without an artifact: %v", what, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
		t.Errorf("a backup that failed left %v, %v", left, err)
	}
	if _, err := backup.Verify(t.Context(), t.TempDir()); !problem.Is(err, problem.Invalid) {
		t.Errorf("a folder without data: %v", err)
	}
}

// SQLite keeps a page of its own at 1 GiB, where locks are. A database beyond it
// is backed up and restored like any other. It takes minutes and 5 GB.
func TestLargeBackup(t *testing.T) {
	if os.Getenv("TANDEM_LARGE_BACKUP") == "" {
		t.Skip("set TANDEM_LARGE_BACKUP=1 for a backup of 1.2 GiB")
	}
	data := filepath.Join(t.TempDir(), "data")
	f := open(t, data)
	if err := f.insert(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	const events = 1200
	text := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for number := range int64(events) {
		err := f.store.Apply(t.Context(), journal.Change{Events: []journal.Event{{Study: "a", Sequence: number + 1, Kind: journal.Searched, Data: text}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	file, manifest := taken(t, data)
	if manifest.Contents.Bytes < 1200<<20 {
		t.Errorf("the database has only %d bytes", manifest.Contents.Bytes)
	}
	written := time.Since(begun)
	restored := restoredFrom(t, file)
	t.Logf("%d bytes: backed up in %v, restored in %v", manifest.Contents.Bytes, written, time.Since(begun)-written)
	copied := open(t, restored)
	for after := int64(0); after < events; after += 100 {
		page, err := copied.store.Events(t.Context(), "a", after, 100)
		if err != nil || len(page) != 100 || !bytes.Equal(page[99].Data, text) {
			t.Fatalf("behind event %d are %d events: %v", after, len(page), err)
		}
	}
}

// A backup's file, or a folder of something else, is told from a data folder, with what to do.
func TestWhatIsNoDataFolderIsTold(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backup.tar")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{file, t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		_, written := backup.Source{Data: data, Now: time.Now}.Write(t.Context(), filepath.Join(t.TempDir(), "new.tar"))
		_, verified := backup.Verify(t.Context(), data)
		for err, fix := range map[error]string{written: "with --data", verified: "tandem restore checks a backup"} {
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), data+"/tandem.db") || !strings.Contains(err.Error(), fix) {
				t.Errorf("%s: %v", data, err)
			}
		}
	}
}

// A backup of a damaged database names that one, not its own copy, which is gone then.
func TestABackupOfADamagedDatabaseNamesTheDatabase(t *testing.T) {
	t.Parallel()
	data := filled(t)
	path := filepath.Join(data, backup.Database)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(content, []byte("rack"))
	if at < 0 {
		t.Fatal(len(content), "bytes have no text to damage")
	}
	content[at] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.tar")
	_, err = source(data).Write(t.Context(), file)
	if !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "keep a copy of "+path+" ") || strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
