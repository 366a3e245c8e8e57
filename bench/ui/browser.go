package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience bounds the wait for anything the browser should show.
const patience = time.Minute

// browser is a Chromium whose tab is signed in.
type browser struct {
	url, token, path, screens string
	tab                       context.Context
	stop                      func()
}

// start starts Chromium and signs in by the link that serve prints.
func (b *browser) start(ctx context.Context) error {
	binary, err := chromium()
	if err != nil {
		return err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(binary), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience),
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	tab, closeTab := chromedp.NewContext(allocator)
	b.tab, b.stop = tab, func() { closeTab(); end() }
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900)); err != nil {
		return fmt.Errorf("the browser does not start: %w", err)
	}
	if _, err := chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watching}); err != nil {
		return err
	}
	if err := b.visit("/login#token=" + b.token); err != nil {
		return err
	}
	return b.until(`location.pathname === "/studies"`)
}

// chromium finds the browser as the tests of the pages do.
func chromium() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: install chromium, or set CHROMIUM to its path")
}

func (b *browser) visit(path string) error {
	ctx, cancel := context.WithTimeout(b.tab, patience)
	defer cancel()
	return chromedp.Do(ctx, chromedp.Navigate(b.url+path))
}

// forget empties the browser's cache, as on the first visit.
func (b *browser) forget() error {
	_, err := chromedp.Call(b.tab, network.ClearBrowserCache, cdp.Empty{})
	return err
}

// number evaluates an expression, or waits for its promise.
func (b *browser) number(expression string) (float64, error) {
	ctx, cancel := context.WithTimeout(b.tab, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[float64](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", expression, err)
	}
	return value, nil
}

// until waits until the expression is true.
func (b *browser) until(expression string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		value, err := b.number("Number(" + expression + ")")
		if err == nil && value == 1 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s never became true: %w", expression, err)
		}
	}
}

// picture writes a picture of the page, if that is wanted.
func (b *browser) picture(name string) error {
	if b.screens == "" {
		return nil
	}
	content, err := chromedp.Run(b.tab, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.screens, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.screens, name+".png"), content, 0o600)
}
