package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// linkFrom is the size in bytes from which an upload by a link is worth its two calls more.
const linkFrom = 1 << 20

// PutArtifact uploads size bytes under their SHA-256, to the server's bucket if it has one
// that can be reached. open is called once for each attempt.
func (c StudyCalls) PutArtifact(ctx context.Context, sha256 string, size int64, open func() (io.ReadCloser, error)) error {
	if size >= linkFrom && !c.unsent.Load() {
		err := c.putByLink(ctx, sha256, size, open)
		if err == nil || ctx.Err() != nil || problem.Is(err, problem.Exhausted) {
			return err
		}
		c.unsent.Store(!problem.Is(err, problem.Conflict)) // the server takes it, now or from now on
	}
	answer, err := c.send(ctx, request{
		method: http.MethodPut, path: path("artifacts", sha256), contentType: "application/octet-stream",
		open: open, size: size, stream: true,
	})
	if err != nil {
		return err
	}
	return answer.Close()
}

// putByLink uploads to the server's bucket. The token stays here.
func (c *caller) putByLink(ctx context.Context, sha256 string, size int64, open func() (io.ReadCloser, error)) error {
	answer, err := exchange[protocol.UploadLink](ctx, c, path("artifacts", sha256, "link"), none{})
	if err != nil {
		return err
	}
	content, err := open()
	if err != nil {
		return err
	}
	ctx, w := watched(ctx, silence)
	defer w.end()
	asked, err := http.NewRequestWithContext(ctx, http.MethodPut, answer.Link, content)
	if err == nil && asked.URL.Scheme != "https" && c.base.Scheme == "https" {
		err = errors.New("the server's link is not https")
	}
	if err != nil {
		return errors.Join(err, content.Close())
	}
	asked.ContentLength = size
	for name, value := range answer.Headers {
		asked.Header.Set(name, value)
	}
	w.sending(asked, true)
	response, err := c.http.Do(asked)
	if err != nil {
		return err
	}
	response.Body.Close() //nolint:errcheck // nothing of it is wanted
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", asked.URL.Host, response.Status)
	}
	return c.call(ctx, request{method: http.MethodPost, path: path("artifacts", sha256, "uploaded")}, nil)
}

// PublishDataset makes an artifact that was uploaded one of the caller's data sets.
func (c StudyCalls) PublishDataset(ctx context.Context, ask protocol.DatasetRequest) (protocol.Dataset, error) {
	return exchange[protocol.Dataset](ctx, c.caller, path("datasets"), ask)
}

// Datasets returns the encrypted data sets that the token may see.
func (c StudyCalls) Datasets(ctx context.Context) ([]protocol.Dataset, error) {
	return list[protocol.Dataset](ctx, c.caller, "datasets", path("datasets"))
}

// DeleteDataset deletes an encrypted data set.
func (c StudyCalls) DeleteDataset(ctx context.Context, sha256 string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("datasets", sha256)}, nil)
}

// LogArtifact keeps an uploaded artifact as a file of the trial.
func (c StudyCalls) LogArtifact(ctx context.Context, id trial.ID, log protocol.ArtifactLog) error {
	_, err := write[none](ctx, c.caller, id, "artifacts", log)
	return err
}

// TrialArtifact downloads a file that the trial's script logged.
func (c StudyCalls) TrialArtifact(ctx context.Context, study string, number int, name string) (io.ReadCloser, error) {
	return c.send(ctx, request{method: http.MethodGet, path: path("studies", study, "trials", strconv.Itoa(number), "artifacts", name), stream: true})
}

// Artifact downloads an artifact, from the server's bucket if it has one that can be
// reached. A download that was cut short ends in an error, not in io.EOF.
func (c StudyCalls) Artifact(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	return c.send(ctx, request{method: http.MethodGet, path: path("artifacts", sha256), stream: true, linked: true})
}

// follow asks for what is not at the server. The token stays here. If nothing is there, the
// next attempt, and later calls, ask the server itself.
func (c *caller) follow(ctx context.Context, moved *http.Response) (*http.Response, error) {
	moved.Body.Close() //nolint:errcheck // nothing of it is wanted
	link, err := moved.Location()
	if err != nil || link.Scheme != "https" && c.base.Scheme == "https" {
		err = errors.New("the server's link to the artifact cannot be followed")
	}
	var asked *http.Request
	if err == nil {
		asked, err = http.NewRequestWithContext(ctx, http.MethodGet, link.String(), nil)
	}
	var response *http.Response
	if err == nil {
		response, err = c.http.Do(asked)
	}
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close() //nolint:errcheck // nothing of it is wanted
		err = fmt.Errorf("%s answers %s", link.Host, response.Status)
	}
	if err != nil {
		c.unlinked.Store(true)
		return nil, problem.New(problem.Unavailable, "download an artifact from the server's bucket: %w", err)
	}
	return response, nil
}
