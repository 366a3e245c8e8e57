// Package backup makes one file of a server's data folder, and a data folder of
// such a file.
//
// A backup is a tar archive: manifest.json, which says what is in it, the
// database, and the artifacts that its checkpoints refer to. Its one invariant:
// a file under its final name is complete, was checked row by row before it got
// that name, and survives a power loss; the same holds for a folder that was
// restored. It works beside a running server and never changes its data.
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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/filesystem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// The names of a data folder's parts, which are also those in an archive.
const (
	// Database is the database's file.
	Database = "tandem.db"
	// Artifacts is the folder of artifacts.
	Artifacts = "artifacts"

	manifestName = "manifest.json"
	// format is the version of the archive's layout.
	format = 1
	// mode of all files: hashes of tokens are in them, and what models learned.
	mode = 0o600
)

// Manifest says what a backup holds.
type Manifest struct {
	// Format is the version of the archive's layout.
	Format int `json:"format"`
	// Created is when the state was taken, Program the version that took it.
	Created time.Time `json:"created"`
	Program string    `json:"program"`
	// Contents is what is in the database.
	Contents sqlite.Contents `json:"contents"`
	// SHA256 is of the database's file.
	SHA256 string `json:"sha256"`
	// Artifacts is how many artifacts there are, Bytes their length together.
	Artifacts int64 `json:"artifacts"`
	Bytes     int64 `json:"artifact_bytes"`
	// Bucket has the artifacts instead; empty: they are here.
	Bucket string `json:"bucket,omitempty"`
}

// Source is the data folder of which a backup is made.
type Source struct {
	Data string
	// Program is the version of this program, Now the present time.
	Program string
	Now     func() time.Time
}

// Write makes a backup of the folder, whose server may be running: the state of
// one moment, of which nothing acknowledged before the call is missing. The file
// appears under its name when it is complete, was checked and is durable; one
// that is there already is not touched. The error is invalid for a folder or a
// name that cannot be used, and unavailable if the data is damaged.
func (s Source) Write(ctx context.Context, file string) (_ Manifest, err error) {
	defer func() { err = filesystem.Explain(file, err) }()
	if _, err := os.Lstat(file); err == nil {
		return Manifest{}, problem.New(problem.Invalid, "%s is there already, and is not replaced: choose another name, or remove it", file)
	}
	if _, err := os.Stat(filepath.Join(s.Data, Database)); err != nil {
		return Manifest{}, problem.New(problem.Invalid, "there is no database: %w; name the data folder of a server with --data", err)
	}
	// Before the database is copied, so that none that the copy refers to can be
	// swept: it is held, or is younger than the copy's beginning.
	held, err := artifact.Hold(filepath.Join(s.Data, Artifacts))
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	work, err := os.MkdirTemp(filepath.Dir(file), filepath.Base(file)+".*.partial") // with mode 0700
	if err != nil {
		return Manifest{}, fmt.Errorf("make the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	copied := filepath.Join(work, Database)
	manifest := Manifest{Format: format, Created: s.Now().UTC(), Program: s.Program}
	meterOf(ctx).begin("copying the database", 0)
	if err := dbfile.Copy(ctx, filepath.Join(s.Data, Database), copied); err != nil {
		return Manifest{}, err
	}
	meterOf(ctx).begin("checking the copy", 0)
	if manifest.Contents, err = sqlite.Verify(ctx, copied); err != nil {
		if _, damaged := sqlite.Verify(ctx, filepath.Join(s.Data, Database)); damaged != nil {
			err = damaged // names the file that stays
		}
		return Manifest{}, fmt.Errorf("the copy of the database was checked, and is not kept: %w", err)
	}
	if manifest.SHA256, err = files.Sum(copied); err != nil {
		return Manifest{}, err
	}
	if manifest.Bucket, err = artifact.Elsewhere(filepath.Join(s.Data, Artifacts)); err != nil {
		return Manifest{}, err
	}
	for _, bytes := range manifest.held() {
		manifest.Artifacts++
		manifest.Bytes += bytes
	}
	made := filepath.Join(work, "backup")
	if err := manifest.archive(ctx, made, copied, held); err != nil {
		return Manifest{}, err
	}
	if err := os.Rename(made, file); err != nil {
		return Manifest{}, fmt.Errorf("name the backup: %w", err)
	}
	return manifest, files.SyncFolder(filepath.Dir(file))
}

// held are the artifacts that belong into the backup, with their lengths.
func (m Manifest) held() map[string]int64 {
	if m.Bucket != "" {
		return nil
	}
	return m.Contents.Artifacts
}

// archive writes the archive and makes its bytes durable.
func (m Manifest) archive(ctx context.Context, path, database string, held *artifact.Held) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("make the backup: %w", err)
	}
	out := tar.NewWriter(file)
	err = m.fill(ctx, out, database, held)
	if err == nil {
		err = out.Close()
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

func (m Manifest) fill(ctx context.Context, out *tar.Writer, database string, held *artifact.Held) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := m.header(out, manifestName, int64(len(text))); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	file, err := os.Open(database)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	meterOf(ctx).begin("writing the archive", info.Size()+m.Bytes)
	if _, err := m.add(ctx, out, Database, info.Size(), file); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.held())) {
		if err := m.addArtifact(ctx, out, name, held); err != nil {
			return err
		}
	}
	return nil
}

func (m Manifest) addArtifact(ctx context.Context, out *tar.Writer, name string, held *artifact.Held) error {
	file, bytes, err := held.Open(name)
	if problem.Is(err, problem.NotFound) {
		return problem.New(problem.Unavailable, "a checkpoint refers to artifact %s, which is not there: the folder of artifacts is damaged", name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	sum, err := m.add(ctx, out, Artifacts+"/"+name, bytes, file)
	if err == nil && sum != name {
		err = problem.New(problem.Unavailable, "artifact %s is damaged: its bytes have the SHA-256 %s", name, sum)
	}
	return err
}

func (m Manifest) header(out *tar.Writer, name string, size int64) error {
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: mode, ModTime: m.Created, Format: tar.FormatPAX})
}

// add writes one file and returns the SHA-256 of its bytes.
func (m Manifest) add(ctx context.Context, out *tar.Writer, name string, size int64, from io.Reader) (string, error) {
	if err := m.header(out, name, size); err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err := io.Copy(io.MultiWriter(out, hash), until{ctx, from})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// until ends when its context does.
type until struct {
	ctx  context.Context
	from io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := u.from.Read(p)
	meterOf(u.ctx).moved(n)
	return n, err
}

// Verify reads everything in a data folder and says what there is, or what is
// wrong with it. It changes nothing; a server may be using the folder.
func Verify(ctx context.Context, data string) (_ Manifest, err error) {
	defer func() { err = filesystem.Explain(data, err) }()
	path := filepath.Join(data, Database)
	var m Manifest
	meterOf(ctx).begin("checking the database", 0)
	contents, err := sqlite.Verify(ctx, path)
	m.Contents = contents
	if err != nil {
		return m, err
	}
	if m.Bucket, err = artifact.Elsewhere(filepath.Join(data, Artifacts)); err != nil || m.Bucket != "" {
		return m, err
	}
	meterOf(ctx).begin("checking the checkpoints", 0)
	sizes, damaged, err := artifact.Verify(ctx, filepath.Join(data, Artifacts))
	if err != nil {
		return m, err
	}
	m.Artifacts = int64(len(sizes))
	for _, bytes := range sizes {
		m.Bytes += bytes
	}
	if missing := without(contents.Artifacts, sizes); len(missing) > 0 {
		// A running server may have let go of some since the database was read.
		now, err := sqlite.Verify(ctx, path)
		if err != nil {
			return m, err
		}
		for _, name := range missing {
			if _, still := now.Artifacts[name]; still {
				damaged = append(damaged, name+" (missing, or of another length)")
			}
		}
	}
	if len(damaged) > 0 {
		return m, problem.New(problem.Unavailable, "the database %s is whole, but artifacts of checkpoints are damaged: %v. Remove the damaged ones and restore a backup, or let their trials start again", path, damaged)
	}
	return m, nil
}

// without are the wanted artifacts that are not there with their length.
func without(wanted, there map[string]int64) []string {
	var missing []string
	for name, bytes := range wanted {
		if size, found := there[name]; !found || size != bytes {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}
