package search_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
)

// By day each case draws its promotion; at night every promotion has as many cases.
func TestMethodsConform(t *testing.T) {
	promotions := [][]budget.Promotion{budget.Promotions()}
	if effort.ByDay(t, 0, 1) > 0 {
		promotions = nil
		for _, one := range budget.Promotions() {
			promotions = append(promotions, []budget.Promotion{one})
		}
	}
	for _, name := range search.Names() {
		for _, some := range promotions {
			t.Run(fmt.Sprint(name, some), func(t *testing.T) {
				searchtest.Run(t, searchtest.Subject{
					New: func(settings search.Settings) (*search.Method, error) {
						settings.Method = name
						return search.New(settings)
					},
					Ends: name == "grid", One: name == "cma-es" || name == "gp", Promotions: some,
				})
			})
		}
	}
}
