package transfer

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Bucket is a place that clients reach without this server, by links.
type Bucket interface {
	Link(ctx context.Context, sha256 string) (string, error)
	UploadLink(ctx context.Context, holder, sha256 string) (link string, headers map[string]string, err error)
	TakeUpload(ctx context.Context, holder, sha256 string, limit int64, first int) (bytes int64, start []byte, err error)
}

// BucketOf is the place as a bucket. If it is none, its calls say so (not_found).
func BucketOf(place any) Bucket {
	if bucket, ok := place.(Bucket); ok {
		return bucket
	}
	return none{}
}

type none struct{ Bucket }

var errNone = problem.New(problem.NotFound, "this server keeps artifacts itself: PUT the bytes to it")

// UploadLink says that there is none.
func (none) UploadLink(context.Context, string, string) (string, map[string]string, error) {
	return "", nil, errNone
}

// TakeUpload says that there is none.
func (none) TakeUpload(context.Context, string, string, int64, int) (int64, []byte, error) {
	return 0, nil, errNone
}

// File is what somebody uploaded.
type File struct {
	Bytes      io.ReadCloser
	Size       int64
	Type, Name string
	// Link is where the file is instead; empty: Bytes are it.
	Link string
}

// Send answers with the file and closes it; to HEAD without its bytes. No browser may ever
// run what somebody uploaded.
func Send(w http.ResponseWriter, r *http.Request, file File) {
	header := w.Header()
	if file.Link != "" {
		header.Set("Location", file.Link)
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	defer file.Bytes.Close()
	header.Set("Content-Type", file.Type)
	header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	header.Set("Content-Disposition", `attachment; filename="`+file.Name+`"`)
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(NewWriter(w), file.Bytes); err != nil {
		panic(http.ErrAbortHandler) // a part must not look like the whole
	}
}
