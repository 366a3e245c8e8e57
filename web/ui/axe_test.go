package ui_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// What axe-core is asked: all rules of WCAG 2.2 up to AA with the best practices,
// or those that depend on the colours alone.
const (
	wholeRules  = `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}`
	colourRules = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

var axeSource = sync.OnceValues(func() (string, error) {
	content, err := os.ReadFile("testdata/axe/axe.min.js")
	return string(content), err
})

// violation is a rule that elements of a page break.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string          `json:"html"`
		Target  json.RawMessage `json:"target"`
		Summary string          `json:"failureSummary"`
	} `json:"nodes"`
}

// violations asks axe-core about the page as it is shown now.
func (p *tab) violations(rules string) []violation {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
	defer cancel()
	if p.get("typeof window.axe") != `"object"` {
		source, err := axeSource()
		if err != nil {
			p.t.Fatal(err)
		}
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](source+"\n'there'")); err != nil {
			p.t.Fatalf("axe does not start: %v", err)
		}
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](
		`axe.run(document, {runOnly: `+rules+`, resultTypes: ["violations"]}).then(found => JSON.stringify(found.violations))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("axe: %v", err)
	}
	var found []violation
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Fatal(err)
	}
	return found
}

// accessible fails for every rule that the page breaks.
func (p *tab) accessible(name, rules string) {
	p.t.Helper()
	for _, one := range p.violations(rules) {
		for i, node := range one.Nodes {
			if i == 4 {
				p.t.Errorf("%s: %s: and %d elements more", name, one.ID, len(one.Nodes)-i)
				break
			}
			p.t.Errorf("%s: %s (%s)\n%s\n%s\n%s", name, one.ID, one.Help, node.Target, node.HTML, node.Summary)
		}
	}
}

// A check that finds nothing anywhere would prove nothing.
func TestTheCheckOfAccessibilityFindsFaults(t *testing.T) {
	p := newStage(t).open(newBrowser(t), 1280, 900, "light")
	p.visit("/login")
	p.settled()
	p.accessible("login", wholeRules)
	p.get(`(document.querySelector("#login label").remove(), document.querySelector("h1").style.color = "#ddd", 1)`)
	for rules, wanted := range map[string][]string{wholeRules: {"label", "color-contrast"}, colourRules: {"color-contrast"}} {
		var broken []string
		for _, one := range p.violations(rules) {
			broken = append(broken, one.ID)
		}
		for _, rule := range wanted {
			if !slices.Contains(broken, rule) {
				t.Errorf("axe finds %s, not %s", strings.Join(broken, ", "), rule)
			}
		}
	}
}
