package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/web/auth"
)

// patience bounds the wait for anything the browser should show.
const patience = 5 * time.Minute

// browserPath finds a Chromium: CHROMIUM, or one of its names on the PATH. The one without
// windows comes first: a tab of it takes a seventh of the CPU time.
// Without one the test is skipped, unless TANDEM_REQUIRE_BROWSER is set.
func browserPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const reason = "no Chromium on this machine: install chromium, or set CHROMIUM to its path"
	if os.Getenv("TANDEM_REQUIRE_BROWSER") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason + "; the pages were not tried in a browser")
	return ""
}

// newBrowser starts a browser that ends with the test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("the pages take minutes in a browser: left out with -short")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(browserPath(t)), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("in-process-gpu", true), // a process less that draws
		// Neither the browser's own pages nor processes for later pages are made before.
		chromedp.Flag("disable-features", "PreloadTopChromeWebUI,SpareRendererForSitePerProcess"),
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

// tab is a browser tab with cookies of its own.
type tab struct {
	t     *testing.T
	stage *stage
	ctx   context.Context

	mutex sync.Mutex
	said  []string // everything on its console
}

// with lets a subtest use the stage.
func (s *stage) with(t *testing.T) *stage {
	return &stage{t: t, clock: s.clock, store: s.store, studies: s.studies, url: s.url, tokens: s.tokens, server: s.server}
}

// open opens a tab at a size and a colour scheme ("light" or "dark").
func (s *stage) open(browser context.Context, width, height int64, scheme string) *tab {
	s.t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	s.t.Cleanup(closeTab)
	p := &tab{t: s.t, stage: s, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			p.mutex.Lock()
			p.said = append(p.said, string(message.Type)+": "+message.Text+" "+message.URL)
			p.mutex.Unlock()
		}
	}()
	// Nobody listens to what each request of a page is told of, and a page has dozens.
	if _, err := chromedp.Call(ctx, network.Disable, cdp.Empty{}); err != nil {
		s.t.Fatal(err)
	}
	p.show(width, height, scheme)
	return p
}

// show gives the tab a size, and the reader's system a colour scheme.
func (p *tab) show(width, height int64, scheme string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		// What moves is drawn sixty times a second, and no test looks at it.
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err == nil {
		err = chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// enter opens a tab with an admin's session.
func (s *stage) enter(browser context.Context, path string) *tab {
	s.t.Helper()
	p := s.open(browser, 1280, 900, "light")
	p.carry(auth.Admin)
	p.visit(path)
	return p
}

// signIn signs in by the link that serve prints.
func (p *tab) signIn(scope auth.Scope) {
	p.t.Helper()
	p.visit("/login#token=" + p.stage.tokens[scope])
	p.see("location.pathname", "/studies")
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the console: %q", err, p.console())
	}
}

func (p *tab) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.stage.url + path))
}

// get evaluates an expression to JSON.
func (p *tab) get(expression string) string {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+") ?? 'undefined'"))
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// see waits until the expression has the value.
func (p *tab) see(expression string, want any) {
	p.t.Helper()
	encoded, err := json.Marshal(want)
	if err != nil {
		p.t.Fatal(err)
	}
	p.wait(expression, func(have string) bool { return have == string(encoded) }, string(encoded))
}

// seeText waits until the element's text contains the words.
func (p *tab) seeText(selector, words string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.querySelector(%q)?.checkVisibility() && document.querySelector(%q).innerText", selector, selector),
		func(have string) bool {
			var text string
			return json.Unmarshal([]byte(have), &text) == nil && strings.Contains(text, words)
		}, words)
}

func (p *tab) wait(expression string, holds func(string) bool, want string) {
	p.t.Helper()
	deadline, pause := time.Now().Add(patience), 30*time.Millisecond
	for {
		began := time.Now()
		have := p.get(expression)
		if holds(have) {
			return
		}
		if began.After(deadline) {
			p.t.Fatalf("%s is %s and never %s; the console: %q", expression, have, want, p.console())
		}
		took := time.Since(began)
		time.Sleep(pause)
		pause = min(max(pause*5/4, 8*took), 300*time.Millisecond) // on a busy machine it seldom looks
	}
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.settled()
	p.still("document.querySelector(" + strconv.Quote(selector) + ")")
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// pick clicks on the element that the XPath finds.
func (p *tab) pick(path string) {
	p.t.Helper()
	p.settled()
	p.still("document.evaluate(" + strconv.Quote(path) + ", document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue")
	p.do(chromedp.Click(chromedp.Search(path)))
}

// still waits until the element is there and stays where it is: a click goes to a
// place, and what comes into the page late moves the rest of it.
func (p *tab) still(element string) {
	p.t.Helper()
	before := ""
	p.wait(element+"?.getBoundingClientRect() ?? null", func(now string) bool {
		stays := now == before && strings.HasPrefix(now, "{")
		before = now
		return stays
	}, "twice the same")
}

// more chooses what the menu of a study's page has.
func (p *tab) more(selector string) {
	p.t.Helper()
	p.see(`document.getElementById("actions").hidden`, false)
	p.click("#more > summary")
	p.see(`document.getElementById("more").open`, true)
	p.click(selector)
	p.see(`document.getElementById("more")?.open ?? false`, false)
}

// settled waits until the page is whole: an element found in a page that is
// still being replaced is gone when it is used.
func (p *tab) settled() {
	p.t.Helper()
	p.see("document.readyState", "complete")
}

// key presses a key that is a letter or a sign, in whatever has the focus. As
// from a keyboard, the text is one event with the key, which a page can refuse.
func (p *tab) key(sign string) {
	p.t.Helper()
	p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kb.KeyDown, Key: sign, Text: sign})
		if err == nil {
			_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kb.KeyUp, Key: sign})
		}
		return chromedp.Void{}, err
	})
}

// press presses a key that is no letter, in whatever has the focus.
func (p *tab) press(key, text string, code int64) {
	p.t.Helper()
	p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kb.KeyDown, Key: key, Code: key, Text: text, WindowsVirtualKeyCode: code})
		if err == nil {
			_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kb.KeyUp, Key: key, Code: key, WindowsVirtualKeyCode: code})
		}
		return chromedp.Void{}, err
	})
}

// fill types into an empty field.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.settled()
	p.get(fmt.Sprintf("document.querySelector(%q).value = ''", selector))
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// choose selects an option, as a reader does.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.get(fmt.Sprintf("(list => { list.value = %q; list.dispatchEvent(new Event('change')); return list.value })(document.querySelector(%q))", value, selector))
}

// console is everything that was said on the tab's console so far.
func (p *tab) console() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string(nil), p.said...)
}

// quiet fails if anything is on the console: an exception, a resource that
// could not be loaded, or a refusal by the content policy.
func (p *tab) quiet() {
	p.t.Helper()
	p.quietBut(func(string) bool { return false })
}

// quietBut is quiet, but for what is expected.
func (p *tab) quietBut(expected func(said string) bool) {
	p.t.Helper()
	p.get("1") // the console's events come in order, so those of the past are here
	if said := slices.DeleteFunc(p.console(), expected); len(said) > 0 {
		p.t.Errorf("on the console: %q", said)
	}
}
