package rest

import (
	"context"
	"io"
	"net/http"
)

// PutArtifact uploads size bytes under their SHA-256. open is called once for
// each attempt.
func (c StudyCalls) PutArtifact(ctx context.Context, sha256 string, size int64, open func() (io.ReadCloser, error)) error {
	answer, err := c.send(ctx, request{
		method: http.MethodPut, path: path("artifacts", sha256), contentType: "application/octet-stream",
		open: open, size: size, stream: true,
	})
	if err != nil {
		return err
	}
	return answer.Close()
}

// Artifact downloads an artifact. A download that was cut short ends in an
// error, not in io.EOF.
func (c StudyCalls) Artifact(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	return c.send(ctx, request{method: http.MethodGet, path: path("artifacts", sha256), stream: true})
}
