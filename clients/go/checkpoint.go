package tandem

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	// kept is the file or folder below the checkpoint's folder that Checkpoint writes.
	kept = "checkpoint"

	mostFiles = 100_000
	mostBytes = 1 << 40
	// sendings is how often an artifact is sent for one checkpoint: a server that was
	// started meanwhile wants the bytes again.
	sendings = 5
)

// errDamaged says that nobody can go on from a checkpoint.
var errDamaged = errors.New("the checkpoint is damaged")

func isDamaged(err error) bool { return errors.Is(err, errDamaged) || IsCode(err, NotFound) }

// keep replaces the folder's checkpoint by what save writes; if save fails, the old
// one stays.
func keep(folder string, save func(path string) error) error {
	beside, err := os.MkdirTemp(filepath.Dir(folder), ".checkpoint-") // on the same file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	fresh := filepath.Join(beside, kept)
	if err := save(fresh); err != nil {
		return err
	}
	if _, err := os.Stat(fresh); err != nil {
		return fmt.Errorf("save wrote nothing at the path that it was given: %w", err)
	}
	if err := plainFiles(fresh); err != nil {
		return err
	}
	target := filepath.Join(folder, kept)
	if _, err := os.Stat(target); err == nil {
		// Nobody reads in between: a checkpoint counts once it is published.
		if err := os.Rename(target, filepath.Join(beside, "replaced")); err != nil {
			return err
		}
	}
	return os.Rename(fresh, target)
}

// plainFiles refuses what is no plain file. Nothing is synced: what outlives the machine is the
// server's copy.
func plainFiles(path string) error {
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("a checkpoint holds plain files and folders only, %s is something else", path)
		}
		return nil
	})
}

// pack writes the folder's content as a tar file: names in order, no times, no owners,
// so that equal content has equal bytes.
func pack(folder string, out io.Writer) error {
	archive := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name) + "/", Mode: 0o755})
		}
		return packFile(archive, path, filepath.ToSlash(name))
	})
	return errors.Join(err, archive.Close())
}

func packFile(archive *tar.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644}); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// unpack trusts nothing: only plain files and folders, only below the folder, bounded.
func unpack(source io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	archive, files, size := tar.NewReader(source), 0, int64(0)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if files, size = files+1, size+header.Size; files > mostFiles || size > mostBytes {
			return fmt.Errorf("%w: it has more than %d files or %d bytes", errDamaged, mostFiles, int64(mostBytes))
		}
		if !filepath.IsLocal(header.Name) || header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeReg {
			return fmt.Errorf("%w: %q is neither a file nor a folder below it", errDamaged, header.Name)
		}
		if header.Typeflag == tar.TypeDir {
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		} else {
			err = unpackFile(root, filepath.Clean(header.Name), archive)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it has %q twice", errDamaged, name)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// publish sends what is in the trial's folder, and makes it the checkpoint.
func (l *leased) publish(ctx context.Context, epoch int) error {
	path := filepath.Join(l.folder, "packed.tar")
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("tandem: pack the checkpoint: %w", err)
	}
	sum := sha256.New()
	err = errors.Join(pack(l.directory(), io.MultiWriter(file, sum)), file.Close())
	defer os.Remove(path)
	if err != nil {
		return fmt.Errorf("tandem: pack the checkpoint: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("tandem: pack the checkpoint: %w", err)
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	upload := call{
		doing: "upload the checkpoint", method: http.MethodPut, path: "/artifacts/" + hash, kind: "application/octet-stream",
		open: func() (io.ReadCloser, error) { return os.Open(path) }, size: info.Size(), wait: transferTime(info.Size()),
	}
	for sent := 1; ; sent++ {
		if err := l.session.client.to.send(ctx, upload, nil); err != nil {
			return err
		}
		err := l.post(ctx, fmt.Sprintf("keep checkpoint %d", epoch), "checkpoint", map[string]any{"epoch": epoch, "artifact": hash, "bytes": info.Size()}, nil)
		if !IsCode(err, Conflict) || sent == sendings {
			return err
		}
		upload.key = "" // it is another call
	}
}

// fetch downloads a checkpoint, compares its hash, and unpacks it into a new folder.
func (c *Client) fetch(ctx context.Context, wanted artifact, folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	packed, err := os.CreateTemp(filepath.Dir(folder), "packed-")
	if err != nil {
		return err
	}
	defer os.Remove(packed.Name())
	defer packed.Close()
	sum := sha256.New()
	receive := func(body io.Reader) error {
		sum.Reset()
		if _, err := packed.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := packed.Truncate(0); err != nil {
			return err
		}
		if _, err := io.Copy(io.MultiWriter(packed, sum), body); err != nil {
			return err
		}
		if found := hex.EncodeToString(sum.Sum(nil)); found != wanted.Artifact {
			return fmt.Errorf("%w: its SHA-256 is %s, not %s", errDamaged, found, wanted.Artifact)
		}
		return nil
	}
	download := call{doing: "download the checkpoint", path: "/artifacts/" + wanted.Artifact, wait: transferTime(wanted.Bytes), receive: receive}
	if err := c.to.send(ctx, download, nil); err != nil {
		return err
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unpack(packed, folder)
}

// transferTime is how much longer than a small call a transfer may take.
func transferTime(bytes int64) time.Duration {
	return 5*time.Minute + time.Duration(bytes>>20)*time.Second
}
