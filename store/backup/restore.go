package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/filesystem"
	"github.com/tandem-tune/tandem/store/sqlite"
)

const (
	// unfinished is the folder, within the one to be restored, that holds what is
	// not complete yet.
	unfinished = "restoring"
	// maxManifest bounds what is read of a file before it is known for a backup.
	maxManifest = 1 << 20
)

// Restore makes a data folder of a backup, and returns once it is complete, was
// checked and is durable. The folder must be empty, or not there. If Restore
// fails, or is killed, there is no database in the folder, and another try may
// follow. The error is invalid for a folder or a file that cannot be used, and
// unavailable if the backup is damaged.
func Restore(ctx context.Context, file, data string) (_ Manifest, err error) {
	defer func() { err = filesystem.Explain(data, err) }()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return Manifest{}, problem.New(problem.Invalid, "make the data folder: %w", err)
	}
	if err := mustBeEmpty(data); err != nil {
		return Manifest{}, err
	}
	work := filepath.Join(data, unfinished)
	if err := os.RemoveAll(work); err != nil {
		return Manifest{}, fmt.Errorf("remove what another try left: %w", err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return Manifest{}, fmt.Errorf("restore: %w", err)
	}
	manifest, err := unpack(ctx, file, work)
	if err == nil {
		err = manifest.check(ctx, work)
	}
	if err == nil {
		err = publish(work, data)
	}
	return manifest, errors.Join(err, os.RemoveAll(work))
}

func mustBeEmpty(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return problem.New(problem.Invalid, "look into the data folder: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != unfinished && name != "lost+found" {
			return problem.New(problem.Invalid, "%s is not empty (there is %s): a backup is restored to a folder of its own; nothing was changed", data, name)
		}
	}
	return nil
}

// unpack writes the backup's parts to the folder, durably.
func unpack(ctx context.Context, path, work string) (Manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return Manifest{}, problem.New(problem.Invalid, "open the backup: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Manifest{}, fmt.Errorf("open the backup: %w", err)
	}
	meterOf(ctx).begin("unpacking", info.Size())
	in := tar.NewReader(until{ctx, file})
	manifest, err := readManifest(in, path)
	if err != nil {
		return manifest, err
	}
	artifacts, err := artifact.Open(filepath.Join(work, Artifacts))
	if err != nil {
		return manifest, err
	}
	var seen int64
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return manifest, broken(ctx, path, err)
		}
		name, isArtifact := strings.CutPrefix(header.Name, Artifacts+"/")
		switch {
		case isArtifact:
			seen++
			_, err = artifacts.Put(ctx, name, in, header.Size)
		case header.Name == Database:
			err = manifest.putDatabase(in, filepath.Join(work, Database))
		default:
			err = problem.New(problem.Invalid, "it holds %q, which no backup does", header.Name)
		}
		if err != nil {
			return manifest, broken(ctx, path, err)
		}
	}
	if seen != manifest.Artifacts {
		return manifest, broken(ctx, path, fmt.Errorf("%d artifacts of %d are in it", seen, manifest.Artifacts))
	}
	if manifest.Bucket != "" {
		return manifest, artifact.Move(filepath.Join(work, Artifacts), manifest.Bucket)
	}
	return manifest, nil
}

func broken(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err = filesystem.Explain(path, err); filesystem.Explained(err) {
		return err // which is not the backup's fault
	}
	return problem.New(problem.Unavailable, "the backup %s cannot be restored: %w; nothing was kept of it, take another backup", path, err)
}

func readManifest(in *tar.Reader, path string) (manifest Manifest, err error) {
	no := func(reason string) error {
		return problem.New(problem.Invalid, "%s is no backup of tandem's (%s): name a file that 'tandem backup' wrote", path, reason)
	}
	header, err := in.Next()
	switch {
	case err != nil:
		return manifest, no(err.Error())
	case header.Name != manifestName || header.Size > maxManifest:
		return manifest, no(fmt.Sprintf("it begins with %q instead of %s", header.Name, manifestName))
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return manifest, no(err.Error())
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return manifest, no(err.Error())
	}
	if manifest.Format != format {
		return manifest, problem.New(problem.Invalid, "the backup %s has the format %d, and this program knows %d: use the version of tandem that made it (%s), or a newer one", path, manifest.Format, format, manifest.Program)
	}
	return manifest, nil
}

// putDatabase writes the database, which must have the manifest's hash.
func (m Manifest) putDatabase(in io.Reader, to string) error {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), in)
	if sum := hex.EncodeToString(hash.Sum(nil)); err == nil && sum != m.SHA256 {
		err = fmt.Errorf("the database in it has the SHA-256 %s instead of %s", sum, m.SHA256)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// check reads what was unpacked, and compares it with what should be there.
func (m Manifest) check(ctx context.Context, work string) error {
	meterOf(ctx).begin("checking what was unpacked", 0)
	contents, err := sqlite.Verify(ctx, filepath.Join(work, Database))
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(contents.Rows, m.Contents.Rows) || contents.Schema != m.Contents.Schema || contents.Commits != m.Contents.Commits {
		return problem.New(problem.Unavailable, "the database holds %s, and the backup says %s", contents, m.Contents)
	}
	sizes, damaged, err := artifact.Verify(ctx, filepath.Join(work, Artifacts))
	if err != nil {
		return err
	}
	if missing := append(damaged, without(m.held(), sizes)...); len(missing) > 0 {
		return problem.New(problem.Unavailable, "artifacts are missing in the backup, or damaged: %v", missing)
	}
	return nil
}

// publish moves the parts to their places, the database last: a folder without
// one was not restored.
func publish(work, data string) error {
	if err := files.SyncFolder(work); err != nil {
		return err
	}
	for _, name := range []string{Artifacts, Database} {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(data, name)); err != nil {
			return fmt.Errorf("put %s in its place: %w", name, err)
		}
		if err := files.SyncFolder(data); err != nil {
			return err
		}
	}
	return files.SyncFolder(filepath.Dir(filepath.Clean(data)))
}
