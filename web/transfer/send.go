package transfer

import (
	"io"
	"net/http"
	"strconv"
)

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
