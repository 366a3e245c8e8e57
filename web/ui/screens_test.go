package ui_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// screen is a page in a state that a reader may find it in.
type screen struct {
	name, path string
	stage      *stage
	// absent says that the server has not what the address names: the browser's
	// console tells of that too.
	absent bool
}

// TestEveryPage looks at each page in light and dark colours, on a desk and on a
// phone. None may be wider than its window, say anything on the console, or break
// a rule of accessibility that axe-core checks. Where TANDEM_SCREENSHOTS names a
// folder, it writes pictures of them into it.
func TestEveryPage(t *testing.T) {
	browser := newBrowser(t)
	s, none := newStage(t), newStage(t)
	survivor := gallery(s)
	const learned = "AMD EPYC 7763 64-Core Processor, 64 cores"
	s.learn(learnedRuns(learned, 37, time.Now().Add(-20*time.Minute))...)
	s.create(deployedFile)
	hand := s.hand()
	lease := hand.lease("deployed")
	hand.saves(lease)
	hand.logs(lease, "confusion.png", picture(t, 0.4))
	hand.logs(lease, "matrix.csv", "label,shirt,coat\nshirt,93,7\ncoat,11,89\n")
	hand.logs(lease, "notes.txt", strings.Repeat("a long line of a text that goes on and on ", 20))
	hand.logs(lease, "weights.bin", "0123")
	hand.train(lease, 0.5)
	s.create(severalFile)
	for i := range 8 {
		hand.tell("several", 0.9-0.05*float64(i%5), 0.001*float64(1+i%3), float64(1+2*i))
	}
	edgeGallery(s)
	closedStory(s)
	s.foresee("rack-1")
	s.placed.Store(severalTypes())
	if _, err := s.studies.Reserve(t.Context(), protocol.ReservationRequest{User: "adda", Worker: "rack-9", To: s.clock.now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.expected.Store(expectedHere())
	var mutex sync.Mutex
	seen, looked := make(map[string]bool), 0 // by the page's name
	var screens []screen
	t.Cleanup(func() {
		for _, name := range templates(t) {
			if !seen[`"page-`+name+`"`] && looked == len(screens) { // else it was asked for some of them
				t.Errorf("the page %s is not among those that were looked at: add it", name)
			}
		}
	})
	screens = []screen{
		{"studies", "/studies", s, false}, {"new-study", "/studies/new", s, false}, {"copied-study", "/studies/new?from=lenet-fashion-mnist", s, false}, {"study", "/studies/lenet-fashion-mnist", s, false},
		{"trial", fmt.Sprintf("/studies/lenet-fashion-mnist/trials/%d", survivor), s, false},
		{"compare-trials", fmt.Sprintf("/studies/lenet-fashion-mnist/compare?trials=0,9,%d", survivor), s, false}, {"compare-none", "/studies/digits/compare", s, false},
		{"many", "/studies/boosted-or-linear?page=2&compare=3,17", s, false}, {"many-trial", "/studies/boosted-or-linear/trials/12", s, false}, {"charts", "/studies/boosted-or-linear/charts", s, false}, {"charts-of-floats", "/studies/lenet-fashion-mnist/charts", s, false},
		{"confidential", "/studies/scans", s, false}, {"attesting", "/studies/scans/trials/1", s, false}, {"refused", "/studies/scans/trials/2", s, false},
		{"several", "/studies/several", s, false}, {"deployed", "/studies/deployed/trials/0", s, false},
		{"failing", "/studies/broken-script", s, false}, {"failed-trial", "/studies/lenet-fashion-mnist/trials/9", s, false}, {"fresh", "/studies/digits", s, false},
		{"workers", "/workers", s, false}, {"ground-truth", "/ground-truth?machine=" + url.QueryEscape(learned), s, false}, {"no-ground-truth", "/ground-truth", none, false}, {"access", "/access", s, false},
		{"missing", "/nowhere", s, true}, {"unknown", "/studies/none", s, true}, {"unknown-trial", "/studies/digits/trials/7", s, true},
		{"compare-studies", "/compare?study=lenet-fashion-mnist&study=boosted-or-linear", s, false}, {"compare-no-studies", "/compare", s, false}, {"worker", "/workers?worker=worker-lab-03", s, false},
		{"edge", "/studies/digits-at-the-edge/edge", s, false}, {"no-edge", "/studies/several/edge", s, false},
		{"none", "/studies", none, false}, {"pool", "/pool?details=1", s, false}, {"pool-front", "/pool", s, false}, {"no-pool", "/pool", none, false}, {"no-workers", "/workers", none, false}, {"login", "/login", none, false},
	}
	// By day all rules are checked in both colours and at both widths, but not in each pair.
	others := []string{"", colourRules}[effort.ByDay(t, 0, 1)]
	for _, one := range screens {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			beat(s.with(t))
			there := one.stage.with(t)
			p := there.open(browser, 1280, 1080, "light")
			p.carry(auth.Admin)
			p.visit(one.path)
			p.atRest()
			name := p.get("document.body.className")
			mutex.Lock()
			seen[name] = true
			looked++
			mutex.Unlock()
			p.inspect(one, "light", 1280, wholeRules)
			p.show(390, 860, "light")
			p.inspect(one, "light", 390, others)
			p.show(390, 860, "dark")
			p.inspect(one, "dark", 390, wholeRules)
			p.show(1280, 1080, "dark")
			p.inspect(one, "dark", 1280, others)
			p.quietBut(func(said string) bool { return one.absent && strings.Contains(said, "404") })
		})
	}
}

// carry gives the tab a session, without the pages that lead to one.
func (p *tab) carry(scope auth.Scope) {
	p.t.Helper()
	session := p.stage.session(p.stage.tokens[scope])
	p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, network.SetCookie, network.SetCookieParams{Name: session.Name, Value: session.Value, URL: p.stage.url})
		return chromedp.Void{}, err
	})
}

// atRest waits until the page has loaded and fetches nothing more for a while.
func (p *tab) atRest() {
	p.t.Helper()
	p.settled()
	p.see(`document.getElementById("loading")?.hidden ?? true`, true)
	p.see(`performance.now() - Math.max(0, ...performance.getEntriesByType("resource").map(one => one.responseEnd)) > 300`, true)
}

// tooWide says by how much the page is wider than its window, and which of its
// elements reach over the edge.
const tooWide = `(() => {
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over <= 0) return "fits";
  const outside = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5);
  return [over + " at " + location.pathname, ...outside.slice(0, 12).map((one) => one.tagName + "#" + one.id + "." + one.className + ": " + one.innerText?.slice(0, 40))].join("; ");
})()`

// tooSmall names what a finger would miss: controls and links in tables that are less
// than 40 pixels high. A box is chosen by its label as well.
const tooSmall = `[...document.querySelectorAll("button, select, summary, textarea, input, .button, nav a, .brand, td > a, th > a, .trail a")]
  .filter((one) => one.checkVisibility())
  .map((one) => [one, (one.matches("[type=checkbox], [type=radio]") && one.labels[0] || one).getBoundingClientRect()])
  .filter(([, at]) => at.height < 40 || at.width < 24)
  .map(([one, at]) => one.tagName + "#" + one.id + "." + one.className + " " + one.textContent.slice(0, 20) + ": " + at.width + " x " + at.height)`

// inspect checks the page as it is shown now, and takes a picture of it.
func (p *tab) inspect(one screen, scheme string, width int64, rules string) {
	p.t.Helper()
	name := fmt.Sprintf("%s-%s-%d", one.name, scheme, width)
	p.see("/* "+name+" is so many pixels too wide, and what reaches over its edge: */ "+tooWide, "fits")
	if width < 760 {
		p.see("/* "+name+" has targets that are too small: */ "+tooSmall, []string{})
	}
	if rules != "" {
		p.accessible(name, rules)
	}
	folder := screenshots(p.t)
	if folder == "" || rules != wholeRules { // each page in both colours and at both widths is enough
		return
	}
	p.picture(filepath.Join(folder, name+".png"), chromedp.CaptureScreenshot())
	p.picture(filepath.Join(folder, name+"-whole.png"), chromedp.FullScreenshot(100))
}

// screenshots answers the folder that keeps what browsers showed, for a look,
// and makes it; "" where nobody asked for it.
func screenshots(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("TANDEM_SCREENSHOTS")
	if folder == "" {
		return ""
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	return folder
}

func (p *tab) picture(path string, take chromedp.Action[[]byte]) {
	p.t.Helper()
	content, err := chromedp.Run(p.ctx, take)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
