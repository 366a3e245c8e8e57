package ui_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// picture is a PNG of a matrix with the share off its diagonal.
func picture(t *testing.T, share float64) string {
	t.Helper()
	matrix := image.NewGray(image.Rect(0, 0, 240, 240))
	for y := range 240 {
		for x := range 240 {
			if x/24 != y/24 {
				matrix.SetGray(x, y, color.Gray{Y: uint8(255 * (1 - share))})
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, matrix); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// logs logs the content under the name.
func (h hand) logs(lease protocol.Lease, name, content string) {
	h.t.Helper()
	sum := sha256.Sum256([]byte(content))
	log := protocol.ArtifactLog{LeaseEpoch: lease.LeaseEpoch, Name: name, Artifact: hex.EncodeToString(sum[:]), Bytes: int64(len(content))}
	client, err := rest.New(rest.Options{URL: h.url, Token: h.tokens[auth.Admin], Patience: -1})
	if err == nil {
		err = client.PutArtifact(h.t.Context(), log.Artifact, log.Bytes, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil })
	}
	if err == nil {
		err = client.LogArtifact(h.t.Context(), lease.Trial, log)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func tryArtifacts(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	first, second := h.next(0, 0), h.next(1, 0)
	p := s.enter(browser, "/studies/small/trials/0")
	p.see(`document.getElementById("artifacts-card").hidden`, true)
	const plain = `.replaceAll("<", "[").replaceAll(">", "]")` // Go's JSON escapes these
	shown := strings.NewReplacer("<", "[", ">", "]").Replace
	const evil = `<img src=x onerror="document.title='run'"><script>document.title="run"</script>`
	h.logs(first, "confusion.png", picture(t, 0.2))
	h.logs(first, "matrix.csv", "label,\"a \"\"quoted\"\", one\"\r\n"+evil+",7\r\n\"two\nlines\",8")
	h.logs(first, "notes.txt", evil)
	h.logs(first, "page.html", evil)
	h.logs(second, "confusion.png", picture(t, 0.6))
	h.report(first, 1, 0.5)
	p.see(`[...document.querySelectorAll("#artifacts figcaption a")].map(one => one.textContent)`, []string{"confusion.png", "matrix.csv", "notes.txt", "page.html"})
	p.see(`document.querySelector("#artifacts img").naturalWidth`, 240)
	p.see(`document.querySelector("#artifacts img").alt`, "confusion.png of trial 0")
	p.see(`[...document.querySelectorAll("#artifacts th, #artifacts td")].map(one => one.textContent`+plain+`)`, []string{"label", `a "quoted", one`, shown(evil), "7", "two\nlines", "8"})
	p.see(`document.querySelector("#artifacts pre").textContent`+plain, shown(evil))
	p.see(`document.querySelectorAll("#artifacts figure:last-child > *").length`, 1) // a page is only downloaded
	p.see(`document.querySelectorAll("#artifacts script, #artifacts td img").length`, 0)
	p.see(`document.title`, "Trial 0 · small · Tandem")

	p.visit("/studies/small/compare?trials=0,1")
	p.see(`[...document.querySelectorAll("#artifacts > tbody > tr")].map(row => [...row.cells].map(cell => cell.querySelector("img")?.naturalWidth ?? cell.innerText`+plain+`.split("\n")[0]).join(" "))`,
		[]string{"confusion.png 240 240", "matrix.csv label\ta \"quoted\", one –", "notes.txt " + shown(evil) + " –", "page.html page.html 79 B, after epoch 0 –"})
	h.logs(second, "notes.txt", "of the second")
	h.report(second, 1, 0.4)
	p.see(`document.querySelector("#artifacts > tbody > tr:nth-child(3)").cells[2].querySelector("pre").textContent`, "of the second")
	p.do(chromedp.Reload())
	p.see(`document.getElementById("artifacts-card").hidden`, false)
	p.quiet()
}
