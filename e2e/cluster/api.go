package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// api asks an API server as an account.
type api struct {
	client        *http.Client
	server, token string
}

// refused is what an API server says no with.
type refused struct{ metav1.Status }

func (r refused) Error() string { return fmt.Sprintf("%d %s: %s", r.Code, r.Reason, r.Message) }

func notFound(err error) bool {
	var no refused
	return errors.As(err, &no) && no.Code == http.StatusNotFound
}

func exists(err error) bool {
	var no refused
	return errors.As(err, &no) && no.Reason == metav1.StatusReasonAlreadyExists
}

// do sends an object and reads one, each unless it is nil.
func (a *api) do(ctx context.Context, verb, path string, body, into any) error {
	content := []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, verb, a.server+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	if verb == http.MethodPatch {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		no := refused{}
		if json.Unmarshal(said, &no.Status) != nil || no.Code == 0 {
			no.Status = metav1.Status{Code: int32(response.StatusCode), Message: string(said)}
		}
		return fmt.Errorf("%s %s: %w", verb, path, no)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(said, into)
}
