package search_test

import (
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
)

func TestMethodsConform(t *testing.T) {
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Subject{
				New: func(settings search.Settings) (search.Method, error) {
					settings.Method = name
					return search.New(settings)
				},
				Ends: name == "grid", One: name == "cma-es" || name == "gp",
			})
		})
	}
}
