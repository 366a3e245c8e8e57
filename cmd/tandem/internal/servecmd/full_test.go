package servecmd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/store/lossydisk"
)

// fill takes all the room there is, down to the last byte.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

// TestAServerOnAFullDiskIsNotReady: nobody sends it work then. Once there is room it is
// ready again without a restart, and without a request that stores anything.
func TestAServerOnAFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	disk := lossydisk.Small(t)
	greeting, _ := serving(t, filepath.Join(disk, "data"))
	token := regexp.MustCompile(`tandem_admin_\w+`).FindString(greeting)
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address.FindString(greeting)+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/yaml")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	const study = "name: full\ncommand: [train]\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {epochs: 1}\nsearch: {method: random}\nstop: {trials: 1}\n"
	if status, text := ask("POST", "/api/v1/studies", study); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	ready := func(when string, want int) {
		t.Helper()
		status, text := 0, ""
		for end := time.Now().Add(30 * time.Second); status != want && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			status, text = ask("GET", "/readyz", "")
		}
		if status != want || want != http.StatusOK && !strings.Contains(text, "the server's disk is full") {
			t.Fatalf("%s, it is %d: %s", when, status, text)
		}
	}
	ready("with room", http.StatusOK)
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	ready("before anything is stored", http.StatusServiceUnavailable)
	refused := false
	for i := 0; i < 1000 && !refused; i++ {
		status, _ := ask("POST", "/api/v1/studies/full/"+[]string{"pause", "resume"}[i%2], "")
		refused = status == http.StatusInsufficientStorage
	}
	if !refused {
		t.Fatal("the disk was never full")
	}
	ready("when a write was refused", http.StatusServiceUnavailable)
	lossydisk.Free(t, ballast)
	ready("with room again", http.StatusOK)
	if status, text := ask("POST", "/api/v1/studies/full/stop", ""); status != http.StatusOK {
		t.Error(fmt.Sprint(status, text))
	}
}
