// Package bucket keeps the bytes of checkpoints in a bucket that speaks S3, as objects
// named by their SHA-256: PREFIX/sha256/ab/ab12...
//
// Its one invariant: an object under such a name is complete and has that hash. It must
// not know what the bytes mean or who refers to them; deleting what nobody refers to is
// the caller's sweep.
package bucket

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Amazon is where buckets are if nobody says another place.
const Amazon = "https://s3.amazonaws.com"

const (
	// patience bounds a call that moves no object.
	patience = 30 * time.Second
	// linkLife is how long a link to an object may be followed.
	linkLife = 15 * time.Minute
	// skew is how far the bucket's clock may be behind. S3 refuses calls by clocks that
	// differ by more.
	skew = 15 * time.Minute
)

// Options name a bucket.
type Options struct {
	// Address is s3://BUCKET or s3://BUCKET/PREFIX.
	Address string
	// Endpoint is the service's URL; empty: Amazon's.
	Endpoint string
	// Folder is where uploads are kept until their hash is known.
	Folder string
	// Transport sends the requests; nil: one of our own.
	Transport http.RoundTripper
}

// Store keeps artifacts in one bucket. It is safe for concurrent use; the sweeps of two
// servers must not use the same prefix at once.
type Store struct {
	client         *minio.Client
	bucket, prefix string
	folder         string
	name           string // for people
	sender         http.Client
	unchecked      error // why links for uploads cannot be given; nil: they can
	// mutex guards what is under way. Whoever puts an object waits until its deletion
	// ended, and nothing is deleted that is being put.
	mutex    sync.Mutex
	putting  map[string]int
	deleting map[string]chan struct{}
	links    map[linked]time.Time // for uploads, by when they end
}

// Open reaches the bucket, and writes, reads and deletes an object to see that it may. The
// keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the file of AWS's programs
// (~/.aws/credentials), or those of the machine's role. The error is invalid for what
// cannot be a bucket, else unavailable.
func Open(ctx context.Context, options Options) (*Store, error) {
	address, err := url.Parse(options.Address)
	if err != nil || address.Scheme != "s3" || address.Host == "" || address.User != nil || address.RawQuery != "" {
		return nil, problem.New(problem.Invalid, "%q names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX", options.Address)
	}
	if options.Endpoint == "" {
		options.Endpoint = Amazon
	}
	endpoint, err := url.Parse(options.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" || strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return nil, problem.New(problem.Invalid, "the bucket's service %q must be https://HOST or http://HOST:PORT", options.Endpoint)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Secure: endpoint.Scheme == "https", Transport: options.Transport, Region: region(), MaxRetries: 5,
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}}),
	})
	if err != nil {
		return nil, problem.New(problem.Invalid, "bucket %s: %w", options.Address, err)
	}
	s := &Store{
		client: client, bucket: address.Host, prefix: strings.Trim(address.Path, "/"), folder: options.Folder, name: options.Address,
		putting: map[string]int{}, deleting: map[string]chan struct{}{}, links: map[linked]time.Time{}, sender: http.Client{Transport: options.Transport},
	}
	if err := s.makeFolder(); err != nil {
		return nil, err
	}
	return s, s.probe(ctx)
}

// Unlinked is why uploads pass through this server; nil: they need not.
func (s *Store) Unlinked() error { return s.unchecked }

// region is the one that AWS's programs take; empty: the service is asked.
func region() string {
	if name := os.Getenv("AWS_REGION"); name != "" {
		return name
	}
	return os.Getenv("AWS_DEFAULT_REGION")
}

// makeFolder empties the folder for uploads, or makes it.
func (s *Store) makeFolder() error {
	if err := os.RemoveAll(s.folder); err != nil {
		return fmt.Errorf("remove unfinished uploads: %w", err)
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return fmt.Errorf("make the folder for uploads: %w", err)
	}
	return nil
}

// probe finds out, before any worker does, whether the server may use the bucket.
func (s *Store) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := path.Join(s.prefix, "probe")
	_, err := s.client.PutObject(ctx, s.bucket, key, strings.NewReader("tandem"), int64(len("tandem")), minio.PutObjectOptions{})
	if err != nil {
		return s.failed("write to", err)
	}
	if _, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{}); err != nil {
		return s.failed("read from", err)
	}
	if err := s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return s.failed("delete from", err)
	}
	listed := s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.folderKey(), Recursive: true, MaxKeys: 1})
	if one := <-listed; one.Err != nil {
		return s.failed("list", one.Err)
	}
	s.unchecked = s.probeLinks(ctx)
	return nil
}

// failed is what a person reads of a call that the service refused or did not answer.
func (s *Store) failed(doing string, err error) error {
	fix := "what is in it is as it was"
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchBucket:
		fix = "there is no such bucket: make it, or name another"
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch":
		fix = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that the key may get, put, delete and list there"
	case "RequestTimeTooSkewed":
		fix = "set this machine's clock"
	}
	return problem.New(problem.Unavailable, "cannot %s the bucket %s: %w; %s", doing, s.name, err, fix)
}

// folderKey is before the keys of all artifacts.
func (s *Store) folderKey() string { return path.Join(s.prefix, "sha256") + "/" }

// key is where the artifact is.
func (s *Store) key(sha256 string) string { return s.folderKey() + sha256[:2] + "/" + sha256 }

// Name is the bucket's address, for people.
func (s *Store) Name() string { return s.name }
