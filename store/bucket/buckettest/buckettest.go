// Package buckettest has a service that speaks S3, for tests.
package buckettest

import (
	"context"
	"crypto/rand"
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
	// Fake says that it is in this process, and Linked counts what was read there by links.
	Fake   bool
	Linked atomic.Int64
}

// Open is the service that TANDEM_TEST_S3 names, with AWS's variables for its key, or a
// fake one in this process, which knows any key.
func Open(t testing.TB) *Service {
	t.Helper()
	if endpoint := os.Getenv("TANDEM_TEST_S3"); endpoint != "" {
		return &Service{Endpoint: endpoint, Environment: []string{"AWS_ACCESS_KEY_ID=" + os.Getenv("AWS_ACCESS_KEY_ID"), "AWS_SECRET_ACCESS_KEY=" + os.Getenv("AWS_SECRET_ACCESS_KEY")}}
	}
	s := &Service{Environment: []string{"AWS_ACCESS_KEY_ID=tester", "AWS_SECRET_ACCESS_KEY=tester-secret"}, Fake: true}
	fake := gofakes3.New(s3mem.New()).Server()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Has("X-Amz-Signature") {
			s.Linked.Add(1)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(service.Close)
	s.Endpoint = service.URL
	return s
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
