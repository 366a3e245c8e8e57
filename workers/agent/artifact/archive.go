// Package artifact moves what trials keep between worker and server: checkpoints, as
// archives in a cache, and the models that scripts save.
package artifact

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Limits bound a checkpoint or a data set, packed or unpacked.
type Limits struct {
	Bytes int64
	Files int
	// Mode is that of files that are unpacked; 0: 0600.
	Mode int64
}

var errTooLarge = errors.New("it is larger than allowed")

// told names the limits that were met.
func (l Limits) told(err error) error {
	if !errors.Is(err, errTooLarge) {
		return err
	}
	return problem.New(problem.Exhausted, "%w: at most %d MiB and %d files: keep less in it", errTooLarge, l.Bytes>>20, l.Files)
}

// deepest bounds how deep folders go.
const deepest = 64

// pack writes the folder's content as a tar file. Equal content gives equal
// bytes: names in order, no times, no owners. Only plain files and folders can
// be in it.
func pack(directory string, out io.Writer, limit Limits) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewWriter(out)
	left := limit
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := left.take(name, info); err != nil {
			return err
		}
		return add(archive, root, name, info)
	})
	return errors.Join(limit.told(err), archive.Close())
}

// take counts an entry against the limits and refuses what cannot be kept.
func (l *Limits) take(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return problem.New(problem.Invalid, "%q is neither a file nor a folder: it can hold plain files only", name)
	}
	if err := checkName(name); err != nil {
		return err
	}
	l.Files--
	if info.Mode().IsRegular() {
		l.Bytes -= info.Size()
	}
	if l.Files < 0 || l.Bytes < 0 {
		return errTooLarge
	}
	return nil
}

// checkName refuses names that another system could read as a path outside of
// the checkpoint.
func checkName(name string) error {
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || strings.Count(name, "/") >= deepest {
		return problem.New(problem.Invalid, "%q is a name that cannot be kept", name)
	}
	return nil
}

func add(archive *tar.Writer, root *os.Root, name string, info fs.FileInfo) error {
	if info.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	if copied, err := io.Copy(archive, file); err != nil || copied != info.Size() {
		return errors.Join(err, problem.New(problem.Conflict, "%q changed while it was packed", name))
	}
	return nil
}

// unpack puts an archive's content into an empty folder, and nothing outside of it.
// labelled, if there is one, has to take the archive's comment before that.
func unpack(in io.Reader, directory string, limit Limits, labelled func(comment string) error) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	archive, left := tar.NewReader(in), limit
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what is packed: %w", err)
		}
		if labelled != nil { // what follows needs none any more
			if err := labelled(header.PAXRecords["comment"]); err != nil {
				return err
			}
			labelled = nil
			continue
		}
		name := strings.TrimSuffix(header.Name, "/")
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
			return problem.New(problem.Invalid, "%q is neither a file nor a folder", name)
		}
		if err := left.take(name, header.FileInfo()); err != nil {
			return limit.told(err)
		}
		header.Mode = cmp.Or(limit.Mode, 0o600)
		if err := extract(archive, root, name, header); err != nil {
			return fmt.Errorf("unpack %q: %w", name, err)
		}
	}
}

func extract(archive *tar.Reader, root *os.Root, name string, header *tar.Header) error {
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o700)
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	// A name that comes twice is refused, not overwritten or followed.
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, header.FileInfo().Mode())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, archive)
	return errors.Join(err, file.Close())
}

// fingerprint tells whether a folder's files are still the same ones, without
// reading them; empty for a folder with nothing in it.
func fingerprint(directory string) (string, error) {
	hash := sha256.New()
	entries := 0
	err := fs.WalkDir(os.DirFS(directory), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		entries++
		modified := info.ModTime().UnixNano()
		if info.IsDir() {
			modified = 0 // says nothing that its entries do not
		}
		fmt.Fprintf(hash, "%q %v %d %d %d\n", name, info.Mode(), info.Size(), modified, inodeOf(info))
		return nil
	})
	if err != nil || entries == 0 {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
