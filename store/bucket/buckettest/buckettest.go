// Package buckettest has a service that speaks S3, for tests.
package buckettest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Service is where buckets can be made.
type Service struct {
	Endpoint string
	// Environment are the variables with its key.
	Environment []string
	// Fake says that it is in this process. Linked counts what was read there by links, and
	// Sent what was put by links.
	Fake         bool
	Linked, Sent atomic.Int64
	// Careless has the fake one take whatever comes by a link.
	Careless atomic.Bool
}

// Open is the service that TANDEM_TEST_S3 names, with AWS's variables for its key, or a
// fake one in this process, which knows any key.
func Open(t testing.TB) *Service {
	t.Helper()
	if endpoint := os.Getenv("TANDEM_TEST_S3"); endpoint != "" {
		return &Service{Endpoint: endpoint, Environment: []string{"AWS_ACCESS_KEY_ID=" + os.Getenv("AWS_ACCESS_KEY_ID"), "AWS_SECRET_ACCESS_KEY=" + os.Getenv("AWS_SECRET_ACCESS_KEY")}}
	}
	s := &Service{Environment: []string{"AWS_ACCESS_KEY_ID=tester", "AWS_SECRET_ACCESS_KEY=" + fakeSecret}, Fake: true}
	fake := gofakes3.New(s3mem.New()).Server()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch linked := r.URL.Query().Has("X-Amz-Signature"); {
		case linked && r.Method == http.MethodGet:
			s.Linked.Add(1)
		case linked && r.Method == http.MethodPut:
			if !s.Careless.Load() && !checked(w, r) {
				return
			}
			s.Sent.Add(1)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(service.Close)
	s.Endpoint = service.URL
	return s
}

const fakeSecret = "tester-secret"

// checksum is the header that links for uploads sign.
const checksum = "X-Amz-Checksum-Sha256"

// checked reports whether the bytes are those that the link is for, and whether the link was
// signed with the service's key. The fake service itself checks neither.
func checked(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	if err != nil || r.Header.Get(checksum) != base64.StdEncoding.EncodeToString(sum[:]) || r.URL.Query().Get("X-Amz-Signature") != signature(r) {
		http.Error(w, "the link is for other bytes", http.StatusBadRequest)
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// signature is that of a link by AWS's Signature Version 4, with the headers that came.
func signature(r *http.Request) string {
	query := r.URL.Query()
	query.Del("X-Amz-Signature")
	names, headers := query.Get("X-Amz-SignedHeaders"), ""
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers += name + ":" + value + "\n"
	}
	asked := strings.Join([]string{r.Method, r.URL.EscapedPath(), strings.ReplaceAll(query.Encode(), "+", "%20"), headers, names, "UNSIGNED-PAYLOAD"}, "\n")
	scope := strings.Split(query.Get("X-Amz-Credential"), "/")[1:]
	sum := sha256.Sum256([]byte(asked))
	key := []byte("AWS4" + fakeSecret)
	for _, part := range append(scope, strings.Join([]string{"AWS4-HMAC-SHA256", query.Get("X-Amz-Date"), strings.Join(scope, "/"), hex.EncodeToString(sum[:])}, "\n")) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part)) //nolint:errcheck // it never fails
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// Bucket makes an empty one and returns its name and a client.
func (s *Service) Bucket(t testing.TB) (string, *minio.Client) {
	t.Helper()
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	value := func(i int) string { _, v, _ := strings.Cut(s.Environment[i], "="); return v }
	client, err := minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(value(0), value(1), ""), Secure: endpoint.Scheme == "https"})
	if err != nil {
		t.Fatal(err)
	}
	name := "tandem-" + strings.ToLower(rand.Text())
	if err := client.MakeBucket(context.Background(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return name, client
}

// Refusing is a transport that answers so from when it is set.
type Refusing struct{ Status int }

// RoundTrip answers without asking, if it is set.
func (r *Refusing) RoundTrip(asked *http.Request) (*http.Response, error) {
	if r.Status == 0 {
		return http.DefaultTransport.RoundTrip(asked)
	}
	answer := httptest.NewRecorder()
	answer.WriteHeader(r.Status)
	return answer.Result(), nil
}
