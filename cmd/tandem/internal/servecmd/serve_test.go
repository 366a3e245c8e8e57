package servecmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

func TestTrustedProxiesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"proxy.example.org", "10.0.0.300", "10.0.0.0/33", "0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", "127.0.0.1,"} {
		command := root()
		command.SetArgs([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trusted-proxy", value})
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.ExecuteContext(t.Context())
		var usage term.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "--trusted-proxy") || !strings.Contains(err.Error(), strings.TrimSuffix(value, ",")) && value != "127.0.0.1," {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestATrustedProxySaysWhoAsks: two clients behind a proxy, of which one guesses.
func TestATrustedProxySaysWhoAsks(t *testing.T) {
	t.Parallel()
	for flag, others := range map[string]int{"127.0.0.1": http.StatusUnauthorized, "10.0.0.0/8,fd00::1": http.StatusTooManyRequests} {
		ctx, stop := context.WithCancel(t.Context())
		read, write := io.Pipe()
		command := root()
		command.SetArgs([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trusted-proxy", flag})
		command.SetOut(write)
		command.SetErr(io.Discard)
		ended := make(chan error, 1)
		go func() {
			ended <- command.ExecuteContext(ctx)
			write.Close()
		}()
		greeting, err := bufio.NewReader(read).ReadString('\n')
		if err != nil {
			t.Fatalf("%v, %v", err, <-ended)
		}
		go io.Copy(io.Discard, read)
		address := regexp.MustCompile(`http://[0-9.:]+`).FindString(greeting)
		guess := func(client string) int {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/session", strings.NewReader(`{"token":"tandem_admin_guess"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Forwarded-For", "6.6.6.6, "+client)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			return response.StatusCode
		}
		for range 10 {
			guess("192.0.2.66")
		}
		if one, other := guess("192.0.2.66"), guess("192.0.2.7"); one != http.StatusTooManyRequests || other != others {
			t.Errorf("--trusted-proxy %s: the one that guesses is told %d, the other %d, want %d", flag, one, other, others)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
