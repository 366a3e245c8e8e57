package ui_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/web/auth"
)

// TestScreens writes pictures of the pages into a folder, for the
// documentation and for a look: go test ./web/ui -run TestScreens -screens DIR
func TestScreens(t *testing.T) {
	if *screens == "" {
		t.Skip("pictures are made on request: -screens DIR")
	}
	s, none := newStage(t), newStage(t)
	survivor := gallery(s)
	const learned = "AMD EPYC 7763 64-Core Processor, 64 cores"
	s.learn(learnedRuns(learned, 37, time.Now().Add(-20*time.Minute))...)
	browser := newBrowser(t)
	pages := []struct {
		name, path string
		stage      *stage
	}{
		{"studies", "/studies", s}, {"study", "/studies/lenet-fashion-mnist", s},
		{"trial", fmt.Sprintf("/studies/lenet-fashion-mnist/trials/%d", survivor), s},
		{"many", "/studies/boosted-or-linear", s}, {"many-trial", "/studies/boosted-or-linear/trials/12", s},
		{"failing", "/studies/broken-script", s}, {"failed-trial", "/studies/lenet-fashion-mnist/trials/9", s}, {"fresh", "/studies/digits", s},
		{"workers", "/workers", s}, {"ground-truth", "/ground-truth?machine=" + url.QueryEscape(learned), s}, {"no-ground-truth", "/ground-truth", none}, {"missing", "/nowhere", s}, {"unknown", "/studies/none", s}, {"unknown-trial", "/studies/digits/trials/7", s},
		{"none", "/studies", none}, {"no-workers", "/workers", none}, {"login", "/login", none},
	}
	for _, scheme := range []string{"light", "dark"} {
		for width, height := range map[int64]int64{1280: 1080, 390: 860} {
			for _, one := range pages {
				name := fmt.Sprintf("%s-%s-%d", one.name, scheme, width)
				t.Run(name, func(t *testing.T) {
					beat(s.with(t))
					p := one.stage.with(t).open(browser, width, height, scheme)
					p.signIn(auth.Admin)
					p.visit(one.path)
					p.do(chromedp.Sleep(1500 * time.Millisecond))
					if overflow := p.get("document.documentElement.scrollWidth - innerWidth"); overflow != "0" {
						t.Errorf("%s px too wide", overflow)
					}
					picture(t, p, name+".png", chromedp.CaptureScreenshot())
					picture(t, p, name+"-whole.png", chromedp.FullScreenshot(100))
				})
			}
		}
	}
}

func picture(t *testing.T, p *tab, name string, take chromedp.Action[[]byte]) {
	t.Helper()
	content, err := chromedp.Run(p.ctx, take)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screens, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}
