package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/problem"
)

// stall is how long a transfer may stand still, and pace how many bytes have to
// come in that time, of each upload that its sender has under way: one that brings
// less keeps its place from others, and many keep many.
const (
	stall = 60 * time.Second
	pace  = 16 << 10
)

type BlobRef struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the bytes, in lower-case hexadecimal"`
}

type uploadInput struct {
	BlobRef
	length int64
	body   *patientReader
}

// Resolve takes the body as it comes: it is too large to be read before.
func (i *uploadInput) Resolve(ctx huma.Context) []error {
	r, w := humachi.Unwrap(ctx)
	i.length = r.ContentLength
	i.body = &patientReader{Reader: r.Body, connection: http.NewResponseController(w)}
	return nil
}

func (s artifactAPI) putArtifact(ctx context.Context, input *uploadInput) (*nothing, error) {
	if input.length > s.artifactLimit {
		return nil, tooLarge(s.artifactLimit)
	}
	give, places, err := s.takeUpload(tokenOf(ctx))
	if err != nil {
		return nil, err
	}
	defer give()
	input.body.places = places
	body := &countingReader{Reader: input.body}
	bytes, err := s.artifacts.Put(ctx, input.SHA256, body, s.artifactLimit)
	switch {
	case err == nil:
		s.studies.Uploaded(ctx, input.SHA256, bytes)
		return nil, nil
	case problem.Is(err, problem.Exhausted):
		return nil, tooLarge(s.artifactLimit)
	case body.failed != nil:
		return nil, readFault(body.failed)
	}
	return nil, err
}

func describeUpload(operation *huma.Operation, _ huma.Registry) {
	operation.Description = "All bytes are read and checked, also of what is there already. They become visible to others once a checkpoint that names them is committed."
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {}}}
}

// open returns the artifact, if the caller may read it.
func (s artifactAPI) open(ctx context.Context, sha256 string) (io.ReadCloser, int64, error) {
	if err := s.studies.CheckArtifact(ctx, sha256); err != nil {
		return nil, 0, err
	}
	return s.artifacts.Open(sha256)
}

func (s artifactAPI) getArtifact(ctx context.Context, input *BlobRef) (*huma.StreamResponse, error) {
	bytes, size, err := s.open(ctx, input.SHA256)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer bytes.Close()
		_, w := humachi.Unwrap(ctx)
		describeBlob(w.Header(), input.SHA256, size)
		w.WriteHeader(http.StatusOK)
		if _, err := io.Copy(patientWriter(w), bytes); err != nil {
			panic(http.ErrAbortHandler) // a part must not look like the whole
		}
	}}, nil
}

func (s artifactAPI) headArtifact(ctx context.Context, input *BlobRef) (*huma.StreamResponse, error) {
	bytes, size, err := s.open(ctx, input.SHA256)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humachi.Unwrap(ctx)
		describeBlob(w.Header(), input.SHA256, size)
		w.WriteHeader(http.StatusOK)
	}}, bytes.Close()
}

// describeBlob makes sure that no browser ever runs what somebody uploaded.
func describeBlob(header http.Header, sha256 string, size int64) {
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Content-Disposition", `attachment; filename="`+sha256+`"`)
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// patientReader gives the client time as long as it sends something.
type patientReader struct {
	io.Reader
	connection *http.ResponseController
	due        time.Time // until when the pace must be met
	left       int64     // that has to come until then
	// places is how many transfers its sender has under way; nil: this one.
	places func() int64
}

// Read reads what comes while the pace is kept.
func (p *patientReader) Read(into []byte) (int, error) {
	if p.due.IsZero() || p.left <= 0 {
		p.due, p.left = time.Now().Add(stall), pace
		if p.places != nil {
			p.left *= p.places()
		}
		_ = p.connection.SetReadDeadline(p.due)
		_ = p.connection.SetWriteDeadline(p.due.Add(stall)) // for the answer
	}
	count, err := p.Reader.Read(into)
	p.left -= int64(count)
	if errors.Is(err, io.EOF) {
		_ = p.connection.SetReadDeadline(time.Time{})
	}
	return count, err
}

// countingReader remembers that the reading failed, not the storing.
type countingReader struct {
	io.Reader
	failed error
}

// Read reads, and remembers an error.
func (c *countingReader) Read(into []byte) (int, error) {
	count, err := c.Reader.Read(into)
	if err != nil && err != io.EOF {
		c.failed = err
	}
	return count, err
}

// patientWriter gives the client time as long as it takes something.
func patientWriter(w http.ResponseWriter) io.Writer {
	return deadlineWriter{Writer: w, connection: http.NewResponseController(w)}
}

type deadlineWriter struct {
	io.Writer
	connection *http.ResponseController
}

// Write writes what the client takes within the time of a stall.
func (d deadlineWriter) Write(data []byte) (int, error) {
	_ = d.connection.SetWriteDeadline(time.Now().Add(stall))
	return d.Writer.Write(data)
}
