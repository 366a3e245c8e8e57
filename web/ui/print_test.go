package ui_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/web/auth"
)

// tryPrint prints pages from dark windows: on paper they are light, one column
// wide and without anything to press, and the window is as it was afterwards.
func tryPrint(t *testing.T, s *stage, chromium context.Context) {
	boosted(s)
	p := s.open(chromium, 1280, 900, "dark")
	p.carry(auth.Admin)
	yes := true
	for name, path := range map[string]string{"study": "/studies/boosted-or-linear", "charts": "/studies/boosted-or-linear/charts", "trial": "/studies/boosted-or-linear/trials/3", "workers": "/workers"} {
		p.visit(path)
		p.atRest()
		before := p.get(`getComputedStyle(document.body).color + getComputedStyle(document.querySelector("main")).width`)
		p.get(`(window.addEventListener("beforeprint", () => {
			const main = document.querySelector("main").getBoundingClientRect();
			const canvases = [...document.querySelectorAll("main canvas")].filter(one => one.checkVisibility());
			window.printed = {
				width: Math.round(main.width), colour: getComputedStyle(document.body).color,
				buttons: [...document.querySelectorAll("button, .button, summary")].filter(one => one.checkVisibility() && !one.closest("th")).map(one => one.textContent),
				headings: [...document.querySelectorAll("#board thead th")].filter(one => one.innerText.trim() !== "").length,
				tooWide: canvases.filter(one => one.closest(".chart-scroll") === null && one.getBoundingClientRect().right > main.right + 1).length,
			};
		}), 1)`)
		answer, err := chromedp.Call(p.ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: &yes})
		if err != nil || !bytes.HasPrefix(answer.Data, []byte("%PDF-")) {
			t.Fatalf("%s: %.20q: %v", path, answer.Data, err)
		}
		p.see("(({width, colour, buttons, tooWide}) => [width, colour, buttons, tooWide])(window.printed)", []any{700, "rgb(25, 33, 45)", []string{}, 0})
		p.see(`window.printed.headings > 5`, name == "study")
		p.see(`getComputedStyle(document.body).color + getComputedStyle(document.querySelector("main")).width === `+before, true)
		if folder := screenshots(t); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, "print-"+name+".pdf"), answer.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.quiet()
}
