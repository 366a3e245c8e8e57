package api

import (
	"bufio"
	"context"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/transfer"
)

type BlobRef struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the bytes, in lower-case hexadecimal"`
}

type uploadInput struct {
	BlobRef
	length int64
	body   *transfer.Reader
}

// Resolve takes the body as it comes: it is too large to be read before.
func (i *uploadInput) Resolve(ctx huma.Context) []error {
	r, w := humachi.Unwrap(ctx)
	i.length = r.ContentLength
	i.body = transfer.NewReader(r.Body, w)
	return nil
}

func (s artifactAPI) putArtifact(ctx context.Context, input *uploadInput) (*nothing, error) {
	if input.length > s.artifactLimit {
		return nil, transfer.TooLarge(s.artifactLimit)
	}
	give, places, err := s.Limits.TakeUpload(guard.CallerOf(guard.TokenOf(ctx)).Holder)
	if err != nil {
		return nil, err
	}
	defer give()
	input.body.Places = places
	body := bufio.NewReader(input.body)
	start, _ := body.Peek(len(sealed.Magic)) // what fails here fails again
	bytes, err := s.artifacts.Put(ctx, input.SHA256, body, s.artifactLimit)
	switch {
	case err == nil:
		s.studies.Uploaded(ctx, input.SHA256, bytes, string(start) == sealed.Magic)
		return nil, nil
	case problem.Is(err, problem.Exhausted):
		return nil, transfer.TooLarge(s.artifactLimit)
	case input.body.Err != nil:
		return nil, transfer.Broken(input.body.Err)
	}
	return nil, err
}

func describeUpload(operation *huma.Operation, _ huma.Registry) {
	operation.Description = "All bytes are read and checked, also of what is there already. They become visible to others once a checkpoint that names them is committed."
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {}}}
}

type datasetList struct {
	Datasets []protocol.Dataset `json:"datasets"`
}

type downloadInput struct {
	BlobRef
	Direct bool `query:"direct" doc:"Answer 307 with a link into the server's bucket, if it has one. The link is good for 15 minutes; follow it without the token."`
}

// getArtifact answers with the artifact, if the caller may read it; to HEAD without bytes.
func (s artifactAPI) getArtifact(ctx context.Context, input *downloadInput) (*huma.StreamResponse, error) {
	if err := s.studies.CheckArtifact(ctx, input.SHA256); err != nil {
		return nil, err
	}
	if bucket, ok := s.artifacts.(transfer.Bucket); ok && input.Direct {
		link, err := bucket.Link(ctx, input.SHA256)
		return sent(transfer.File{Link: link}), err
	}
	return s.file(input.SHA256, "application/octet-stream", input.SHA256)
}

func (s artifactAPI) linkUpload(ctx context.Context, input *BlobRef) (*jsonAnswer[protocol.UploadLink], error) {
	link, headers, err := transfer.BucketOf(s.artifacts).UploadLink(ctx, guard.CallerOf(guard.TokenOf(ctx)).Holder, input.SHA256)
	return answered(protocol.UploadLink{Link: link, Headers: headers}, err)
}

func (s artifactAPI) takeUpload(ctx context.Context, input *BlobRef) (*nothing, error) {
	bytes, start, err := transfer.BucketOf(s.artifacts).TakeUpload(ctx, guard.CallerOf(guard.TokenOf(ctx)).Holder, input.SHA256, s.artifactLimit, len(sealed.Magic))
	if err == nil {
		s.studies.Uploaded(ctx, input.SHA256, bytes, string(start) == sealed.Magic)
	}
	return nil, err
}

type loggedInput struct {
	TrialRef
	Name string `path:"name" minLength:"1" maxLength:"100"`
}

// getLogged answers with a file that the trial's script logged.
func (s artifactAPI) getLogged(ctx context.Context, input *loggedInput) (*huma.StreamResponse, error) {
	logged, err := s.studies.LoggedArtifact(ctx, input.Study, input.Number, input.Name)
	if err != nil {
		return nil, err
	}
	return s.file(logged.SHA256, logged.ContentType(), logged.Name)
}

func (s artifactAPI) file(sha256, kind, name string) (*huma.StreamResponse, error) {
	bytes, size, err := s.artifacts.Open(sha256)
	return sent(transfer.File{Bytes: bytes, Size: size, Type: kind, Name: name}), err
}

// sent answers with the file and closes it.
func sent(file transfer.File) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humachi.Unwrap(ctx)
		transfer.Send(w, r, file)
	}}
}

// Artifacts keeps bytes by their SHA-256, in lower-case hexadecimal.
type Artifacts interface {
	// Put stores what it reads. The error is invalid if the bytes have another
	// hash, exhausted if there are more than limit.
	Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (bytes int64, err error)
	// Open returns the bytes and their number; not_found if there are none.
	Open(sha256 string) (io.ReadCloser, int64, error)
}
