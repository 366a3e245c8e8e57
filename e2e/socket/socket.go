// Package socket is the script's side of the worker's socket.
package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// Client calls the worker of this process, which is the script of a trial.
type Client struct{ http *http.Client }

// Dial is a client of the socket that the worker names in the environment.
func Dial() Client {
	path := os.Getenv("TANDEM_SOCKET")
	return Client{&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}}}}
}

// Post sends the document and reads the answer into what into points to, if it is
// not nil. It waits as long as the worker does.
func (c Client) Post(ctx context.Context, path string, document, into any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, content)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(content, into)
	}
	return err
}
