package mcpcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

const (
	// mostBody bounds a request, answerTime how long an answer may take.
	mostBody   = 1 << 20
	answerTime = 2 * time.Minute
)

// listen serves agents over HTTP until the context ends. Nothing is kept of an agent
// between its requests, so a session is nothing that others could take over.
func (a *agent) listen(ctx context.Context, address string, out io.Writer) error {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || !at.IP.IsLoopback() {
		return term.Misuse("--listen (%s) must be an address of this machine alone, such as 127.0.0.1:7180: put a proxy with TLS before it for others", address)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return err
	}
	tools := a.server()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: mostBody})
	server := http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(identified(handler)),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: answerTime, IdleTimeout: answerTime, MaxHeaderBytes: 64 << 10,
	}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Fprintf(out, "Agents are served at http://%s, each with a token of its own\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// identified refuses requests without a token: none is served with the command's own.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer(r.Header) == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, `send a token of the server as "Authorization: Bearer TOKEN": tandem token create makes one`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer is the token of a request.
func bearer(header http.Header) string {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
