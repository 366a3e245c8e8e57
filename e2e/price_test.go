package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestPricesBecomeCosts runs a study on a server where a second of a machine costs 1 EUR,
// and one on a server without prices.
func TestPricesBecomeCosts(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("currency: EUR\nmachines:\n  - {machine: '*', price: 3600}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, here := range map[string]*site{"priced": newSite(t, "--prices", prices), "unpriced": newSite(t)} {
		here.worker("--slots", "1")
		here.must("study", "create", newStudy(t, name, nineEpochs, "0.1", 2).file)
		here.must("study", "watch", name)
		seconds := 0.0
		for _, reports := range here.books(name).reports(t) {
			for _, report := range reports {
				seconds += float64(report.Seconds)
			}
		}
		paid, told := read[protocol.StudyView](t, here.must("study", "show", name, "--json")).Progress.Cost, here.must("study", "show", name)
		if name == "unpriced" {
			if paid != nil || strings.Contains(told, "Cost") {
				t.Errorf("a server without prices says that it cost %+v:\n%s", paid, told)
			}
			continue
		}
		if paid == nil || paid.Currency != "EUR" || float64(paid.Amount) < 0.9*seconds || float64(paid.Amount) > 1.1*seconds {
			t.Fatalf("%.2f s at 1 EUR each cost %+v", seconds, paid)
		}
		if !strings.Contains(told, "Cost: ") || !strings.Contains(told, " EUR") {
			t.Errorf("nothing tells what it cost:\n%s", told)
		}
	}
}
