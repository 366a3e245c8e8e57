package ui_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browserPath finds a Chromium: CHROMIUM, or one of its names on the PATH.
func browserPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on this machine: the pages are not tried in a browser (set CHROMIUM to its path)")
	return ""
}

// newBrowser starts a browser that ends with the test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(browserPath(t)), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return browser
}

// serve starts the fake server.
func serve(t *testing.T, f *fake) string {
	t.Helper()
	server := httptest.NewServer(f.handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// TestScreenshots writes pictures of the pages into the folder that
// TANDEM_SCREENSHOTS names, for the documentation and for a look.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("TANDEM_SCREENSHOTS")
	if folder == "" {
		t.Skip("set TANDEM_SCREENSHOTS to a folder to have pictures of the pages written there")
	}
	now := time.Now()
	running := demoStudy("lenet-fashion-mnist", 81, 22*time.Minute, now)
	fresh := emptyStudy("digits", 27, now.Add(-3*time.Second))
	f := newFake(fresh, running)
	f.workers = demoWorkers(running)
	address := serve(t, f)
	browser := newBrowser(t)
	pages := map[string]string{
		"studies": "/studies", "study": "/studies/lenet-fashion-mnist", "trial": "/studies/lenet-fashion-mnist/trials/5",
		"workers": "/workers", "login": "/login", "fresh": "/studies/digits", "missing": "/nowhere", "unknown": "/studies/none",
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 400} {
			for name, path := range pages {
				name = fmt.Sprintf("%s-%s-%d", name, scheme, width)
				t.Run(name, func(t *testing.T) {
					picture := photograph(t, browser, address+path, scheme, width)
					if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// photograph shows a page for a while and returns a picture of all of it.
func photograph(t *testing.T, browser context.Context, address, scheme string, width int64) []byte {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	_, err := chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err == nil {
		err = chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(address), chromedp.Sleep(2500*time.Millisecond))
	}
	if err != nil {
		t.Fatal(err)
	}
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}
