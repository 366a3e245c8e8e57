package bucket

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
)

const (
	// mostLinks is how many links for uploads a holder may have at a time.
	mostLinks = 64
	// unused is how long an upload by link lies that nobody takes.
	unused = time.Hour
)

// checksum is the header by which S3 checks what it is sent.
const checksum = "X-Amz-Checksum-Sha256"

// Link is where the artifact can be read without a key of the bucket, for a quarter of an
// hour. It does not look whether the artifact is there.
func (s *Store) Link(ctx context.Context, sha256 string) (string, error) {
	link, err := s.client.PresignedGetObject(ctx, s.bucket, s.key(sha256), linkLife, nil)
	if err != nil {
		return "", s.failed("make a link into", err)
	}
	return link.String(), nil
}

// UploadLink is where the holder can put the artifact without a key of the bucket, with
// these headers, for a quarter of an hour. The bucket refuses other bytes. Nobody can read
// it until [Store.TakeUpload]. The error is not_found for a bucket that would not refuse
// them, and a conflict for a holder with too many links.
func (s *Store) UploadLink(ctx context.Context, holder, sha256 string) (link string, headers map[string]string, err error) {
	if err := artifact.CheckName(sha256); err != nil {
		return "", nil, err
	}
	if s.unchecked != nil {
		return "", nil, problem.New(problem.NotFound, "no uploads by links: %w", s.unchecked)
	}
	if !s.count(holder, sha256) {
		return "", nil, problem.New(problem.Conflict, "you have %d links for uploads: use them, wait a quarter of an hour, or send the bytes to this server", mostLinks)
	}
	return s.uploadLink(ctx, s.incoming(holder, sha256), sha256)
}

func (s *Store) uploadLink(ctx context.Context, key, sha256 string) (link string, headers map[string]string, err error) {
	sum, err := hex.DecodeString(sha256)
	if err != nil {
		return "", nil, err
	}
	signed := base64.StdEncoding.EncodeToString(sum)
	made, err := s.client.PresignHeader(ctx, http.MethodPut, s.bucket, key, linkLife, url.Values{}, http.Header{checksum: {signed}})
	if err != nil {
		return "", nil, s.failed("make a link into", err)
	}
	return made.String(), map[string]string{checksum: signed}, nil
}

// count notes a link. It reports whether the holder may have it.
func (s *Store) count(holder, sha256 string) bool {
	now := time.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for key, ends := range s.links {
		if ends.Before(now) {
			delete(s.links, key)
		}
	}
	out := 0
	for key := range s.links {
		if key.holder == holder && key.sha256 != sha256 {
			out++
		}
	}
	if out >= mostLinks {
		return false
	}
	s.links[linked{holder, sha256}] = now.Add(linkLife)
	return true
}

type linked struct{ holder, sha256 string }

// incoming is where the holder's upload by link lies: one of another holder shows nothing.
func (s *Store) incoming(holder, name string) string {
	sum := sha256.Sum256([]byte(holder))
	return path.Join(s.prefix, "incoming", hex.EncodeToString(sum[:8]), name)
}

// TakeUpload makes an artifact of what the holder has put by a link, without reading it. It
// returns the number of bytes and the first few of them. The error is a conflict where
// nothing was put, and exhausted for more bytes than limit; then it is deleted.
func (s *Store) TakeUpload(ctx context.Context, holder, sha256 string, limit int64, first int) (size int64, start []byte, err error) {
	if err := artifact.CheckName(sha256); err != nil {
		return 0, nil, err
	}
	key := s.incoming(holder, sha256)
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	switch {
	case missing(err):
		return 0, nil, problem.New(problem.Conflict, "nothing was put by a link: PUT the bytes to the link first")
	case err != nil:
		return 0, nil, s.failed("read from", err)
	case info.Size > limit:
		return 0, nil, errors.Join(problem.New(problem.Exhausted, "the artifact has %d bytes; at most %d are taken", info.Size, limit), s.remove(ctx, key))
	}
	if start, err = s.first(ctx, key, min(int64(first), info.Size)); err != nil {
		return 0, nil, err
	}
	done, err := s.begin(ctx, sha256)
	if err != nil {
		return 0, nil, err
	}
	defer done()
	if _, err := s.client.CopyObject(ctx, minio.CopyDestOptions{Bucket: s.bucket, Object: s.key(sha256)}, minio.CopySrcOptions{Bucket: s.bucket, Object: key}); err != nil {
		return 0, nil, s.failed("write to", err)
	}
	s.mutex.Lock()
	delete(s.links, linked{holder, sha256})
	s.mutex.Unlock()
	return info.Size, start, s.remove(ctx, key)
}

// first reads the first bytes of an object.
func (s *Store) first(ctx context.Context, key string, bytes int64) ([]byte, error) {
	if bytes == 0 {
		return nil, nil
	}
	options := minio.GetObjectOptions{}
	if err := options.SetRange(0, bytes-1); err != nil {
		return nil, err
	}
	object, err := s.client.GetObject(ctx, s.bucket, key, options)
	if err != nil {
		return nil, s.failed("read from", err)
	}
	start, err := io.ReadAll(io.LimitReader(object, bytes))
	if err := errors.Join(err, object.Close()); err != nil {
		return nil, s.failed("read from", err)
	}
	return start, nil
}

func (s *Store) remove(ctx context.Context, key string) error {
	if err := s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return s.failed("delete from", err)
	}
	return nil
}

// Tidy deletes what was put by links an hour ago or before, and not taken.
func (s *Store) Tidy(ctx context.Context) error { return s.tidy(ctx, time.Now()) }

func (s *Store) tidy(ctx context.Context, now time.Time) error {
	for one := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: path.Join(s.prefix, "incoming") + "/", Recursive: true}) {
		if one.Err != nil {
			return s.failed("list", one.Err)
		}
		if now.Sub(one.LastModified) < unused+skew {
			continue
		}
		if err := s.remove(ctx, one.Key); err != nil {
			return err
		}
	}
	return nil
}

// probeLinks returns why no uploads by links are possible: a bucket that takes other bytes
// than a link is for would keep them under a wrong hash.
func (s *Store) probeLinks(ctx context.Context) error {
	content := []byte("tandem")
	sum := sha256.Sum256(content)
	key := s.incoming("", "probe")
	link, headers, err := s.uploadLink(ctx, key, hex.EncodeToString(sum[:]))
	if err != nil {
		return err
	}
	for what, c := range map[string]struct {
		content string
		headers map[string]string
		taken   bool
	}{
		"takes other bytes than a link is for":   {"tamper", headers, false},
		"takes bytes without their checksum":     {"tandem", nil, false},
		"does not take what a link is for":       {"tandem", headers, true},
		"takes bytes with a checksum of its own": {"tamper", map[string]string{checksum: sumOf("tamper")}, false},
	} {
		taken, failed := s.putBy(ctx, link, c.headers, c.content)
		if failed == nil && taken != c.taken {
			failed = errors.New("the bucket " + what)
		}
		err = cmp.Or(err, failed)
	}
	return errors.Join(err, s.remove(ctx, key))
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// putBy reports whether the bucket takes the text by the link.
func (s *Store) putBy(ctx context.Context, link string, headers map[string]string, text string) (bool, error) {
	asked, err := http.NewRequestWithContext(ctx, http.MethodPut, link, strings.NewReader(text))
	if err != nil {
		return false, err
	}
	for name, value := range headers {
		asked.Header.Set(name, value)
	}
	answer, err := s.sender.Do(asked)
	if err != nil {
		return false, fmt.Errorf("put by a link: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	return answer.StatusCode == http.StatusOK, errors.Join(err, answer.Body.Close())
}
